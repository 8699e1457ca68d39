"""Helpers for people who write adapters. `secagg_adapter.py` is one file that can be copied: it imports nothing."""
