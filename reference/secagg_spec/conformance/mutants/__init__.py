"""Mutants: what they are, and how one is made for a while."""
