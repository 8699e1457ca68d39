"""Randomness, keys, channels and encryption by attributes: thin layers over libraries."""
