"""Plans: probabilities against sums and draws, choices against the reference, and what is printed."""
