"""Play sessions: the inputs of each party, party by party, and rounds with the network as adversary."""
