"""The commands of ``secagg-spec``, one module each, and the options that they share."""
