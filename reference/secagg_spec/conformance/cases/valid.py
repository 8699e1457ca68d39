"""Valid requests of all operations: those of `requests`, and those for keys, messages and scripts."""

from collections.abc import Callable
from hashlib import shake_256
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.adapter import generators
from secagg_spec.conformance.adapter.capabilities import EVERYTHING, Capabilities
from secagg_spec.conformance.cases import (
    basa_functions,
    basa_parties,
    basa_schedules,
    basecagg_functions,
    basecagg_parties,
    basecagg_schedules,
    drawn_rounds,
    heterosag_functions,
    heterosag_masking,
    heterosag_parties,
    lightsecagg_active_parties,
    lightsecagg_parties,
    multi_round_functions,
    multi_round_logs,
    neighbour_rounds,
    requests,
    staleness,
    strategies,
    sums,
)
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.session import Session
from secagg_spec.conformance.targets.reference.messages import shown
from secagg_spec.crypto import signatures
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.crypto.keys import Roster, hash_parameters
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.lightsecagg.round import (
    AggregatedShare,
    MaskedUpdate,
    MaskShare,
    SurvivingSet,
    sealing_context,
)
from secagg_spec.protocols.steps import SERVER, Role

KEYS = (bytes(range(32)), bytes(32), bytes([255]) * 32)
TYPES = (257, 0, 258, 65535)


def key(draw: Any) -> bytes:
    """Draw 32 bytes."""
    return bytes(draw(among(KEYS) | st.binary(min_size=32, max_size=32)))


def _expand(draw: Any, caps: Capabilities) -> Valid:
    n, drawn = draw(st.integers(0, 40) | st.sampled_from((64, 1030))), generators.fitted(caps, key(draw))
    q = strategies.modulus(draw, caps, "prg.expand")
    return Valid({"q": q, "key": drawn.hex(), "n": generators.granted(caps, n)})


def _agree(draw: Any, caps: Capabilities) -> Valid:
    private, other = lightsecagg_parties.private_keys(draw, 2)
    return Valid({"private": private.hex(), "public": lightsecagg_parties.public_keys([other])[0].hex()})


def _derive(draw: Any, caps: Capabilities) -> Valid:
    names = ("q", "N", "D", "U", "T", "d")
    values = draw(st.lists(st.sampled_from((0, 1, 7, 100, 2**32 - 5)), min_size=6, max_size=6))
    sender, receiver = strategies.subset(draw, (0, 1, 2, 255, 256, 2**31 - 1), 2, 2)
    params = {
        "protocol": draw(among(("lightsecagg", "basecagg", "a"))),
        "parameters": [[name, str(value)] for name, value in zip(names, values, strict=True)],
        "secret": bytes([draw(st.integers(1, 255))] * 32).hex(),
        "session": lightsecagg_parties.session_id(draw).hex(),
        "round": str(draw(among(lightsecagg_parties.ROUNDS))),
        "sender": sender,
        "receiver": receiver,
        "sender_key": key(draw).hex(),
        "receiver_key": key(draw).hex(),
    }
    return Valid(params)


def _sealing(draw: Any, caps: Capabilities, operation: str) -> tuple[dict[str, Any], list[int], list[bytes]]:
    """Draw the members that both sealing operations have, two users, and everybody's private keys."""
    drawn = lightsecagg_parties.agreed(draw, caps, operation)
    privates = lightsecagg_parties.private_keys(draw, drawn.numbers["N"])
    users = strategies.subset(draw, range(drawn.numbers["N"]), 2, 2)
    roster = [public.hex() for public in lightsecagg_parties.public_keys(privates)]
    return {**drawn.members(), "roster": roster, "type": draw(among(TYPES))}, users, privates


def _close(draw: Any, caps: Capabilities) -> Valid:
    params, users, privates = _sealing(draw, caps, "seal.close")
    sender, *_ = users
    others = [user for user in range(params["N"]) if user != sender]
    receivers = strategies.subset(draw, others, 1, 3 if len(others) > 2 else len(others))
    plaintexts = [[receiver, draw(st.binary(max_size=40)).hex()] for receiver in receivers]
    return Valid({**params, "sender": sender, "private": privates[sender].hex(), "plaintexts": plaintexts})


def _open(draw: Any, caps: Capabilities) -> Valid:
    params, (sender, receiver), privates = _sealing(draw, caps, "seal.open")
    params.update(sender=sender, receiver=receiver, private=privates[receiver].hex())
    plaintext = bytes(draw(st.binary(max_size=40)))
    payload = channel(params, privates[sender]).close(sender, receiver, plaintext)
    return Valid({**params, "payload": payload.hex()})


