"""Helpers for authors of adapters. `secagg_adapter.py` is a single file without dependencies, made to be copied."""
