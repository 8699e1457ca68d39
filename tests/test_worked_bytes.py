"""The worked examples of the conventions: every number in them is computed again, by the reference and by libraries."""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from secagg_spec.arithmetic import quantizer
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto import keys, prg
from secagg_spec.crypto.sealing import Context, Lane
from secagg_spec.protocols import codec
from secagg_spec.protocols.lightsecagg.round import MaskedUpdate, MaskShare

TEXT = (Path(__file__).parents[1] / "spec" / "conventions.md").read_text(encoding="utf-8")
COUNTING = bytes(range(64))


def example(first: str) -> dict[str, str]:
    """Return the worked example whose first line begins so: what stands behind each name."""
    [block] = [one for one in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL) if one.startswith(first)]
    found: dict[str, str] = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in block.splitlines())
    assert len(found) == len(block.splitlines())
    return found


def octets(value: str) -> bytes:
    return bytes.fromhex(value.replace(" ", ""))


@pytest.mark.requirement("QNT-02", "QNT-03", "QNT-05", "QNT-06", "QNT-07")
def test_the_quantised_numbers() -> None:
    rows = {name: [float(one) for one in value.split()] for name, value in example("x  ").items()}
    x, draws, ring = np.array(rows["x"]), np.array(rows["u"]), Ring(2**32 - 5)
    assert rows["y = c x"] == [4 * one for one in rows["x"]]
    elements = quantizer.quantize(x, level=4, ring=ring, weight=1, rounding=draws)
    assert elements.tolist() == rows["element"] == [one % (2**32 - 5) for one in rows["quantised"]]
    assert quantizer.dequantize(elements, level=4, ring=ring).tolist() == rows["decoded"]


@pytest.mark.requirement("MSG-01")
def test_the_message() -> None:
    rows = {name: octets(value) for name, value in example("type").items()}
    masked = np.array([5, 0, 4294967290], dtype=np.uint64)
    message = MaskedUpdate(session=COUNTING[:16], round=1, sender=2, receiver=2**32 - 1, masked=masked)
    assert b"".join(rows.values()) == codec.encode(message)
    assert int.from_bytes(rows["type"], "little") == MaskedUpdate.TYPE
    assert rows["masked"] == np.array(masked, dtype="<u4").tobytes()


@pytest.mark.requirement("PRG-01", "RND-02")
def test_the_stream() -> None:
    rows = example("key stream")
    key = COUNTING[:32]
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(32))
    assert octets(rows["key stream"]) == stream
    words = np.frombuffer(stream, "<u4").tolist()
    assert [int(one) for one in rows["words"].split()] == words
    for R in (2**31 + 11, 2**32 - 5):
        shown = [int(one) for one in rows[f"modulo {R}"].split()]
        assert shown == [word % R for word in words if word < 2**32 // R * R]
        assert prg.expand(key, Ring(R), len(shown)).tolist() == shown


@pytest.mark.requirement("KEY-02", "KEY-07", "KEY-10", "SEA-01", "SEA-08")
def test_the_sealed_payload() -> None:
    rows = {name: octets(value) for name, value in example("public key of user 0").items()}
    privates = [X25519PrivateKey.from_private_bytes(COUNTING[at : at + 32]) for at in (0, 32)]
    publics = [one.public_key().public_bytes_raw() for one in privates]
    assert [rows["public key of user 0"], rows["public key of user 1"]] == publics
    secret = privates[0].exchange(X25519PublicKey.from_public_bytes(publics[1]))
    assert rows["shared secret"] == secret
    bound = b"".join(value for name, value in rows.items() if name.startswith("binding: "))
    other = bound.replace(b"\x04\x00\x00\x00seal", b"\x0a\x00\x00\x00seal-nonce")
    derived = [HKDF(SHA256(), 32, COUNTING[:16], info).derive(secret) for info in (bound, other)]
    assert [rows["seal key"], rows["nonce key"]] == derived
    plaintext, associated = bytes([1, 2, 3, 4]), bound + (257).to_bytes(2, "little")
    nonce = hmac.digest(rows["nonce key"], associated + plaintext, hashlib.sha256)[:12]
    cipher = ChaCha20Poly1305(rows["seal key"])
    assert rows["payload"] == nonce + cipher.encrypt(nonce, plaintext, associated)
    parameters = keys.hash_parameters({"q": 7, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3})
    context = Context("lightsecagg", parameters, COUNTING[:16], 1, MaskShare.TYPE)
    assert rows["payload"] == Lane(context, 0, 1, publics[0], publics[1]).seal(secret, plaintext)
