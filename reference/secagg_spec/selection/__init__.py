"""Which users take part in a round, and what the sums of many rounds tell together."""
