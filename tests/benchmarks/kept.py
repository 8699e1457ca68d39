"""What the crypto of the reference keeps, so that a second turn does not find what the first has computed."""

from __future__ import annotations

from secagg_spec.crypto import attribute_boxes, keys, masks, pairing, signatures

OF_KEYS = (
    attribute_boxes._secret,
    keys._agreed,
    keys._derived,
    keys._private_key,
    keys._public_bytes,
    masks._bound,
    pairing.hash_attribute,
    signatures._signing_key,
)
"""What was computed from keys and names."""
TABLES = (attribute_boxes._public, pairing.base_1, pairing.base_2)
"""Tables for powers of what never changes, or not in an epoch: made once by everybody."""


def forget() -> None:
    """Forget what was computed from keys and names, which a party meets for the first time in its turn."""
    for kept in OF_KEYS:
        kept.cache_clear()
