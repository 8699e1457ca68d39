"""A run: what is judged, in which order, against which expectations, and what failed."""
