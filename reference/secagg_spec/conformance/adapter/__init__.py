"""The adapter protocol: requests and answers, connections to adapters, what they declare."""
