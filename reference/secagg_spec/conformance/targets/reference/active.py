"""Signatures and scripts of the active profile (spec/conventions.md, section 10; spec/lightsecagg.md, section 9)."""

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.crypto import named_numbers
from secagg_spec.crypto import keys, signatures
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import LengthMismatch
from secagg_spec.protocols.lightsecagg.active import PrivateKeys, PublicKeys


def _signed(
    protocol: Any, parameters: Any, session: Any, round: Any, purpose: Any, type: Any, signer: Any, content: Any
) -> bytes:
    """Return the bytes that a signature covers."""
    session_id = readers.octets("session", session)
    if len(session_id) != 16:
        raise LengthMismatch("session", session_id, "16 bytes")
    context = Context(
        readers.ascii_text("protocol", protocol),
        keys.hash_parameters(named_numbers(parameters)),
        session_id,
        readers.u32("round", round),
        readers.integer("type", type, 2**16),
    )
    fields = [readers.octets("content", text) for text in content]
    by = readers.ascii_text("purpose", purpose), readers.integer("signer", signer)
    return signatures.signed_fields(context, *by, fields)


def _sign(*, private: Any, **fields: Any) -> dict[str, Any]:
    data = _signed(**fields)
    return {"signature": signatures.sign(readers.octets("private", private), data).hex(), "signed": data.hex()}


def _verify(*, public: Any, signature: Any, **fields: Any) -> dict[str, Any]:
    data = _signed(**fields)
    signatures.verify(readers.octets("public", public), data, readers.octets("signature", signature))
    return {}


def public_roster(name: str, value: Any) -> Roster:
    """Return the public keys of a request, of any kind."""
    return Roster(tuple(readers.octets(name, key) for key in value))


def public_keys(roster: Any, verification: Any) -> PublicKeys:
    """Return the sealing keys and the verification keys of a request."""
    return PublicKeys(public_roster("roster", roster), public_roster("verification", verification))


def keys_of(private: Any, signing: Any, roster: Any, verification: Any) -> tuple[PrivateKeys, PublicKeys]:
    """Return a user's private keys, and everybody's public keys."""
    own = PrivateKeys(readers.octets("private", private), readers.octets("signing", signing))
    return own, public_keys(roster, verification)


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"signature.sign": _sign, "signature.verify": _verify}
