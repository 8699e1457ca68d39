"""Caches of the reference for keys, names and shares; a measurement clears them so that timings start cold.

Source: spec/experiments.md, section 5 (EXP-32).
"""

from __future__ import annotations

from secagg_spec.arithmetic import scalars, shamir
from secagg_spec.arithmetic.guard import first_class, guard
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
"""Caches of results that one party of a process may reuse after another party has computed them."""
OWN = (keys._agreed, signatures._signing_key)
"""Caches of results that a party reuses itself, in this round or in a later round with the same keys."""
TABLES = (attribute_boxes._public, pairing.base_1, pairing.base_2, first_class)
"""What no party computed of values: the classes in annotations, and tables for powers of elements that never change.

The elements may change with an epoch; each party makes the tables once.
"""


def forget_shared() -> None:
    """Clear the caches that parties of this process share."""
    for kept in SHARED:
        kept.cache_clear()


def forget() -> None:
    """Clear all caches of results that were computed from keys and names."""
    for kept in (*SHARED, *OWN):
        kept.cache_clear()


guard(__name__)
