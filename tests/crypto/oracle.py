"""What tests take of py_ecc, which raises Python's recursion limit to 100000 for everybody: here it is put back.

With that limit, deep JSON ends the process in place of raising RecursionError.
"""

from __future__ import annotations

import sys

_LIMIT = sys.getrecursionlimit()

from py_ecc.bls.hash_to_curve import hash_to_G1  # noqa: E402
from py_ecc.bls.point_compression import compress_G1, compress_G2  # noqa: E402
from py_ecc.optimized_bls12_381 import FQ12, G1, G2, add, multiply  # noqa: E402
from py_ecc.optimized_bls12_381 import pairing as reduced_pairing  # noqa: E402

sys.setrecursionlimit(_LIMIT)

__all__ = ["FQ12", "G1", "G2", "add", "compress_G1", "compress_G2", "hash_to_G1", "multiply", "reduced_pairing"]
