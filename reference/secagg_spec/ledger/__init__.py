"""The ledger: what the papers claim, the verdict on each claim, and the proof that reaches the verdict.

``spec/claims/NAME.toml`` holds the claims of one paper, and ``spec/papers/NAME.toml`` the index of the paper's numbered
items. ``proofs/NAME.py`` holds one theorem:

- its docstring: the statement, and the idea of the proof;
- ``CLAIMS``: the id of each claim that the proof decides, and the method;
- ``prove(report)``: computes, and returns the `Finding` of each of these claims.

A finding is compared with the entry: its verdict, its counterexample, its numbers and its methods. If they differ,
the entry or the proof is wrong, and `Outcome.differences` names the difference.

Source: spec/ledger.md; docs/explanation/claims.md.
"""
