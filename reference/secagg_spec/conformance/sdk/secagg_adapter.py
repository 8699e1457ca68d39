"""Write an adapter in about 20 lines of Python. This single file needs only the standard library; copy it anywhere.

    from secagg_adapter import Adapter, Reject, pack, unpack

    adapter = Adapter("my-library", "1.2.3")

    @adapter.operation("field.add")
    def add(q, a, b):
        return {"value": pack([(x + y) % int(q) for x, y in zip(unpack(a), unpack(b))])}

    if __name__ == "__main__":
        adapter.run()

A handler receives the members of ``params`` by name and, if its operation takes randomness, ``rand`` as one argument.
Their form has already been checked: types, hex digits, decimal digits. The implementation must refuse the rest.
The handler returns the members of ``result`` or raises `Reject`; any other exception becomes an ``error``.
Text that the implementation prints goes to standard error.

Source: spec/adapter.md.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final, NoReturn

PROTOCOL: Final = (1, 1)
MAX_LINE: Final = 67_108_864

_LIGHT: Final = ("q", "N", "D", "U", "T", "d")
_SESSION: Final = (*_LIGHT, "session", "round")
_SECRETS: Final = ("sealing_key", "masking_key", "self_seed", "key_coefficients", "seed_coefficients")
_STALENESS: Final = ("kind", "numerator", "denominator", "start")
_STAMPED: Final = (*_LIGHT, "K", "c_l", "c_g", "tau_max", *_STALENESS)
_BASA: Final = ("R", "N", "T", "d", "K", "S", "c_l", "c_g", "tau_max", *_STALENESS, "timeouts")
_HETEROSAG: Final = ("N", "D", "T", "t", "d", "sizes", "subgroups", "levels", "range", "matrix")
_NEIGHBOURS: Final = ("R", "N", "D", "T", "t", "k", "d")
_BATCHES: Final = ("N", "K", "T")
_BOX: Final = (*_BASA, "session", "round", "sender", "from", "to", "purpose")
_SIGNED: Final = ("protocol", "parameters", "session", "round", "purpose", "type", "signer", "content")
NUMBERS: Final[dict[str, tuple[str, ...]]] = {
    "lightsecagg": _LIGHT,
    "lightsecagg-active": (*_LIGHT, "W"),
    "secagg": _NEIGHBOURS,
    "secagg-active": _NEIGHBOURS,
    "basecagg": _STAMPED,
    "basecagg-active": (*_STAMPED, "W"),
    "basa": _BASA,
    "heterosag": _HETEROSAG,
}
"""For each protocol with sessions, its parameters: the members of ``numbers``."""

PARTIES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "lightsecagg.user": (("user", "channel", "update"), ("mask", "noise")),
    "lightsecagg.server": ((), ()),
    "lightsecagg-active.user": (
        ("user", "private", "signing", "roster", "verification", "update"),
        ("mask", "noise"),
    ),
    "lightsecagg-active.server": (("roster", "verification"), ()),
    "secagg.user": (("user", "order", "update"), _SECRETS),
    "secagg.server": (("order",), ()),
    "secagg-active.user": (("user", "signing", "verification", "update"), _SECRETS),
    "secagg-active.server": (("verification",), ()),
    "basecagg.user": (("user", "channel", "updates"), ("masks", "noises")),
    "basecagg.server": ((), ("roundings",)),
    "basecagg-active.user": (
        ("user", "private", "signing", "roster", "verification", "updates"),
        ("masks", "noises"),
    ),
    "basecagg-active.server": (("roster", "verification"), ("roundings",)),
    "basa.user": (
        ("user", "signing", "authority", "verification", "updates", "stamps"),
        ("seeds", "box_keys", "roundings"),
    ),
    "basa.server": (("authority", "verification"), ()),
    "basa.authority": (("signing", "verification"), ("pair_keys", "self_keys")),
    "heterosag.user": (("user", "past", "update"), _SECRETS),
    "heterosag.server": (("past",), ()),
}
"""The parties that ``session.new`` can open: the members of ``setup``, and the names of the sampled values."""


def _scripts(protocol: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the operations that play scripts of a protocol's parties: what sessions get, in one request."""
    parties = {party: known for party, known in PARTIES.items() if party.partition(".")[0] == protocol}
    return {
        party.replace("-", "_"): ((*NUMBERS[protocol], "session", "round", *setup, "steps"), drawn)
        for party, (setup, drawn) in parties.items()
    }


