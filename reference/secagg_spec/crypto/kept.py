"""What the reference keeps of keys, names and shares: a measurement begins as a party that has computed nothing yet.

Source: spec/experiments.md, section 5 (EXP-32).
"""

from __future__ import annotations

from secagg_spec.arithmetic import scalars, shamir
from secagg_spec.crypto import attribute_boxes, keys, masks, pairing, signatures

SHARED = (
    attribute_boxes._secret,
    keys._derived,
    keys._private_key,
    keys._public_bytes,
    masks._bound,
    pairing.hash_attribute,
    scalars.weights,
    shamir._weights,
)
"""What one party of a process finds where another has computed it."""
OWN = (keys._agreed, signatures._signing_key)
"""What a party finds that it has computed itself, in this round or in one before with the same keys."""
TABLES = (attribute_boxes._public, pairing.base_1, pairing.base_2)
"""Tables for powers of what never changes, or not in an epoch: made once by everybody."""


def forget_shared() -> None:
    """Forget what another party of this process has computed."""
    for kept in SHARED:
        kept.cache_clear()


def forget() -> None:
    """Forget all that was computed from keys and names."""
    for kept in (*SHARED, *OWN):
        kept.cache_clear()
