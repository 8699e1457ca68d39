"""The states of BASA parties between two steps as JSON data: how to store them and how to restore the parties.

Bytes, vectors and messages are stored as the hex digits of their bytes.

Source: spec/basa.md, section 10 (BAA-44).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.crypto import boxes
from secagg_spec.crypto.keys import Roster
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import codec
from secagg_spec.protocols.basa import authority, messages, server, user
from secagg_spec.protocols.basa.cores import Parameters, check_accepted
from secagg_spec.protocols.buffers import average
from secagg_spec.protocols.steps import AUTHORITY, SERVER

SERVER_FORMAT, AUTHORITY_FORMAT, USER_FORMAT = "basa-server-1", "basa-authority-1", "basa-user-1"
_SESSION = ("parameters", "session", "encryption", "verification", "authority")
_PLACES = ("places", "serving", "upload", "total", "recovered")
_SERVER = ("format", *_SESSION, "epoch", "phase", "keys", "signature", *_PLACES)
_AUTHORITY = ("format", *_SESSION, "signing", "ring", "epoch", "is_open", "seats")
_USER = ("format", *_SESSION, "user", "signing", "phase", "update", "stamp", "offer", "last")
_SERVER_PHASES = ("idle", "filling", "serving", "settling", "closing")
_USER_PHASES = ("idle", "asked", "fetched")
_SEATS = ("assigned", "keyed", "accepted", "skipped")
_State = TypeVar("_State")


# ---------------------------------------------------------------------------------------------------- the server


def store_server(state: server.ServerState) -> dict[str, Any]:
    """Return the state of a server as JSON data (BAA-44)."""
    return {
        "format": SERVER_FORMAT,
        **_stored_session(state.session),
        "epoch": state.epoch,
        "phase": state.phase,
        "keys": state.keys.hex(),
        "signature": state.signature.hex(),
        "places": [{**asdict(place), "boxes": [box.hex() for box in place.boxes]} for place in state.places],
        "serving": state.serving,
        "upload": _stored_message(state.upload),
        "total": _stored_vector(state.total),
        "recovered": None if state.recovered is None else _stored_sum(state.recovered),
    }


def restore_server(data: Mapping[str, Any], encryption: boxes.Encryption = boxes.PER_POSITION) -> server.ServerState:
    """Return the server that resumes from the data of `store_server` (BAA-44).

    Raises
    ------
    ParameterError
        The data is not what `store_server` returns, or no steps lead to the state.
    """
    return _restored(data, SERVER_FORMAT, _SERVER, lambda: _server(data, encryption), store_server)


def _server(data: Mapping[str, Any], encryption: boxes.Encryption) -> server.ServerState:
    known, epoch = _session(data, encryption), data["epoch"]
    for name, last in (("epoch", messages.LAST_EPOCH), ("serving", known.parameters.N - 1)):
        if data[name] is not None:
            validate.integer(name, data[name], 0, last)
    start = server.server_start(known.parameters, known.id, epoch, **_public(known))
    places = tuple(_place(known, at, value) for at, value in _positions(known, "places", data["places"]))
    recovered = None if data["recovered"] is None else _sum(known, data["recovered"])
    state = replace(
        start,
        phase=_one_of("phase", data["phase"], _SERVER_PHASES),
        keys=validate.from_hex("keys", data["keys"]),
        signature=validate.from_hex("signature", data["signature"]),
        places=places,
        serving=data["serving"],
        total=None if data["total"] is None else _vector(known, "total", data["total"]),
        recovered=recovered,
    )
    _check_server(state)
    return _with_upload(state, _message("upload", messages.PositionUpload, data["upload"]))


def _check_server(state: server.ServerState) -> None:
    """Refuse the state of a server that no steps lead to."""
    _check_recovered(state)
    if state.phase == "idle":
        stored = store_server(state)
        nothing = store_server(server.ServerState(state.session, state.epoch, recovered=state.recovered))
        if there := {name: value for name, value in stored.items() if value != nothing[name]}:
            raise ParameterError(", ".join(there), [*there.values()], "empty while the server is idle")
        return
    if state.epoch is None or state.total is None:
        raise ParameterError("epoch, total", [state.epoch, state.total], f"there while {state.phase}")
    with _taken("keys, signature", "those that the authority signed for this epoch and these parameters"):
        state.session.check_keys(
            messages.EpochKeys(state.session.id, state.epoch, AUTHORITY, SERVER, state.keys, state.signature)
        )
    _check_places(state)
    if not state.entries and state.total.any():
        raise ParameterError("total", state.total, "zero while no update is accepted")


def _check_places(state: server.ServerState) -> None:
    p, users = state.session.parameters, [place.user for place in state.places]
    serving = state.phase in ("serving", "settling")
    if serving:
        if state.serving is None:
            raise ParameterError("serving", None, f"a user while {state.phase}")
        users.append(state.serving)
    elif state.serving is not None:
        raise ParameterError("serving", state.serving, f"nobody while {state.phase}")
    if len(set(users)) != len(users) or len(users) > p.positions or len(state.entries) + serving > p.K:
        raise ParameterError("places", users, "different users, at most P of them, and at most K accepted")
    if len(state.entries) == p.K and not state.places[-1].accepted:
        raise ParameterError("places", users, "none skipped after K that are accepted")
    if not p.settle and len(state.entries) < len(state.places):
        raise ParameterError("places", users, 'accepted ones with the timeouts "void"')


def _with_upload(state: server.ServerState, upload: messages.PositionUpload | None) -> server.ServerState:
    """Return the server with an upload; refuse an upload that it would not have taken."""
    if upload is None:
        return state
    if state.phase != "settling":
        raise ParameterError("upload", upload, f"none while {state.phase}")
    with _taken("upload", "one that the server took"):
        return server.server_take.take(replace(state, phase="serving"), (upload,), randomness={})[0]


def _place(known: messages.Session, at: int, given: object) -> server.Place:
    value = validate.members("places", given, server.Place)
    place = server.Place(**{**value, "boxes": _pieces("boxes", value["boxes"])})
    validate.integer("user", place.user, 0, known.parameters.N - 1)
    if not isinstance(place.accepted, bool):
        raise ParameterError("accepted", validate.class_of(place.accepted), "true or false")
    validate.integer("weight", place.weight, *((1, known.parameters.c_g) if place.accepted else (0, 0)))
    if len(place.boxes) != (known.box_count(at) if place.accepted else 0):
        raise ParameterError("boxes", len(place.boxes), f"those of position {at}, or none of a skipped one")
    for box in place.boxes:
        messages.check_length("box", box, known.encryption.box_bytes)
    return place


def _stored_sum(recovered: server.Recovered) -> dict[str, Any]:
    """Return the sum of an epoch without its average, which follows from the rest."""
    entries = [asdict(entry) for entry in recovered.entries]
    return {"epoch": recovered.epoch, "entries": entries, "sum": codec.vector_bytes(recovered.sum).hex()}


def _sum(known: messages.Session, given: object) -> server.Recovered:
    value = validate.members("recovered", given, ("epoch", "entries", "sum"))
    listed = validate.sequence("entries", value["entries"], "accepted updates")
    p, entries = known.parameters, tuple(server.Entry(**validate.members("entries", e, server.Entry)) for e in listed)
    check_accepted("entries", [entry.position for entry in entries], p.positions)
    validate.users("entries", [entry.user for entry in entries], p.N)
    validate.integer("len(entries)", len(entries), p.T + 2, p.K)
    weights = np.array([validate.integer("weight", e.weight, 1, p.c_g) for e in entries], dtype=np.uint64)
    total = _vector(known, "sum", value["sum"])
    mean = frozen(average(p.ring, p.c_l, weights, total))
    return server.Recovered(validate.integer("epoch", value["epoch"], 0, messages.LAST_EPOCH), entries, total, mean)


def _check_recovered(state: server.ServerState) -> None:
    if state.recovered is not None:
        newest = -1 if state.epoch is None else state.epoch - (state.phase != "idle")
        validate.integer("recovered", state.recovered.epoch, 0, newest)


# ------------------------------------------------------------------------------------------------- the authority


def store_authority(state: authority.AuthorityState) -> dict[str, Any]:
    """Return the state of an authority, with its secret keys, as JSON data."""
    return {
        "format": AUTHORITY_FORMAT,
        **_stored_session(state.session),
        "signing": state.signing.hex(),
        "ring": state.ring.stored().hex(),
        "epoch": state.epoch,
        "is_open": state.is_open,
        "seats": [{**asdict(seat), "hashes": [value.hex() for value in seat.hashes]} for seat in state.seats],
    }


def restore_authority(data: Mapping[str, Any], ring: boxes.KeyRing | None = None) -> authority.AuthorityState:
    """Return the authority that resumes from the data of `store_authority`; `ring` must be of the same kind as before.

    Raises
    ------
    ParameterError
        The data is not what `store_authority` returns, or no steps lead to the state.
    """
    made = boxes.PositionKeys() if ring is None else ring
    return _restored(data, AUTHORITY_FORMAT, _AUTHORITY, lambda: _authority(data, made), store_authority)


def _authority(data: Mapping[str, Any], ring: boxes.KeyRing) -> authority.AuthorityState:
    known = _session(data, ring.encryption)
    signing, epoch, is_open = validate.from_hex("signing", data["signing"]), data["epoch"], data["is_open"]
    validate.integer("epoch", epoch, 0, messages.LAST_EPOCH + 1)
    if not isinstance(is_open, bool) or (is_open and epoch > messages.LAST_EPOCH):
        raise ParameterError("is_open", is_open, "true or false, and false after the last epoch")
    start = authority.authority_start(
        known.parameters, known.id, 0, signing=signing, verification=known.verification, ring=ring
    )
    if start.session.authority != known.authority:
        raise ParameterError("authority", known.authority, "the verification key of the signing key")
    with _taken("ring", "the keys of the authority as they were stored"):
        last = min(epoch, messages.LAST_EPOCH)  # after the last epoch none is open, and the ring has no keys of one
        keys = ring.restored(known.epoch(last), validate.from_hex("ring", data["ring"]), is_open)
    seats = tuple(_seat(known, at, value) for at, value in _positions(known, "seats", data["seats"]))
    state = replace(start, ring=keys, epoch=epoch, is_open=is_open, seats=seats)
    _check_seats(state)
    return state


def _seat(known: messages.Session, at: int, given: object) -> authority.Seat:
    value = validate.members("seats", given, authority.Seat)
    seat = authority.Seat(**{**value, "hashes": _pieces("hashes", value["hashes"])})
    validate.integer("user", seat.user, 0, known.parameters.N - 1)
    _one_of("seats", seat.state, _SEATS if known.parameters.settle else _SEATS[:3])
    if len(seat.hashes) != (known.box_count(at) if seat.state == "accepted" else 0):
        raise ParameterError("hashes", len(seat.hashes), f"those of position {at}, or none where nothing is accepted")
    for value_ in seat.hashes:
        messages.check_length("hash", value_, messages.HASH_BYTES)
    return seat


def _check_seats(state: authority.AuthorityState) -> None:
    """Refuse positions that no steps lead to."""
    p, users = state.session.parameters, [seat.user for seat in state.seats]
    if state.seats and not state.is_open:
        raise ParameterError("seats", users, "none while no epoch is open")
    if len(set(users)) != len(users) or len(users) > p.positions or len(state.accepted) > p.K:
        raise ParameterError("seats", users, "different users, at most P of them, and at most K accepted")
    if any(seat.state in ("assigned", "keyed") for seat in state.seats[:-1]):
        raise ParameterError("seats", [seat.state for seat in state.seats], "settled, all but the last")
    if len(state.accepted) == p.K and state.accepted[-1] < len(users) - 1:
        raise ParameterError("seats", [seat.state for seat in state.seats], "nothing after K that are accepted")


# ------------------------------------------------------------------------------------------------------- a user


def store_user(state: user.UserState) -> dict[str, Any]:
    """Return the state of a user, with its update and signing key, as JSON data."""
    return {
        "format": USER_FORMAT,
        **_stored_session(state.session),
        "user": state.user,
        "signing": state.signing.hex(),
        "phase": state.phase,
        "update": _stored_vector(state.update),
        "stamp": state.stamp,
        "offer": _stored_message(state.offer),
        "last": state.last,
    }


def restore_user(data: Mapping[str, Any], encryption: boxes.Encryption = boxes.PER_POSITION) -> user.UserState:
    """Return the user that resumes from the data of `store_user`.

    Raises
    ------
    ParameterError
        The data is not what `store_user` returns, or no steps lead to the state.
    """
    return _restored(data, USER_FORMAT, _USER, lambda: _user(data, encryption), store_user)


def _user(data: Mapping[str, Any], encryption: boxes.Encryption) -> user.UserState:
    known = _session(data, encryption)
    signing, phase = validate.from_hex("signing", data["signing"]), _one_of("phase", data["phase"], _USER_PHASES)
    start = user.user_start(known.parameters, known.id, data["user"], signing=signing, **_public(known))
    update = None if data["update"] is None else _vector(known, "update", data["update"])
    stamp, offer = (
        validate.integer("stamp", data["stamp"], 0, messages.LAST_EPOCH),
        _message("offer", messages.PositionOffer, data["offer"]),
    )
    if (update is None and (stamp or phase != "idle")) or (offer is None) is (phase == "fetched"):
        raise ParameterError("phase", phase, "one that the update and the offer allow")
    last = None if data["last"] is None else validate.integer("last", data["last"], 0, messages.LAST_EPOCH)
    state = replace(start, phase=phase, update=update, stamp=stamp, last=last)
    if offer is None:
        return state
    with _taken("offer", "one that the user took for its update"):
        return user.user_fetch.take(replace(state, phase="asked"), (offer,), randomness={})[0]


# ------------------------------------------------------------------------------------------------------- helpers


def _restored(
    data: Mapping[str, Any],
    format: str,
    members: tuple[str, ...],
    make: Callable[[], _State],
    store: Callable[[_State], dict[str, Any]],
) -> _State:
    """Return the state that `make` builds from stored data; refuse wrong data as the caller's misuse."""
    given = validate.mapping("data", data).get("format")
    if not isinstance(given, str) or given != format:
        raise ParameterError("format", given, format)
    validate.members("data", data, members)
    state = make()
    validate.stored(data, store(state))
    return state


