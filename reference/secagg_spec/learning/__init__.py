"""Training with secure aggregation: data sets, models, training, simulated clocks and attacks."""
