"""Integers modulo R, the code that shares a mask, and the quantiser: pure functions on arrays."""
