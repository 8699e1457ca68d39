"""Ten clients train a small model on MNIST, and the server sees sums alone."""
