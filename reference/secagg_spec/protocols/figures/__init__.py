"""First figures: the round of each protocol as one straight-line function, with the paper's numbers on its lines."""
