"""Mutants: their catalogue, and how to apply one temporarily."""
