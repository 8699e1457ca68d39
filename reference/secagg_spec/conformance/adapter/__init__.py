"""The adapter protocol: requests and answers, connections to adapters, and their declared capabilities."""
