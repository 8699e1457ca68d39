"""What binds a claim to a theorem: a digest of both, which a person stores who has read both.

Source: spec/ledger.md, section 6 (CLM-18, CLM-19).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from secagg_spec.ledger import theorems
from secagg_spec.ledger.entries import Bound, Claim
from secagg_spec.ledger.theorems import Theorem

DIGITS = 16
"""Hexadecimal digits of a digest."""


def digest(claim: Claim, bound: Bound, theorem: Theorem) -> str:
    """Return the digest of a claim, the part that a theorem carries, and the theorem with its definitions (CLM-18)."""
    texts = (claim.statement, claim.condition, claim.repair, bound.covers, theorem.statement)
    parts = [" ".join(text.split()) for text in (*texts, *theorem.definitions.values())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]


def stale(claims: Iterable[Claim], known: Mapping[str, Theorem] | None = None) -> Iterator[str]:
    """Yield one line for each theorem of a claim that is bound by another digest than that of today."""
    for claim in claims:
        for bound in claim.formal:
            known = theorems.load() if known is None else known
            if bound.digest != digest(claim, bound, known[bound.theorem]):
                yield (
                    f"{claim.id}: formal: the claim or {bound.theorem} changed since they were bound; "
                    f"read both: secagg-spec claims {claim.id} --bind"
                )
