"""Sessions that are played: what each party is given, party by party, and with the network as adversary."""