def _pair_seal(draw: Any, caps: Capabilities) -> Valid:
    sender, receiver = strategies.subset(draw, (0, 1, 2, 3, 255, 256, 2**31 - 1), 2, 2)
    plaintext = bytes(draw(st.binary(min_size=1, max_size=40)))
    return Valid({"plaintext": plaintext.hex(), "sender": sender, "receiver": receiver, "alter": None})


def channel(params: dict[str, Any], private: bytes) -> SealedChannel:
    """Return the reference's channel with the session, roster and message type of a request."""
    numbers = {name: params[name] for name in ("q", "N", "D", "U", "T", "d")}
    agreed = lightsecagg_parties.Agreed(numbers, bytes.fromhex(params["session"]), int(params["round"]))
    context = sealing_context(agreed.parameters, *agreed.header)
    sealed = type(context)(context.protocol, context.parameters, context.session, context.round, params["type"])
    return SealedChannel(sealed, private, Roster(tuple(bytes.fromhex(text) for text in params["roster"])))


def message(draw: Any) -> Message:
    """Draw a message of any type."""
    parties = st.sampled_from((0, 1, 255, 256, 65536, 2**31 - 1, SERVER))
    agreed = lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS))
    header = *agreed, draw(parties), draw(parties)
    kinds: tuple[Any, ...] = (MaskShare, MaskedUpdate, SurvivingSet, AggregatedShare)
    kind = kinds[draw(st.integers(0, 3))]
    if kind is MaskShare:
        return MaskShare(*header, bytes(draw(st.binary(max_size=20))))
    if kind is SurvivingSet:
        users = draw(st.lists(st.sampled_from((0, 1, 258, 2**31 - 1)), max_size=4))
        return SurvivingSet(*header, tuple(users))
    vector = strategies.vector(draw, 2**32, strategies.length(draw))
    return kind(*header, vector)  # type: ignore[no-any-return]


def message_params(message: Message) -> dict[str, Any]:
    """Return the ``params`` of ``message.encode`` for a message."""
    return {"type": message.TYPE, **shown(message)}


def _decode(draw: Any, caps: Capabilities) -> Valid:
    drawn = message(draw)
    return Valid({"type": drawn.TYPE, "bytes": encode(drawn).hex()})


SIGNATURE_TYPES = (261, 0, 65535)


def signed_fields(draw: Any) -> dict[str, Any]:
    """Draw the members that define what is signed."""
    names = ("q", "N", "D", "U", "T", "d", "W")
    values = draw(st.lists(st.sampled_from((0, 1, 7, 100, 2**32 - 5)), min_size=7, max_size=7))
    return {
        "protocol": draw(among(("lightsecagg-active", "a", "basecagg"))),
        "parameters": [[name, str(value)] for name, value in zip(names, values, strict=True)],
        "session": lightsecagg_parties.session_id(draw).hex(),
        "round": str(draw(among(lightsecagg_parties.ROUNDS))),
        "purpose": draw(among(("surviving-set", "a"))),
        "type": draw(among(SIGNATURE_TYPES)),
        "signer": draw(among((0, 1, 255, 256, 2**31 - 1))),
        "content": [field.hex() for field in draw(st.lists(st.binary(max_size=9), max_size=3))],
    }