@contextmanager
def _taken(name: str, allowed: str) -> Iterator[None]:
    """Turn the refusal of what a party received into the caller's misuse: stored data has something else as `name`."""
    try:
        yield
    except ProtocolError as error:
        raise ParameterError(name, str(error), allowed) from error


def _stored_session(session: messages.Session) -> dict[str, Any]:
    return {
        "parameters": asdict(session.parameters),
        "session": session.id.hex(),
        "encryption": session.encryption.name,
        "verification": [key.hex() for key in session.verification.keys],
        "authority": session.authority.hex(),
    }


def _session(data: Mapping[str, Any], encryption: boxes.Encryption) -> messages.Session:
    _one_of("encryption", data["encryption"], (encryption.name,))
    numbers = validate.members("parameters", data["parameters"], Parameters)
    function = Staleness(**validate.members("staleness", numbers["staleness"], Staleness))
    parameters = Parameters(**{**numbers, "staleness": function})
    try:
        roster = Roster(_pieces("verification", data["verification"]))
    except ParameterError as error:
        raise type(error)(error.parameter.replace("keys", "verification"), error.value, error.allowed) from None
    session, authority = (validate.from_hex(name, data[name]) for name in ("session", "authority"))
    return messages.Session(parameters, session, encryption, roster, authority)