OPERATIONS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "echo": (("data",), ()),
    "field.add": (("q", "a", "b"), ()),
    "field.subtract": (("q", "a", "b"), ()),
    "field.multiply": (("q", "a", "b"), ()),
    "field.inverse": (("q", "a"), ()),
    "field.matmul": (("q", "rows", "inner", "columns", "a", "b"), ()),
    "sample.field": (("q", "n", "bytes"), ()),
    "mds.encode": (("q", "N", "U", "T", "mask"), ("noise",)),
    "mds.decode": (("q", "N", "U", "T", "d", "users", "shares"), ()),
    "quantizer.quantize": (("q", "level", "weight", "x"), ("rounding",)),
    "quantizer.dequantize": (("q", "level", "format", "value"), ()),
    "lightsecagg.mask": (("q", "update", "mask"), ()),
    "lightsecagg.aggregate_shares": (("q", "N", "T", "surviving", "held"), ()),
    "lightsecagg.recover": (("q", "N", "D", "U", "T", "d", "surviving", "masked", "users", "shares"), ()),
    "lightsecagg.round": (("q", "N", "D", "U", "T", "d", "updates", "drop"), ("masks", "noises")),
    "prg.expand": (("q", "key", "n"), ()),
    "key.agree": (("private", "public"), ()),
    "key.derive": (
        ("protocol", "parameters", "secret", "session", "round", "sender", "receiver", "sender_key", "receiver_key"),
        (),
    ),
    "seal.close": ((*_SESSION, "sender", "private", "roster", "type", "plaintexts"), ()),
    "seal.open": ((*_SESSION, "sender", "receiver", "private", "roster", "type", "payload"), ()),
    "pair.agree": ((), ()),
    "pair.seal": (("plaintext", "sender", "receiver", "alter"), ()),
    "message.encode": (("type", "session", "round", "sender", "receiver", "fields"), ()),
    "message.decode": (("type", "bytes"), ()),
    **_scripts("lightsecagg"),
    "signature.sign": ((*_SIGNED, "private"), ()),
    "signature.verify": ((*_SIGNED, "public", "signature"), ()),
    **_scripts("lightsecagg-active"),
    "shamir.share": (("t", "n", "secret"), ("coefficients",)),
    "shamir.reconstruct": (("t", "users", "shares"), ()),
    "session.new": (("handle", "protocol", "role", "numbers", "session", "round", "setup"), ()),
    "session.step": (("handle", "phase", "inbox"), ()),
    "session.again": (("handle", "round", "setup"), ()),
    "session.free": (("handle",), ()),
    **_scripts("secagg"),
    **_scripts("secagg-active"),
    "basecagg.rounds": ((*_STAMPED, "round", "updates", "schedule"), ("masks", "noises", "roundings")),
    **_scripts("basecagg"),
    **_scripts("basecagg-active"),
    **_scripts("basa"),
    "secagg.average": (
        ("R", "N", "t", "k", "clip", "level", "max_weight", "weights", "x", "drop"),
        ("rounding",),
    ),
    "secagg.unmasking": (("N", "t", "k", "drop", "user", "requests"), ()),
    "secagg.recovery": (
        ("R", "N", "t", "k", "clip", "level", "max_weight", "weights", "x", "drop", "user", "owner", "kind"),
        ("rounding",),
    ),
    "staleness.weight": (("kind", "numerator", "denominator", "start", "level", "tau"), ("rounding",)),
    "basecagg.encode": (("q", "K", "c_l", "c_g", "x"), ("rounding",)),
    "basecagg.mask": (("q", "K", "c_g", "update", "mask"), ()),
    "basecagg.combine": (
        ("q", "N", "T", "K", "c_g", "tau_max", *_STALENESS, "round", "users", "stamps", "weights", "held"),
        (),
    ),
    "basecagg.recover": (("q", "N", "U", "T", "d", "c_l", "weights", "masked", "users", "shares"), ()),
    "basa.mask": (
        (*_BASA, "session", "round", "position", "accepted", "before", "seeds", "weight", "update"),
        (),
    ),
    "basa.seal": ((*_BOX, "public", "seed"), ("box_key",)),
    "basa.open": ((*_BOX, "private", "box"), ()),
    "basa.recover": ((*_BASA, "session", "round", "accepted", "weights", "masked", "own", "skipped"), ()),
    "basa.epochs": ((*_BASA, "session", "round", "updates", "schedule"), ("roundings",)),
    "quantize.levels": (("levels", "range", "clip", "x"), ("rounding",)),
    "segment.plan": (_HETEROSAG, ()),
    "heterosag.average": (("range", "levels", "counts", "sums", "method", "trim"), ()),
    "heterosag.request": ((*_HETEROSAG, "requests"), ()),
    "heterosag.mask": ((*_HETEROSAG, "session", "round", "user", "self_seed", "keys", "secrets", "update"), ()),
    "heterosag.unmask": (
        (*_HETEROSAG, "session", "round", "keys", "survivors", "segments", "self_seeds", "secrets"),
        (),
    ),
    "heterosag.round": ((*_HETEROSAG, "clip", "x", "method", "trim", "drop"), ("rounding",)),
    **_scripts("heterosag"),
    "select.family": (_BATCHES, ()),
    "select.batch": ((*_BATCHES, "strategy", "frequencies", "available"), ("draws",)),
    "select.session": ((*_BATCHES, "session", "round", "chosen"), ()),
    "select.complete": ((*_BATCHES, "c", "arrived"), ()),
    "select.request": ((*_BATCHES, "c", "user", "chosen", "survivors"), ()),
    "audit.privacy": (("N", "rounds"), ()),
}
"""Each operation of the adapter protocol: the members of ``params``, and the names of its sampled values.

For ``session.new`` and ``session.again``, the sampled values depend on the party: see `PARTIES`.
"""

