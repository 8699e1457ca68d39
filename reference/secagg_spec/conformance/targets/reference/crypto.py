"""Operations of the generator, of keys and of sealing, by the reference (spec/conventions.md, sections 8 and 9)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.arithmetic import modular
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.crypto import keys, prg, sealing
from secagg_spec.errors import LengthMismatch
from secagg_spec.protocols.lightsecagg import round as lightsecagg


def _expand(q: Any, key: Any, n: Any) -> dict[str, Any]:
    ring = modular.Ring(readers.number("q", q))
    return {"value": pack(prg.expand(readers.octets("key", key), ring, readers.integer("n", n)))}


def _agree(private: Any, public: Any) -> dict[str, Any]:
    return {"secret": keys.agree(readers.octets("private", private), readers.octets("public", public)).hex()}


def _derive(protocol: Any, parameters: Any, secret: Any, session: Any, round: Any, **ends: Any) -> dict[str, Any]:
    context = sealing.Context(
        readers.ascii_text("protocol", protocol),
        keys.hash_parameters(named_numbers(parameters)),
        readers.octets("session", session),
        readers.u32("round", round),
        message_type=0,
    )
    sender, receiver = (readers.integer(name, ends[name]) for name in ("sender", "receiver"))
    sender_key, receiver_key = (readers.octets(name, ends[name]) for name in ("sender_key", "receiver_key"))
    bound = sealing.binding(context, sender, receiver, sender_key, receiver_key)
    key = keys.derive(readers.octets("secret", secret), context.session, bound)
    return {"key": key.hex(), "binding": bound.hex()}


def named_numbers(value: Any) -> dict[str, int]:
    """Return parameters by name, in order."""
    return {readers.ascii_text("parameters", name): readers.number(name, text) for name, text in value}


def channel(parameters: lightsecagg.Parameters, session: Any, round: Any, type: Any, private: Any, roster: Any) -> Any:
    """Return the sealed channel of a user, for messages of one type.

    Raises
    ------
    LengthMismatch
        The roster does not contain exactly one key for each user, or a key is not 32 bytes long (KEY-03).
    """
    known = keys.Roster(tuple(readers.octets("roster", key) for key in roster))
    if len(known.keys) != parameters.N:
        raise LengthMismatch("len(roster)", len(known.keys), f"N = {parameters.N}")
    context = lightsecagg.sealing_context(parameters, readers.octets("session", session), readers.u32("round", round))
    number = readers.integer("type", type, 2**16)
    return sealing.SealedChannel(replace(context, message_type=number), readers.octets("private", private), known)


def _close(
    session: Any, round: Any, sender: Any, private: Any, roster: Any, type: Any, plaintexts: Any, **numbers: Any
) -> dict[str, Any]:
    parameters = readers.parameters(lightsecagg.Parameters, **numbers)
    own = channel(parameters, session, round, type, private, roster)
    payloads = []
    for user, text in plaintexts:
        receiver, plaintext = readers.integer("plaintexts", user), readers.octets("plaintexts", text)
        payloads.append(own.close(readers.integer("sender", sender), receiver, plaintext).hex())
    return {"payloads": payloads}


def _open(
    q: Any, N: Any, D: Any, U: Any, T: Any, d: Any,
    session: Any, round: Any, sender: Any, receiver: Any, private: Any, roster: Any, type: Any, payload: Any,
) -> dict[str, Any]:  # fmt: skip
    parameters = lightsecagg.Parameters(readers.number("q", q), N, D, U, T, d)
    own = channel(parameters, session, round, type, private, roster)
    users = readers.integer("sender", sender), readers.integer("receiver", receiver)
    return {"plaintext": own.open(*users, readers.octets("payload", payload)).hex()}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "prg.expand": _expand,
    "key.agree": _agree,
    "key.derive": _derive,
    "seal.close": _close,
    "seal.open": _open,
}
