"""The protocols, one package each, over one shape.

A protocol is a table of steps (`steps`), whose messages have bytes (`codec`), and pure cores. The module `round` of its
package is the protocol: parameters, messages, one step per role and phase, the table. `active` is its active profile.
The package itself opens with the first figure: the round as one straight-line function.
"""