REMEMBERED: Final = ("user", "past")
"""The members of ``setup`` that a party keeps, so that a later round does not pass them again."""

WITHOUT_ROUNDS: Final = ("basecagg", "basecagg-active", "basa")
"""The protocols whose parties do not continue from round to round."""

DRAWING: Final = frozenset({name for name, (_, drawn) in OPERATIONS.items() if drawn} | {"pair.agree", "pair.seal"})
"""The operations that draw if they get no sampled values; the pair operations draw keys in every call."""

FORMS: Final[dict[str, str]] = {
    **dict.fromkeys(("q", "R", "level", "round"), "decimal"),
    **dict.fromkeys(("N", "D", "U", "T", "d", "n", "rows", "inner", "columns", "weight"), "integer"),
    **dict.fromkeys(("user", "sender", "receiver", "type", "W", "signer", "t", "k"), "integer"),
    **dict.fromkeys(("message.encode.sender", "message.encode.receiver"), "party"),
    **dict.fromkeys(("a", "b", "mask", "update", "value", "noise"), "vector"),
    **dict.fromkeys(("shares", "masked", "updates", "masks", "noises"), "vectors"),
    **dict.fromkeys(("x", "rounding"), "reals"),
    **dict.fromkeys(("users", "surviving", "order"), "users"),
    **dict.fromkeys(("bytes", "session", "key", "private", "public", "secret", "payload"), "bytes"),
    **dict.fromkeys(("sender_key", "receiver_key", "signing", "signature"), "bytes"),
    "coefficients": "bytes",
    "shamir.reconstruct.shares": "bytes list",
    **dict.fromkeys(PARTIES["secagg.user"][1], "bytes"),
    **dict.fromkeys(("format", "protocol", "purpose", "handle", "role", "phase"), "text"),
    **dict.fromkeys(("roster", "verification", "content", "inbox"), "bytes list"),
    **dict.fromkeys(("session.new.numbers", "session.new.setup", "session.again.setup"), "object"),
    "plaintexts": "parcels",
    "plaintext": "bytes",
    "alter": "alteration",
    "parameters": "numbers",
    "fields": "object",
    "steps": "list",
    "R": "decimal",
    **dict.fromkeys(("t", "k", "clip", "max_weight"), "integer"),
    **dict.fromkeys(("secagg.average.x", "secagg.average.rounding"), "reals list"),
    **dict.fromkeys(("secagg.recovery.x", "secagg.recovery.rounding"), "reals list"),
    **dict.fromkeys(("secagg.average.drop", "secagg.recovery.drop"), "round drop"),
    **dict.fromkeys(("owner", "numerator", "denominator"), "integer"),
    **dict.fromkeys(("start", "tau"), "decimal"),
    "kind": "text",
    "secagg.unmasking.drop": "early drop",
    **dict.fromkeys(("K", "tau_max"), "integer"),
    **dict.fromkeys(("c_l", "c_g"), "decimal"),
    "roundings": "reals list",
    "schedule": "schedule",
    "weights": "users",
    **dict.fromkeys(("stamps", "basecagg.combine.weights"), "words"),
    "basecagg.combine.held": "stamped shares",
    "basecagg.recover.weights": "vector",
    **dict.fromkeys(("S", "position", "from", "to"), "integer"),
    "timeouts": "text",
    "accepted": "users",
    **dict.fromkeys(("before", "own"), "bytes list"),
    **dict.fromkeys(("seeds", "box_key", "box", "basa.seal.seed"), "bytes"),
    "basa.recover.weights": "vector",
    "skipped": "skipped seeds",
    "basa.epochs.schedule": "epoch schedule",
    "basa.epochs.roundings": "reals",
    "authority": "bytes",
    "basa.user.roundings": "reals",
    **dict.fromkeys(("basa.user.seeds", "box_keys", "pair_keys", "self_keys"), "bytes list"),
    **dict.fromkeys(("sizes", "subgroups", "levels"), "users"),
    "range": "reals",
    **dict.fromkeys(("matrix", "method"), "text"),
    "quantize.levels.levels": "decimal",
    "quantize.levels.clip": "flag",
    "counts": "users",
    "sums": "vectors",
    "trim": "integer",
    "heterosag.request.requests": "lists of users",
    **dict.fromkeys(("keys", "segments", "self_seeds"), "bytes list"),
    "heterosag.mask.secrets": "parcels",
    "heterosag.unmask.secrets": "skipped seeds",
    "survivors": "users",
    "past": "lists of users",
    **dict.fromkeys(("heterosag.round.x", "heterosag.round.rounding"), "reals list"),
    "heterosag.round.clip": "flag",
    "heterosag.round.drop": "round drop",
    "c": "integer",
    "strategy": "text",
    **dict.fromkeys(("frequencies", "available", "draws", "chosen", "arrived"), "users"),
    "rounds": "lists of users",
    "requests": "requests",
    "held": "held",
    "drop": "drop",
    "seed": "seed",
}
"""The form of each member of ``params`` and ``rand``, by name; see `form`."""


