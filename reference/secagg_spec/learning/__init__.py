"""Training with secure aggregation: what users learn from, and how some of them attack."""
