"""Decide privacy from the running code: compute by exact linear algebra what a coalition's view determines."""
