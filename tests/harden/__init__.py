"""Inputs that nobody means: every surface that reads from outside either reads them or says in one line why not."""
