"""The choice of users for a round, and what the sums of many rounds reveal together."""
