"""Mutation testing of this project's own tests: single edits of the source, drawn by a seed, and what kills each."""