def form(operation: str, member: str) -> str:
    """Return the form of a member of an operation; a member without a form may be any JSON value."""
    return FORMS.get(f"{operation}.{member}", FORMS.get(member, "json"))


class Reject(Exception):
    """The implementation refuses on purpose. `code` is one of the reject codes of the adapter protocol.

    `blamed` are the parties that the refusal of a step blames: users by number, ``"server"``, ``"authority"``.
    """

    def __init__(self, code: str, message: str = "", blamed: Sequence[int | str] = ()) -> None:
        super().__init__(message or code)
        self.code = code
        self.blamed = list(blamed)

    def answer(self) -> dict[str, Any]:
        """Return the member ``reject`` of an answer."""
        return {"code": self.code, "message": str(self), **({"blamed": self.blamed} if self.blamed else {})}


class Unsupported(Exception):
    """These parameters are outside the adapter's declaration."""


class Adapter:
    """The operations of one implementation, and the loop that answers requests.

    Parameters
    ----------
    name, version, language : str
        The implementation under test.
    randomness : {"explicit", "seeded", "none"}
        The randomness grade of the operations that take randomness.
    policy, reject_map : dict, optional
        As in the adapter protocol, section 2.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        language: str = "python",
        randomness: str = "explicit",
        policy: dict[str, str] | None = None,
        reject_map: dict[str, str] | None = None,
    ) -> None:
        self.hello: dict[str, Any] = {
            "protocol": list(PROTOCOL),
            "implementation": {"name": name, "version": version, "language": language},
            "randomness": randomness,
            "operations": {},
            "policy": policy or {},
            "reject_map": reject_map or {},
        }
        self._handlers: dict[str, Callable[..., dict[str, Any]]] = {}
        self._parties: dict[str, str] = {}

    def operation(self, name: str, **declaration: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare an operation; `declaration` may hold ``ranges``, ``parameter_sets``, ``randomness``, ``composed``.

        The declaration of ``session.new`` has ``parties``, a list of names from `PARTIES`.
        """
        if name not in OPERATIONS:
            raise ValueError(f"{name!r} is not an operation of the adapter protocol: {', '.join(OPERATIONS)}")

        def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
            self.hello["operations"][name] = declaration
            self._handlers[name] = handler
            return handler

        return declare

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the answer to one request, given as the JSON value of its line, or ``None`` if it is not JSON."""
        if not is_request(request):
            return {"id": None, "reject": {"code": "malformed", "message": "a request is an object with an integer id"}}
        try:
            return {"id": request["id"], "result": self._result(request)}
        except Reject as reject:
            return {"id": request["id"], "reject": reject.answer()}
        except Unsupported:
            return {"id": request["id"], "unsupported": True}
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return {"id": request["id"], "error": {"message": message, "trace": traceback.format_exc()}}

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        check_members(request)
        if request["op"] == "hello":
            return self.hello
        if request["op"] not in self._handlers:
            raise Unsupported
        result = dict(self._handlers[request["op"]](**self._arguments(request["op"], request)))
        self._note_sessions(request["op"], request["params"])
        return result

    def _note_sessions(self, operation: str, params: dict[str, Any]) -> None:
        """Record the party of each open session, to check the form of what ``session.again`` passes to it."""
        if operation == "session.new":
            self._parties[params["handle"]] = f"{params['protocol']}.{params['role']}"
        elif operation == "session.free":
            self._parties.pop(params["handle"], None)

    def _arguments(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        params, rand = request["params"], request.get("rand", {})
        names, drawn = OPERATIONS[operation]
        if set(params) != set(names):
            raise Reject("malformed", f"params of {operation} are {', '.join(names)}")
        for name, value in params.items():
            check_form(name, value, form(operation, name))
        declared, owner = self.hello["operations"][operation], operation
        if operation == "session.new":
            drawn = check_party(params, declared.get("parties", ()))
            owner = f"{params['protocol']}.{params['role']}"
        elif operation == "session.again":
            declared, party = self.hello["operations"].get("session.new", {}), self._parties.get(params["handle"])
            drawn, owner = check_again(params, party), str(party)
        grade = declared.get("randomness", self.hello["randomness"])
        expected = {"explicit": set(drawn), "seeded": {"seed"} if drawn else set(), "none": set()}[grade]
        if set(rand) != expected:
            raise Reject("malformed", f"rand of {operation} has the names {sorted(expected)}")
        for name, value in rand.items():
            check_form(name, value, form(owner, name))
        opening = operation in ("session.new", "session.again")
        return {**params, "rand": rand} if drawn or opening else dict(params)

    def run(self, stdin: BinaryIO | None = None) -> None:
        """Answer requests until the end of input. Only answers go to the process's standard output."""
        source = stdin or sys.stdin.buffer
        with os.fdopen(os.dup(1), "wb", buffering=0) as out:
            os.dup2(2, 1)
            for line in source:
                out.write(json.dumps(self.answer(_parse(line))).encode() + b"\n")


