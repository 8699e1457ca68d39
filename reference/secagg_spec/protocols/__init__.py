"""One module per protocol, over one shape: a table of phases, pure cores, and one step per role and phase."""
