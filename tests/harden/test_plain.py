"""Numbers are Python's whatever type of integer comes in, and arrays are plain (ERR-02)."""