def _parse(line: bytes) -> Any:
    """Return the JSON value of a line, or ``None`` if it is not JSON."""
    try:
        return json.loads(line.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def is_request(value: Any) -> bool:
    """Return whether a JSON value is a request: an object with an integer ``id``."""
    return isinstance(value, dict) and _is_integer(value.get("id"))


def check_members(request: dict[str, Any]) -> None:
    """Refuse a request with unknown or missing members, besides ``id``, or with members of the wrong type."""
    unknown = sorted(set(request) - {"id", "op", "params", "rand"})
    if unknown:
        raise Reject("malformed", f"a request has no member {unknown[0]!r}")
    if not isinstance(request.get("op"), str):
        raise Reject("malformed", "op is a string")
    if not isinstance(request.get("params"), dict) or not isinstance(request.get("rand", {}), dict):
        raise Reject("malformed", "params is an object, and so is rand where it is given")


def check_party(params: dict[str, Any], declared: Sequence[str]) -> tuple[str, ...]:
    """Check the form of a ``session.new``, and return the names of the sampled values of the party that it opens."""
    party = f"{params['protocol']}.{params['role']}"
    if party not in PARTIES:
        raise Reject("bad_param", f"protocol and role are {party!r}; parties are {', '.join(PARTIES)}")
    if party not in declared:
        raise Unsupported
    setup, drawn = PARTIES[party]
    _check_part("numbers", params["numbers"], party, NUMBERS[params["protocol"]])
    _check_part("setup", params["setup"], party, setup)
    return drawn


def check_again(params: dict[str, Any], party: str | None) -> tuple[str, ...]:
    """Return the names of the sampled values of a party that ``session.again`` takes to a later round.

    `party` is the name of the party whose session has the handle, or ``None`` if no session has it.
    """
    if party is None:
        raise Reject("bad_param", f"no session {params['handle']!r} is open")
    if party.partition(".")[0] in WITHOUT_ROUNDS:
        raise Unsupported
    setup, drawn = PARTIES[party]
    _check_part("setup", params["setup"], party, [name for name in setup if name not in REMEMBERED])
    return drawn


def _check_part(part: str, given: dict[str, Any], party: str, names: Sequence[str]) -> None:
    if set(given) != set(names):
        raise Reject("malformed", f"{part} of {party} are {', '.join(names)}")
    for name, value in given.items():
        check_form(f"{part}.{name}", value, form(party, name))


def check_form(name: str, value: Any, form: str) -> None:
    """Refuse, as ``malformed``, a member that does not have the form of the protocol."""
    if form == "decimal":
        _check_decimal(name, value)
    elif not _has_form(value, form):
        raise Reject("malformed", f"{name} does not have its form, {_WORDS.get(form, form)}")


def check_users(name: str, users: Sequence[int], N: int) -> None:
    """Refuse a list that names a user twice, or a user outside ``[0, N)``."""
    unknown = [user for user in users if not 0 <= user < N]
    if unknown:
        raise Reject("unknown_peer", f"{name} names user {unknown[0]}; users are in [0, {N})")
    if len(set(users)) != len(users):
        raise Reject("duplicate_id", f"{name} names a user twice")


def check_drop(drop: dict[str, list[int]], N: int) -> None:
    """Refuse dropouts that name a user twice, in one phase or in two, or a user outside ``[0, N)``."""
    check_users("drop", [user for users in drop.values() for user in users], N)


def _check_decimal(name: str, value: Any) -> None:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise Reject("malformed", f"{name} is a decimal string")
    if len(value) > _DIGITS:
        raise Reject("bad_param", f"{name} has {len(value)} digits")


def _has_form(value: Any, form: str) -> bool:
    forms: dict[str, Callable[[Any], bool]] = {
        "json": lambda value: True,
        "integer": _is_integer,
        "flag": lambda value: type(value) is bool,
        "text": lambda value: isinstance(value, str),
        "bytes": lambda value: _is_hex(value, 1),
        "seed": lambda value: _is_hex(value, 32) and len(value) == 64,
        "vector": _is_vector,
        "reals": lambda value: _is_hex(value, 8),
        "vectors": lambda value: _is_list(value, _is_vector),
        "users": _is_users,
        "held": lambda value: _is_list(value, _is_share),
        "words": _is_vector,
        "stamped shares": lambda value: _is_list(value, _is_stamped_share),
        "skipped seeds": lambda value: _is_list(value, _is_skipped_seed),
        "drop": lambda value: _is_drop(value, PHASES),
        "round drop": lambda value: _is_drop(value, ROUND_PHASES),
        "early drop": lambda value: _is_drop(value, ROUND_PHASES[:-1]),
        "reals list": lambda value: _is_list(value, lambda entry: _is_hex(entry, 8)),
        "lists of users": lambda value: _is_list(value, _is_users),
        "requests": lambda value: _is_list(value, _is_unmask_request),
        "schedule": lambda value: _is_list(value, _is_event),
        "epoch schedule": lambda value: _is_list(value, _is_epoch_event),
        "list": lambda value: isinstance(value, list),
        "object": lambda value: isinstance(value, dict),
        "bytes list": lambda value: _is_list(value, lambda entry: _is_hex(entry, 1)),
        "parcels": lambda value: _is_list(value, lambda entry: _is_pair(entry, _is_integer, lambda b: _is_hex(b, 1))),
        "numbers": lambda value: _is_list(value, _is_number),
        "party": lambda value: value in ("server", "authority") or _is_integer(value),
        "alteration": lambda value: value is None or _is_alteration(value),
    }
    return forms[form](value)


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _is_hex(value: Any, width: int) -> bool:
    return isinstance(value, str) and not len(value) % (2 * width) and not _NOT_HEX.search(value)


def _is_list(value: Any, is_entry: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_entry, value))


