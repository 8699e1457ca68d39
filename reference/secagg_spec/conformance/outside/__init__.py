"""Black-box privacy checks: exact verdicts on probed matrices, and statistics with stated false-alarm rates."""
