"""Random stories over several rounds and attempts, and what the adversary learned at their end.

The adversary is the server and up to T users. It runs no attack: it draws *letters*, such as "these users take their
next step", "this user goes back to an older state", "a round is begun". Honest users take the reference's own steps.
What the adversary saw is a matrix, and its rank decides what it knows.

``python -m tests.stories --stories 10000 --seed 1`` plays them for each protocol.
"""