def _is_vector(value: Any) -> bool:
    return _is_hex(value, 4)


def _is_users(value: Any) -> bool:
    return _is_list(value, _is_integer)


def _is_share(value: Any) -> bool:
    return _is_pair(value, _is_integer, _is_vector)


def _is_stamped_share(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    user, stamp, share = value
    return _is_integer(user) and _is_decimal(stamp) and _is_vector(share)


def _is_skipped_seed(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and _is_users(value[:2]) and _is_hex(value[2], 1)


def _is_number(value: Any) -> bool:
    return _is_pair(value, lambda name: isinstance(name, str), _is_decimal)


def _is_decimal(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _DIGITS and _DECIMAL.fullmatch(value) is not None


def _is_pair(value: Any, first: Callable[[Any], bool], second: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) == 2 and first(value[0]) and second(value[1])


def _is_alteration(value: Any) -> bool:
    known = ({"byte", "mask"}, {"sender"}, {"receiver"})
    return isinstance(value, dict) and set(value) in known and all(map(_is_integer, value.values()))


def _is_drop(value: Any, phases: Sequence[str]) -> bool:
    return isinstance(value, dict) and set(value) == set(phases) and all(map(_is_users, value.values()))


def _is_unmask_request(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"survivors", "dropped"} and all(map(_is_users, value.values()))


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event"), str):
        return False
    if value["event"] == "recover":
        return set(value) == {"event", "users"} and _is_users(value["users"])
    return value["event"] in EVENTS and set(value) == {"event", "user"} and _is_integer(value["user"])


def _is_epoch_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event"), str) or value["event"] not in EPOCH_EVENTS:
        return False
    if set(value) != {"event", *EPOCH_EVENTS[value["event"]]} or type(value.get("keyed", True)) is not bool:
        return False
    return value["event"] == "close" or (_is_integer(value["user"]) and _is_decimal(value["stamp"]))


PHASES: Final = ("share", "upload", "recover")
EVENTS: Final = ("start", "upload", "abandon", "recover")
EPOCH_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "upload": ("user", "stamp"),
    "expire": ("user", "stamp", "keyed"),
    "late": ("user", "stamp"),
    "close": (),
}
ROUND_PHASES: Final = ("advertise_keys", "share_keys", "masked_input", "unmasking")
_DECIMAL: Final = re.compile("-?(0|[1-9][0-9]*)")
_DIGITS: Final = 40
_NOT_HEX: Final = re.compile("[^0-9a-f]")
_WORDS: Final = {
    "integer": "a JSON integer",
    "flag": "true or false",
    "text": "a string",
    "bytes": "lowercase hex digits",
    "seed": "64 lowercase hex digits",
    "vector": "lowercase hex digits, 8 for each element",
    "reals": "lowercase hex digits, 16 for each number",
    "vectors": "a list of vectors in lowercase hex digits",
    "users": "a list of JSON integers",
    "lists of users": "a list of lists of JSON integers",
    "held": "a list of [user, vector]",
    "words": "lowercase hex digits, 8 for each number",
    "stamped shares": "a list of [user, decimal string, vector]",
    "skipped seeds": "a list of [integer, integer, bytes]",
    "list": "a list",
    "object": "an object",
    "bytes list": "a list of strings of lowercase hex digits",
    "parcels": "a list of [user, bytes]",
    "numbers": "a list of [name, decimal string]",
    "party": "a JSON integer, or the string 'server' or 'authority'",
    "alteration": "null, or an object with byte and mask, with sender, or with receiver",
    "drop": "an object with a list of users for each of the phases share, upload, recover",
    "round drop": "an object with a list of users for each of the phases " + ", ".join(ROUND_PHASES),
    "early drop": "an object with a list of users for each of the phases " + ", ".join(ROUND_PHASES[:-1]),
    "reals list": "a list of strings of lowercase hex digits, 16 for each number",
    "requests": "a list of objects with a list of users for survivors and for dropped",
    "epoch schedule": "a list of objects with event, and with what the table of this event has",
    "schedule": "a list of objects with event and user, or with event and users when the event is recover",
}


def unpack(text: str, width: int = 4) -> list[int]:
    """Return the unsigned integers of `width` bytes in a string of hex digits."""
    data = _unhex(text, width)
    return list(struct.unpack(f"<{len(data) // width}{'I' if width == 4 else 'Q'}", data))


def pack(values: Sequence[int]) -> str:
    """Return a vector of elements as hex digits."""
    return struct.pack(f"<{len(values)}I", *values).hex()


def unpack_reals(text: str) -> list[float]:
    """Return the binary64 numbers in a string of hex digits."""
    data = _unhex(text, 8)
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def pack_reals(values: Sequence[float], format: str = "binary64") -> str:
    """Return numbers as hex digits, each in 8 bytes (``binary64``) or 4 (``binary32``)."""
    return struct.pack(f"<{len(values)}{'d' if format == 'binary64' else 'f'}", *values).hex()


def _unhex(text: Any, width: int) -> bytes:
    if not _is_hex(text, width):
        raise Reject("malformed", f"a vector is a string of lowercase hex digits, {2 * width} for each entry")
    return bytes.fromhex(text)
