"""Randomness and channels: thin over libraries."""
