"""The adapter of my-library: ``secagg-spec conform -- python3 adapter.py`` asks it, and it calls the library.

An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
A check that exists only here would turn the report green without fixing the library.
"""

from __future__ import annotations

from typing import Any

from secagg_adapter import Adapter, Reject, pack, unpack  # noqa: F401

Q = 4294967291  # a modulus that the library supports; list all of them in `ranges` below
adapter = Adapter("my-library", "0.1.0")


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


@adapter.operation("lightsecagg.mask", ranges={"q": {"values": [Q]}})
def mask(q: str, update: str, mask: str) -> dict[str, Any]:
    """Return a user's masked update: update plus mask, element by element, modulo q.

    ``int(q)`` is the modulus; ``unpack(update)`` and ``unpack(mask)`` are lists of integers.
    Return ``{"masked": pack([…])}`` [LSA-02]. To refuse, use:
    ``raise Reject("bad_param", "…")``        a q that the library does not support [MOD-01, MOD-02]
    ``raise Reject("length_mismatch", "…")``  an update and a mask of different lengths [LSA-03]
    ``raise Reject("bad_param", "…")``        an update and a mask without elements [LSA-01]
    ``raise Reject("noncanonical", "…")``     an element of either that is not below q [LSA-03]
    Members of the wrong form (type, hex digits, decimal digits) have already been refused.
    """
    # --- write this
    raise NotImplementedError("write me: lightsecagg.mask in adapter.py")
    # --- until here


# Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
if __name__ == "__main__":
    adapter.run()
