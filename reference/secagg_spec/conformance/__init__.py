"""The kit: the adapter protocol, the checks, and the runner that judges implementations in any language."""