def _positions(known: messages.Session, name: str, values: object) -> Iterator[tuple[int, object]]:
    """Return what is stored of positions, with their numbers."""
    listed = validate.sequence(name, values, name)
    if len(listed) > known.parameters.positions:
        raise ParameterError(name, f"{len(listed)} positions", f"at most P = {known.parameters.positions}")
    return enumerate(listed)


def _public(known: messages.Session) -> dict[str, Any]:
    return {name: getattr(known, name) for name in ("verification", "authority", "encryption")}


def _stored_message(message: codec.Message | None) -> str | None:
    return None if message is None else codec.encode(message).hex()


def _message(name: str, kind: type[codec.AnyMessage], value: object) -> codec.AnyMessage | None:
    if value is None:
        return None
    with _taken(name, f"a message {kind.__name__} as it was stored"):
        return codec.decode(kind, validate.from_hex(name, value))


def _pieces(name: str, values: object) -> tuple[bytes, ...]:
    """Return bytes that are stored as a list of hex digits."""
    listed = validate.sequence(name, values, "hex digits")
    return tuple(validate.from_hex(f"{name}[{at}]", value) for at, value in enumerate(listed))


def _stored_vector(vector: UintArray | None) -> str | None:
    return None if vector is None else codec.vector_bytes(vector).hex()


def _vector(known: messages.Session, name: str, value: object) -> UintArray:
    return frozen(known.parameters.ring.check(name, codec.stored_vector(name, value), (known.parameters.d,)))


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(name, value, f"one of {', '.join(allowed)}")
    return value


guard(__name__)
