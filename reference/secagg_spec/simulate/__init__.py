"""Runs of the reference, step by step, as a person would follow them."""
