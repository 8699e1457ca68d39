"""Integers modulo R, secret sharing of masks, and quantisation: pure functions on arrays."""