def signed_bytes(params: dict[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    numbers = {name: int(value) for name, value in params["parameters"]}
    session, number = bytes.fromhex(params["session"]), int(params["round"])
    context = Context(params["protocol"], hash_parameters(numbers), session, number, params["type"])
    content = [bytes.fromhex(field) for field in params["content"]]
    return signatures.signed_fields(context, params["purpose"], params["signer"], content)


def _verify(draw: Any, caps: Capabilities) -> Valid:
    params, private = signed_fields(draw), key(draw)
    public, signature = signatures.verification_key(private), signatures.sign(private, signed_bytes(params))
    return Valid({**params, "public": public.hex(), "signature": signature.hex()})


SCENES: dict[str, Callable[[Any, Capabilities], Session]] = {
    "lightsecagg.user": lightsecagg_parties.user_scene,
    "lightsecagg.server": lightsecagg_parties.server_scene,
    "lightsecagg_active.user": lightsecagg_active_parties.user_scene,
    "lightsecagg_active.server": lightsecagg_active_parties.server_scene,
    "secagg.user": lambda draw, caps: drawn_rounds.scene(draw, Role.USER),
    "secagg.server": lambda draw, caps: drawn_rounds.scene(draw, Role.SERVER),
    "secagg_active.user": lambda draw, caps: drawn_rounds.active_scene(draw, Role.USER),
    "secagg_active.server": lambda draw, caps: drawn_rounds.active_scene(draw, Role.SERVER),
}


def script(party: str) -> Make:
    """Return what draws a valid script of a party, from its session."""
    return lambda draw, caps: requests.scripted(draw, party, lambda drawing: SCENES[party](drawing, caps))


SECRETS = (bytes(range(1, 33)), bytes(32), b"\x01" + bytes(31), bytes(31) + b"\x80", b"\xff" * 32)


def coefficients(draw: Any, count: int) -> list[int]:
    """Draw coefficients of a sharing: pseudo-random ones, some with a leading zero, or all of them at one end."""
    kind = draw(among(("random", "leading zero", "zeros", "ones", "largest")))
    if kind not in ("random", "leading zero"):
        return [{"zeros": 0, "ones": 1, "largest": shamir.PRIME - 1}[kind]] * count
    values = random_coefficients(draw, count)
    return values if kind == "random" else [*values[:-1], 0]


def random_coefficients(draw: Any, count: int) -> list[int]:
    """Draw pseudo-random coefficients, from a seed that shrinks to 0."""
    seed = draw(st.integers(0, 2**32 - 1))
    return list(draw_coefficients(SeededSource(seed.to_bytes(4, "little"), "coefficients"), count))


def secret(draw: Any, caps: Capabilities) -> bytes:
    """Draw a secret of 32 bytes, or of a length that the adapter declares."""
    drawn = bytes(draw(among(SECRETS) | st.binary(min_size=32, max_size=32)))
    return (drawn + bytes(secret_length(caps)))[: secret_length(caps)]


def random_secret(caps: Capabilities, data: bytes) -> bytes:
    """Return a secret without structure that follows from some bytes."""
    return shake_256(data).digest(secret_length(caps))


def secret_length(caps: Capabilities) -> int:
    """Return the length of secrets in bytes: 32, or the first that the adapter declares."""
    allowed = caps.range("shamir.share", "secret") if caps.offers("shamir.share") else EVERYTHING
    lengths = (32, *(allowed.values or ()), allowed.low, allowed.high)
    return next(int(length) for length in lengths if length is not None and length in allowed)


def _share(draw: Any, caps: Capabilities) -> Valid:
    numbers = strategies.sharing(draw, caps, "shamir.share")
    sampled = b"".join(map(shamir.element_bytes, coefficients(draw, numbers["t"] - 1)))
    return Valid({**numbers, "secret": secret(draw, caps).hex()}, {"coefficients": sampled.hex()})


def _reconstruct(draw: Any, caps: Capabilities) -> Valid:
    numbers = strategies.sharing(draw, caps, "shamir.reconstruct")
    last = draw(among((numbers["n"], 2**31))) - 1
    users = strategies.subset(draw, [*range(numbers["n"] - 1), last], numbers["t"])
    shares = shamir.share(secret(draw, caps), coefficients(draw, numbers["t"] - 1), users)
    texts = [shamir.element_bytes(value).hex() for value in shares]
    return Valid({"t": numbers["t"], "users": users, "shares": texts})


VALID: dict[str, Make] = {
    **requests.VALID,
    "prg.expand": _expand,
    "key.agree": _agree,
    "key.derive": _derive,
    "seal.close": _close,
    "seal.open": _open,
    "pair.agree": lambda draw, caps: Valid({}),
    "pair.seal": _pair_seal,
    "message.encode": lambda draw, caps: Valid(message_params(message(draw))),
    "message.decode": _decode,
    "signature.sign": lambda draw, caps: Valid({**signed_fields(draw), "private": key(draw).hex()}),
    "signature.verify": _verify,
    "shamir.share": _share,
    "shamir.reconstruct": _reconstruct,
}
for _cases in (
    *(neighbour_rounds, sums, staleness, basecagg_functions, basa_functions, basa_schedules, basecagg_schedules),
    *(basecagg_parties, basa_parties, heterosag_functions, heterosag_parties, heterosag_masking),
    *(multi_round_functions, multi_round_logs),
):
    VALID |= _cases.VALID
VALID |= {party: script(party) for party in SCENES}
