"""The pseudo-random generator: one key, one stream of elements.

Source: spec/conventions.md, section 8 (PRG-01 to PRG-03).
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.sampling import elements_from_bytes, usable_words
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, ParameterError

KEY_BYTES = 32


def expand(key: bytes, ring: Ring, n: int) -> UintArray:
    """Return the first `n` elements of the stream of a key (PRG-01).

    Parameters
    ----------
    key : bytes
        32 bytes.
    ring : Ring
        The integers modulo R.
    n : int
        How many elements, at least 0.

    Raises
    ------
    LengthMismatch
        The key is not 32 bytes long (PRG-02).
    """
    check_key("key", key)
    n = validate.integer("n", n, 0)
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    parts: list[UintArray] = []
    missing = n
    while missing:
        accepted = MAX_MODULUS // ring.modulus * ring.modulus
        words = missing * MAX_MODULUS // accepted + 16
        data = stream.update(bytes(4 * words))
        part = elements_from_bytes(ring, data, min(missing, usable_words(ring, data)))
        parts.append(part)
        missing -= part.size
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def check_key(name: str, key: object) -> None:
    """Refuse a key that is not 32 bytes.

    Raises
    ------
    ParameterError
        It is not bytes.
    LengthMismatch
        It has another length.
    """
    if not isinstance(key, bytes):
        raise ParameterError(name, key, "bytes")
    if len(key) != KEY_BYTES:
        raise LengthMismatch(f"len({name})", len(key), f"{KEY_BYTES} bytes")
