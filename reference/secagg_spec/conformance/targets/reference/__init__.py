"""The reference as an adapter: ``python -m secagg_spec.conformance.targets.reference``."""
