"""Step-by-step runs of the reference for a person to follow."""
