"""The protocols: one package each, all of the same shape.

A protocol consists of a table of steps (`steps`), messages with a byte encoding (`codec`), and pure cores. In its
package, the module `round` is the protocol: parameters, messages, one step per role and phase, and the table. The
module `active` is its active profile. The package itself opens with the first figure: the round as one straight-line
function.
"""
