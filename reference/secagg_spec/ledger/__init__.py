"""The ledger: what the papers claim, the verdict on each claim, and the proof that reaches the verdict.

``spec/claims/NAME.toml`` holds the claims of one paper, and ``spec/papers/NAME.toml`` the index of what the paper
numbers. ``proofs/NAME.py`` holds one theorem:

- its docstring: the statement, and the idea of the proof;
- ``CLAIMS``, which gives the id of each claim that it decides, and the method by which;
- ``prove(report)``, which computes, and returns the `Finding` of each of these claims.

A finding is compared with the entry: its verdict, its counterexample, its numbers and its methods. An entry that says
something else than its proof finds is an error of one of the two, and `Outcome.differences` names it.

Source: spec/ledger.md; docs/explanation/claims.md.
"""
