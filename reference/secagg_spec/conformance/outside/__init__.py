"""Privacy from outside: exact verdicts on probed matrices, and statistics with stated false-alarm rates."""
