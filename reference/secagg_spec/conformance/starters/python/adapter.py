"""The adapter of my-library: ``secagg-spec conform -- python3 adapter.py`` asks it, and it asks the library.

An adapter translates, and mends nothing: what the text refuses, the library is to refuse, and the adapter says with
which code. A check that stands here alone would turn the report green, and the library would stay as it is.
"""

from __future__ import annotations

from typing import Any

from secagg_adapter import Adapter, Reject, pack, unpack  # noqa: F401

Q = 4294967291  # the modulus that the library is made for; list all of them in `ranges` below
adapter = Adapter("my-library", "0.1.0")


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


@adapter.operation("lightsecagg.mask", ranges={"q": {"values": [Q]}})
def mask(q: str, update: str, mask: str) -> dict[str, Any]:
    """Return a user's masked update: update plus mask, element by element, modulo q.

    ``int(q)`` is the modulus; ``unpack(update)`` and ``unpack(mask)`` are lists of integers.
    Return ``{"masked": pack([…])}`` [LSA-02]. Refuse with
    ``raise Reject("bad_param", "…")``        a q that the library does not have [MOD-01, MOD-02]
    ``raise Reject("length_mismatch", "…")``  an update and a mask of different lengths [LSA-03]
    ``raise Reject("bad_param", "…")``        an update and a mask without elements [LSA-01]
    ``raise Reject("noncanonical", "…")``     an element of either that is not below q [LSA-03]
    A member of another form (type, hex digits, decimal digits) was refused before it came here.
    """
    # --- write this
    raise NotImplementedError("write me: lightsecagg.mask in adapter.py")
    # --- until here


# Further operations are in spec/adapter.md, section 4; what is not declared here is answered by `unsupported`.
if __name__ == "__main__":
    adapter.run()
