"""Vectors of SecAgg and SecAgg+: one party of a round, step by step, and whole rounds as each party sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from secagg_spec.arithmetic.shamir import ELEMENT_BYTES, element_bytes
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.checks.base import (
    BAD_PARAM,
    BAD_SHARE,
    LENGTH,
    MALFORMED,
    NONCANONICAL,
    OUTSIDE,
    TOO_FEW,
    TWICE,
)
from secagg_spec.conformance.checks.crypto import AGAIN, WEAK_KEY
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE
from secagg_spec.conformance.checks.scripts import (
    BAD_VECTOR,
    ELSEWHERE,
    NOT_ALLOWED,
    NOTHING_CAME,
    OUT_OF_TURN,
    SECOND,
    STRANGER,
)
from secagg_spec.conformance.checks.secagg import IN_ORDER, NOT_THESE, ORDER
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
)
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.conformance.vectors.played import (
    HEADER_FAULTS,
    Change,
    Fault,
    Scene,
    altered,
    besides,
    by,
    faulty,
    having,
    longer,
    no_party,
    same,
    shorter,
    taken,
    to,
)
from secagg_spec.conformance.vectors.shamir import MERSENNE
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.crypto.keys import public_key
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import SecretShares, SeedCommitment
from secagg_spec.protocols.steps import SERVER, Network

_TINY: dict[str, int] = {"R": 8, "N": 5, "D": 1, "T": 1, "t": 3, "k": 4, "d": 9}
_FEW: dict[str, int] = {"R": 1000003, "N": 4, "D": 1, "T": 1, "t": 3, "k": 3, "d": 2}
_MORE: dict[str, int] = {"R": 2**32, "N": 5, "D": 2, "T": 1, "t": 3, "k": 4, "d": 2}
_SPARSE: dict[str, int] = {"R": 2**32 - 5, "N": 8, "D": 2, "T": 1, "t": 3, "k": 4, "d": 2}
_ODD: dict[str, int] = {"R": 2**31, "N": 6, "D": 1, "T": 1, "t": 2, "k": 3, "d": 2}
_ORDERS: Mapping[int, tuple[int, ...]] = {8: (3, 0, 5, 1, 7, 4, 2, 6), 6: (3, 0, 5, 1, 4, 2)}
_OWN = 2
"""The user whose steps are refused."""
PHASES = secagg.PHASES
_THE_SERVER: tuple[int | str, ...] = ("server",)


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun(
        "secagg",
        "SecAgg and SecAgg+, one party step by step: its messages, what it refuses, and that no trace is left.",
    )
    _whole(made)
    _dropouts(made)
    _user_messages(made)
    _user_steps(made)
    _user_keys(made)
    _user_requests(made)
    _user_updates(made)
    _server_messages(made)
    _server_steps(made)
    _server_keys(made)
    _server_shares(made)
    _server_inputs(made)
    _server_answers(made)
    _requests(made)
    return made


# -------------------------------------------------------------------------------------------------------- a round


class SecretsScene(Scene):
    """A round in which each user samples the values that a user of SecAgg samples."""

    def sampled(self, party: int) -> dict[str, Any]:
        """Return the keys, the self seed and the coefficients of a user."""
        keys = {name: drawn_bytes(self.id, f"{name} of user {party}", 32) for name in _KEYS}
        return {**keys, **{name: self._coefficients(name, party) for name in _COEFFICIENTS}}

    def _coefficients(self, name: str, party: int) -> tuple[int, ...]:
        seed = drawn_bytes(self.id, f"{name} of user {party}", 32)
        return tuple(draw_coefficients(SeededSource(seed, name), self.numbers["t"] - 1))

    def rand(self, party: int) -> dict[str, Any]:
        """Return the sampled values of a script."""
        if party == SERVER:
            return {}
        values = self.sampled(party)
        keys = {name: values[name].hex() for name in _KEYS}
        return {**keys, **{name: b"".join(map(element_bytes, values[name])).hex() for name in _COEFFICIENTS}}

    def place(self, at: int, kind: type, sender: int | None = None) -> int:
        """Return the place of the first message of a type, and of a sender if given, in an inbox of the server."""
        inbox = self.received[SERVER, PHASES[at]]
        return next(p for p, m in enumerate(inbox) if isinstance(m, kind) and sender in (None, m.sender))


@dataclass(frozen=True, eq=False)
class _Scene(SecretsScene):
    """A round whose order of users is determined by their number."""

    of_user: ClassVar[str] = "secagg.user"
    of_server: ClassVar[str] = "secagg.server"
    phases: ClassVar[tuple[str, ...]] = PHASES
    policy: ClassVar[Mapping[str, str]] = MERSENNE

    @property
    def order(self) -> list[int]:
        return list(_ORDERS.get(self.numbers["N"], range(self.numbers["N"])))

    def opened(self) -> Network:
        parameters = secagg.Parameters(**self.numbers)
        shown = {"order": self.order, "session": self.session, "round": self.round}
        return secagg.open_round(parameters, self.updates(), **shown)  # type: ignore[arg-type]

    def given(self, party: int) -> dict[str, Any]:
        return {"order": self.order}

    def updates(self) -> UintArray:
        return drawn(self.id, "updates", self.numbers["R"], self.numbers["N"], self.numbers["d"])


_KEYS = ("sealing_key", "masking_key", "self_seed")
_COEFFICIENTS = ("key_coefficients", "seed_coefficients")


def _who(party: int) -> str:
    return "server" if party == SERVER else f"user-{party}"


def _whole(made: VectorFile) -> None:
    """Add the views of parties in whole rounds. Each is one script, and all scripts of a round fit together."""
    tiny, few = _Scene("script-secagg-tiny", _TINY), _Scene("script-secagg", _FEW)
    sparse, odd = _Scene("script-secagg-sparse", _SPARSE), _Scene("script-secagg-odd", _ODD)
    for scene, parties, flag in (
        (tiny, (0, SERVER), "Masks"),
        (few, (0, 1, 2, 3, SERVER), "Masks"),
        (sparse, (1, 6, SERVER), "Graph"),
        (odd, (0, 4, SERVER), "Graph"),
    ):
        for party in parties:
            user = ("SAG-03", "SAG-10", "SAG-12", "SAG-24", "MSK-01", "MSK-02", "MSK-03")
            clauses = ("SAG-05", "SAG-11", "SAG-17", "SAG-29", "SAG-30") if party == SERVER else user
            flags = ["Server"] if party == SERVER else ["Round"]
            flags = [*flags, flag] if party != SERVER or flag == "Graph" else flags
            comment = f"a whole round as {_who(party).replace('-', ' ')} sees it; nobody drops out"
            taken(made, f"{scene.id}-{_who(party)}", scene, party, clauses, flags, comment, operations=True)


def _dropouts(made: VectorFile) -> None:
    for name, numbers, drop, party, clause, flag, comment in (
        ("share-user", _MORE, {"share_keys": [4]}, 1, "SAG-12", "AbsentNeighbour", "user 4 does not share its secrets"),
        ("share-server", _MORE, {"share_keys": [4]}, SERVER, "SAG-11", "Relay", "user 4 does not share its secrets"),
        ("input-user", _MORE, {"masked_input": [0]}, 2, "SAG-24", "Round", "user 0 shares and sends no input"),
        ("input-server", _MORE, {"masked_input": [0, 3]}, SERVER, "SAG-29", "Dropout", "users 0 and 3 send no input"),
        ("sparse-server", _SPARSE, {"masked_input": [5]}, SERVER, "SAG-29", "Dropout", "user 5 sends no input"),
        ("answer-server", _MORE, {"unmasking": [1]}, SERVER, "SAG-30", "LateDropout", "user 1 does not answer"),
    ):
        scene = _Scene(f"secagg-before-{name}", numbers, drop)
        taken(made, scene.id, scene, party, (clause,), (flag,), comment)
    _partial(made)
    _pruned(made)


def _partial(made: VectorFile) -> None:
    """Add a server that does not get a share of user 3, so that user 3 is not a sharer."""
    scene = _Scene("secagg-lost-share", _MORE)
    calls = scene.calls(SERVER)[:2]
    place = scene.place(1, SecretShares, 3)
    inbox = calls[1].inbox
    calls[1] = replace(calls[1], inbox=(*inbox[:place], *inbox[place + 1 :]))
    comment = "a share of user 3 is lost, so that none of its shares is relayed"
    taken(made, scene.id, scene, SERVER, ("SAG-11",), ("Relay",), comment, calls=calls)


def _pruned(made: VectorFile) -> None:
    """Add a server at which too few neighbours of a user advertise their keys."""
    scene = _Scene("secagg-pruned", _SPARSE)
    first = scene.calls(SERVER)[0]
    received = scene.received[SERVER, PHASES[0]]
    kept = [data for data, message in zip(first.inbox, received, strict=True) if message.sender not in (0, 1, 3)]
    comment = "users 0, 1 and 3 do not advertise keys, so that user 5 has too few holders and is left out"
    taken(made, scene.id, scene, SERVER, ("SAG-05",), ("Pruning",), comment, calls=[replace(first, inbox=tuple(kept))])


# --------------------------------------------------------------------------------------------------------- faults


def _refused(
    made: VectorFile,
    id: str,
    party: int,
    at: int,
    call: Any,
    refusal: Refusal,
    clause: str,
    flag: str,
    comment: str,
    *,
    before: int | None = None,
    numbers: dict[str, int] = _FEW,
    drop: Mapping[str, list[int]] | None = None,
) -> None:
    """Add a script with a refused step, which `call` makes from the scene."""
    scene = _Scene(f"secagg-{'server' if party == SERVER else 'user'}-{id}", numbers, drop or {})
    fault = Fault(at if before is None else before, call(scene), refusal, (clause,), (flag,), comment)
    faulty(made, scene, party, fault)


def _with(party: int, at: int, place: int, change: Change) -> Any:
    return lambda scene: altered(scene, party, at, place, change)


def _plus(party: int, at: int, place: int, change: Change) -> Any:
    return lambda scene: besides(scene, party, at, place, change)


def _user_messages(made: VectorFile) -> None:
    for at in (1, 2, 3):
        phase = PHASES[at]
        for name, change, flag, comment in (
            *HEADER_FAULTS,
            ("receiver", to(3), "AnotherReceiver", "a message for user 3"),
        ):
            call = _with(_OWN, at, 0, change)
            _refused(
                made, f"{phase.replace('_', '-')}-{name}", _OWN, at, call, Refusal(ELSEWHERE), "MSG-03", flag, comment
            )
        call, comment = _plus(_OWN, at, 0, same), "one message stands in the inbox twice"
        id = f"{phase.replace('_', '-')}-twice"
        _refused(made, id, _OWN, at, call, Refusal(SECOND), "MSG-04", "SecondMessage", comment)
    for at, name, broken in ((1, "cut", shorter), (2, "longer", longer), (3, "cut", shorter), (3, "longer", longer)):
        id = f"{PHASES[at].replace('_', '-')}-bytes-{name}"
        comment = f"the bytes of a message: {'one is missing' if name == 'cut' else 'a byte follows'}"
        _refused(made, id, _OWN, at, _with(_OWN, at, 0, broken), Refusal(ANOTHER_TYPE), "MSG-02", "NoMessage", comment)
    for at in (1, 3):
        call, comment = _with(_OWN, at, 0, by(3)), "a message of user 3 in the place of that of the server"
        id = f"{PHASES[at].replace('_', '-')}-sender"
        _refused(made, id, _OWN, at, call, Refusal(STRANGER), "MSG-03", "Stranger", comment)
    for at in range(4):
        id = f"{PHASES[at].replace('_', '-')}-type"
        comment = "a message that the step does not take"
        _refused(made, id, _OWN, at, _foreign(_OWN, at), Refusal(OUT_OF_TURN), "MSG-02", "AnotherType", comment)


def _foreign(party: int, at: int) -> Any:
    """Return the step with an additional message of another step."""

    def call(scene: _Scene) -> Call:
        calls = scene.calls(party)
        return replace(calls[at], inbox=(*calls[at].inbox, calls[1 if at == 3 else 3].inbox[0]))

    return call


def _user_steps(made: VectorFile) -> None:
    _steps(made, _OWN)
    for at, flag, clause in ((2, "SecondInput", "SAG-15"), (3, "SecondAnswer", "SAG-25")):
        id, comment = f"{PHASES[at].replace('_', '-')}-again", f"the step {PHASES[at]} a second time"
        call = _step(_OWN, at)
        _refused(made, id, _OWN, at, call, Refusal(AGAIN), clause, flag, comment, before=at + 1)
    call, comment = _request([0, 1, 2], [3]), "a second request, in which user 3 has dropped out"
    _refused(made, "another-request", _OWN, 3, call, Refusal(AGAIN), "SAG-25", "SecondAnswer", comment, before=4)


def _step(party: int, at: int) -> Any:
    return lambda scene: scene.calls(party)[at]


def _steps(made: VectorFile, party: int) -> None:
    for at in (0, 1) if party != SERVER else range(4):
        id, comment = f"{PHASES[at].replace('_', '-')}-again", f"the step {PHASES[at]} a second time"
        call = _step(party, at)
        _refused(made, id, party, at, call, Refusal(AGAIN), "MSG-04", "Phases", comment, before=at + 1)
    for at in (1, 2, 3):
        id, comment = f"{PHASES[at].replace('_', '-')}-early", f"the step {PHASES[at]} before its turn"
        call = _step(party, at)
        _refused(made, id, party, at, call, Refusal(OUT_OF_TURN), "MSG-03", "Phases", comment, before=at - 1)


# ---------------------------------------------------------------------------------------------------- a user: keys


def _keys(change: Any) -> Any:
    """Return the step that shares secrets, with other keys. `change` gets a map from each user to its two keys."""

    def call(scene: _Scene) -> Call:
        def other(message: Any) -> Any:
            keys = {
                user: [data[32 * at : 32 * at + 32] for data in (message.sealing, message.masking)]
                for at, user in enumerate(message.users)
            }
            pairs = change(scene, list(keys.items()))
            sealing, masking = (b"".join(pair[at] for _, pair in pairs) for at in (0, 1))
            return replace(message, users=tuple(user for user, _ in pairs), sealing=sealing, masking=masking)

        return altered(scene, _OWN, 1, 0, other)

    return call


def _fresh(scene: _Scene, user: int) -> tuple[int, list[bytes]]:
    return user, [public_key(drawn_bytes(scene.id, f"fresh {which}", 32)) for which in ("sealing", "masking")]


def _put(user: int, which: int, key: Any) -> Any:
    """Return a change of one key. `key` computes it from the scene and the keys by user."""

    def change(scene: _Scene, pairs: list[tuple[int, list[bytes]]]) -> list[tuple[int, list[bytes]]]:
        keys = dict(pairs)
        keys[user][which] = key(scene, keys)
        return list(keys.items())

    return change


def _own_key(scene: _Scene, keys: Any) -> bytes:
    [message] = scene.sent[_OWN, PHASES[0]]
    assert isinstance(message, secagg.AdvertisedKeys)
    return message.sealing


def _user_keys(made: VectorFile) -> None:
    with_fresh = {
        name: lambda scene, pairs, user=user: sorted([*pairs, _fresh(scene, user)])
        for name, user in (("itself", _OWN), ("outside", 4))
    }
    for name, change in with_fresh.items():
        comment = f"keys of {'the user itself' if name == 'itself' else 'user N'} besides those of the neighbours"
        refusal = Refusal(OUTSIDE | TWICE, _THE_SERVER)
        _refused(made, f"keys-{name}", _OWN, 1, _keys(change), refusal, "SAG-06", "StrangersKeys", comment)
    call = _keys(lambda scene, pairs: sorted([*pairs, _fresh(scene, _far(scene))]))
    comment = "keys of a user that is no neighbour"
    refusal = Refusal(OUTSIDE | TWICE, _THE_SERVER)
    _refused(made, "keys-stranger", _OWN, 1, call, refusal, "SAG-06", "StrangersKeys", comment, numbers=_SPARSE)
    call = _keys(lambda scene, pairs: sorted([*pairs, _fresh(scene, 0)], key=lambda pair: pair[0]))
    refusal, comment = Refusal(TWICE, _THE_SERVER), "user 0 is named twice, with other keys"
    _refused(made, "keys-twice", _OWN, 1, call, refusal, "SAG-06", "StrangersKeys", comment)
    for name, change, blamed, comment in (
        ("two", _put(0, 0, lambda scene, keys: keys[3][0]), (0, 3, "server"), "users 0 and 3 have one sealing key"),
        ("own", _put(3, 0, _own_key), (3, "server"), "user 3 has the sealing key of the user itself"),
        ("kinds", _put(1, 1, lambda scene, keys: keys[0][0]), (0, 1, "server"), "a masking key is a sealing key"),
        ("one", _put(1, 1, lambda scene, keys: keys[1][0]), (1, "server"), "user 1 has one key for both"),
    ):
        refusal = Refusal(TWICE, blamed)
        _refused(made, f"keys-equal-{name}", _OWN, 1, _keys(change), refusal, "SAG-07", "EqualKeys", comment)
    call, comment = _keys(lambda scene, pairs: pairs[:1]), "the keys of one neighbour, where t - 1 = 2 are needed"
    _refused(made, "keys-few", _OWN, 1, call, Refusal(TOO_FEW), "SAG-08", "FewHolders", comment)
    for which, name in enumerate(("sealing", "masking")):
        call, comment = (
            _keys(_put(1, which, lambda scene, keys: bytes(32))),
            f"the {name} key of user 1 is of low order",
        )
        _refused(
            made, f"keys-weak-{name}", _OWN, 1, call, Refusal(WEAK_KEY, (1, "server")), "SAG-09", "LowOrder", comment
        )
    call, comment = _keys(lambda scene, pairs: [pairs[1], pairs[0], *pairs[2:]]), "the users do not ascend"
    _refused(made, "keys-descending", _OWN, 1, call, Refusal(MALFORMED, _THE_SERVER), "SAG-32", "Order", comment)
    for name in ("sealing", "masking"):
        call = _with(_OWN, 1, 0, _lengthened(name))
        comment = f"a byte behind the {name} keys"
        _refused(made, f"keys-long-{name}", _OWN, 1, call, Refusal(LENGTH), "SAG-33", "Lengths", comment)
    call, comment = lambda scene: _fewer(scene, _OWN, 2, 1), "the shares of one neighbour, where t - 1 = 2 are needed"
    _refused(made, "few-shares", _OWN, 2, call, Refusal(TOO_FEW), "SAG-13", "FewHolders", comment)


def _lengthened(name: str) -> Change:
    """Return a change that appends a byte to a field."""
    return lambda message: replace(message, **{name: getattr(message, name) + b"\1"})


def _far(scene: _Scene) -> int:
    """Return a user that is not a neighbour of the user whose steps are refused."""
    graph = secagg.Parameters(**scene.numbers).graph(scene.order)
    return min(set(scene.order) - graph.holders(_OWN))


def _fewer(scene: _Scene, party: int, at: int, count: int) -> Call:
    call = scene.calls(party)[at]
    return replace(call, inbox=call.inbox[:count])


# ----------------------------------------------------------------------------------------------- a user: a request


def _request(survivors: list[int], dropped: list[int]) -> Any:
    return _with(_OWN, 3, 0, having(survivors=tuple(survivors), dropped=tuple(dropped)))


def _user_requests(made: VectorFile) -> None:
    server = _THE_SERVER
    for name, survivors, dropped, codes, blamed, clause, flag, comment in (
        ("twice", [0, 1, 1, 2, 3], [], TWICE, server, "SAG-19", "RequestUsers", "user 1 is named twice"),
        ("outside", [0, 1, 2, 3, 4], [], OUTSIDE, server, "SAG-19", "RequestUsers", "user N survives"),
        ("outside-dropped", [0, 1, 2, 3], [4], OUTSIDE, server, "SAG-19", "RequestUsers", "user N has dropped out"),
        ("both", [0, 1, 2, 3], [1], TWICE, server, "SAG-20", "BothSecrets", "user 1 is in both sets"),
        ("without", [0, 1, 3], [2], OUTSIDE, server, "SAG-21", "LeftOut", "the user itself has dropped out"),
        ("few", [1, 2], [0, 3], TOO_FEW, None, "SAG-22", "FewSurvivors", "two users survive, where three are needed"),
        ("unnamed", [0, 1, 2], [], OUTSIDE, server, "SAG-23", "NotHeld", "user 3 is in neither set"),
        ("descending", [3, 2, 1, 0], [], MALFORMED, server, "SAG-32", "Order", "the survivors do not ascend"),
    ):
        refusal = Refusal(codes, blamed)
        _refused(made, f"request-{name}", _OWN, 3, _request(survivors, dropped), refusal, clause, flag, comment)
    call, refusal, comment = _request([0, 1, 2, 3], [4]), Refusal(OUTSIDE, server), "the shares of user 4 never came"
    more: dict[str, Any] = {"numbers": _MORE, "drop": {"share_keys": [4]}}
    _refused(made, "request-unheld", _OWN, 3, call, refusal, "SAG-23", "NotHeld", comment, **more)
    _refused(
        made,
        "request-far",
        _OWN,
        3,
        _far_survivors,
        Refusal(TOO_FEW),
        "SAG-22",
        "FewSurvivors",
        "five users survive, and of the holders the user itself and one more",
        numbers=_SPARSE,
    )
    call, refusal, comment = lambda scene: Call(PHASES[3]), Refusal(NOTHING_CAME), "no request came"
    _refused(made, "no-request", _OWN, 3, call, refusal, "SAG-36", "NoRequest", comment)


def _far_survivors(scene: _Scene) -> Call:
    graph = secagg.Parameters(**scene.numbers).graph(scene.order)
    neighbours = sorted(graph.neighbours(_OWN))
    dropped = set(neighbours[1:])
    survivors = [user for user in sorted(scene.order) if user not in dropped]
    return altered(scene, _OWN, 3, 0, having(survivors=tuple(survivors), dropped=tuple(sorted(dropped))))


def _user_updates(made: VectorFile) -> None:
    d, R = _FEW["d"], _FEW["R"]
    for name, size, codes, comment in (
        ("longer", d + 1, LENGTH, "the update has d + 1 elements"),
        ("shorter", d - 1, LENGTH, "the update has d - 1 elements"),
        ("large", d, NONCANONICAL, "the update holds R itself"),
    ):
        scene = _Scene(f"secagg-user-update-{name}", _FEW)
        update = drawn(scene.id, "altered", R, size).copy()
        update[-1] = R if name == "large" else update[-1]
        params = {**scene.params(_OWN, []), "update": pack(update)}
        no_party(made, scene, _OWN, params, codes, "SAG-14", "Input", comment)


# ------------------------------------------------------------------------------------------------------ the server


def _server_messages(made: VectorFile) -> None:
    kinds: dict[int, list[type]] = {
        0: [secagg.AdvertisedKeys],
        1: [SecretShares, SeedCommitment],
        2: [secagg.MaskedInput],
    }
    for at in range(4):
        for kind in kinds.get(at, [secagg.UnmaskShares]):
            phase = PHASES[at].replace("_", "-") + ("-commitment" if kind is SeedCommitment else "")
            faults = [(*fault, Refusal(ELSEWHERE), "MSG-03") for fault in HEADER_FAULTS]
            for name, change, flag, comment, refusal, clause in faults:
                _refused(made, f"{phase}-{name}", SERVER, at, _first(kind, at, change), refusal, clause, flag, comment)
            call, comment = _first(kind, at, same, more=True), "one message stands in the inbox twice"
            _refused(made, f"{phase}-twice", SERVER, at, call, Refusal(SECOND), "MSG-04", "SecondMessage", comment)
            if kind is not SecretShares:
                call, comment = _first(kind, at, to(1)), "a message for user 1"
                _refused(
                    made,
                    f"{phase}-receiver",
                    SERVER,
                    at,
                    call,
                    Refusal(ELSEWHERE),
                    "MSG-03",
                    "AnotherReceiver",
                    comment,
                )
    for at, name, broken in ((0, "cut", shorter), (2, "longer", longer), (3, "longer", longer)):
        id = f"{PHASES[at].replace('_', '-')}-bytes-{name}"
        comment = f"the bytes of a message: {'one is missing' if name == 'cut' else 'a byte follows'}"
        call = _with(SERVER, at, 1, broken)
        _refused(made, id, SERVER, at, call, Refusal(ANOTHER_TYPE), "MSG-02", "NoMessage", comment)
    for at in (0, 2, 3):
        id, comment = f"{PHASES[at].replace('_', '-')}-type", "a message that the step does not take"
        call = _foreign(SERVER, at)
        _refused(made, id, SERVER, at, call, Refusal(OUT_OF_TURN), "MSG-02", "AnotherType", comment)


def _first(kind: type, at: int, change: Change, *, more: bool = False) -> Any:
    """Return the step with its first message of a type changed, or with `more` with an additional changed copy."""
    put = besides if more else altered
    return lambda scene: put(scene, SERVER, at, scene.place(at, kind), change)


def _server_steps(made: VectorFile) -> None:
    _steps(made, SERVER)
    call, comment = _outsiders_input, "an input of user 4, which shared no secrets"
    more: dict[str, Any] = {"numbers": _MORE, "drop": {"share_keys": [4]}}
    _refused(made, "no-sharer", SERVER, 2, call, Refusal(NOT_ALLOWED), "SAG-16", "Stranger", comment, **more)
    call, comment = _late_answer, "an answer of user 4, which sent no input"
    more = {"numbers": _MORE, "drop": {"masked_input": [4]}}
    _refused(made, "no-survivor", SERVER, 3, call, Refusal(NOT_ALLOWED), "SAG-16", "Stranger", comment, **more)
    for at, count in ((0, 2), (1, 0)):
        call, comment = partial(_fewer, party=SERVER, at=at, count=count), f"messages of {count} users"
        id = f"{PHASES[at].replace('_', '-')}-few"
        _refused(made, id, SERVER, at, call, Refusal(TOO_FEW), "SAG-18", "TooFewUsers", comment)
    comment = "five users survive, and one of the sharers has two holders left"
    _refused(
        made,
        "few-holders",
        SERVER,
        2,
        _few_holders,
        Refusal(TOO_FEW),
        "SAG-18",
        "TooFewUsers",
        comment,
        numbers=_SPARSE,
    )


def _outsiders_input(scene: _Scene) -> Call:
    return besides(scene, SERVER, 2, 0, having(sender=4, neighbours=(0, 1, 2, 3)))


def _late_answer(scene: _Scene) -> Call:
    return besides(scene, SERVER, 3, 0, by(4))


def _few_holders(scene: _Scene) -> Call:
    graph = secagg.Parameters(**scene.numbers).graph(scene.order)
    dropped = set(sorted(graph.holders(_OWN))[2:])
    inbox = [encode(message) for message in scene.received[SERVER, PHASES[2]] if message.sender not in dropped]
    return Call(PHASES[2], tuple(inbox))


def _server_keys(made: VectorFile) -> None:
    for which in ("sealing", "masking"):
        call, refusal = _with(SERVER, 0, 1, having(**{which: bytes(32)})), Refusal(WEAK_KEY, (1,))
        comment = f"the {which} key of user 1 is of low order"
        _refused(made, f"keys-weak-{which}", SERVER, 0, call, refusal, "SAG-34", "LowOrder", comment)
        call = _with(SERVER, 0, 1, _lengthened(which))
        refusal, comment = Refusal(LENGTH, (1,)), f"the {which} key of user 1 has 33 bytes"
        _refused(made, f"keys-long-{which}", SERVER, 0, call, refusal, "SAG-33", "Lengths", comment)
    for name, field, of, blamed, comment in (
        ("two", "masking", (0, "masking"), (0, 1), "users 0 and 1 have one masking key"),
        ("kinds", "masking", (3, "sealing"), (1, 3), "the masking key of user 1 is the sealing key of user 3"),
        ("one", "sealing", (1, "masking"), (1,), "user 1 has one key for both"),
    ):
        call = _copied(field, *of)
        _refused(made, f"keys-equal-{name}", SERVER, 0, call, Refusal(TWICE, blamed), "SAG-35", "EqualKeys", comment)


def _copied(field: str, place: int, other: str) -> Any:
    def call(scene: _Scene) -> Call:
        key = getattr(scene.received[SERVER, PHASES[0]][place], other)
        return altered(scene, SERVER, 0, 1, having(**{field: key}))

    return call


def _server_shares(made: VectorFile) -> None:
    call = _first(SeedCommitment, 1, lambda message: replace(message, commitment=message.commitment + b"\1"))
    refusal, comment = Refusal(LENGTH, (0,)), "the commitment of user 0 has 33 bytes"
    _refused(made, "commitment-long", SERVER, 1, call, refusal, "SAG-33", "Lengths", comment)
    call, comment = _stray, "a share of user 2 for a user that is not its neighbour"
    refusal = Refusal(MALFORMED, (_OWN,))
    _refused(made, "stray-share", SERVER, 1, call, refusal, "SAG-31", "StrayShares", comment, numbers=_SPARSE)
    call, comment = _first(SecretShares, 1, by(4), more=True), "a share of user N"
    _refused(made, "share-sender", SERVER, 1, call, Refusal(STRANGER), "SAG-31", "StrayShares", comment)


def _stray(scene: _Scene) -> Call:
    return besides(scene, SERVER, 1, scene.place(1, SecretShares, _OWN), to(_far(scene)))


def _server_inputs(made: VectorFile) -> None:
    for name, change, comment in (
        ("longer", lambda m: replace(m, masked=np.append(m.masked, np.uint64(0))), "is one element too long"),
        ("shorter", lambda m: replace(m, masked=m.masked[:-1]), "is one element too short"),
    ):
        call, refusal, why = _with(SERVER, 2, 1, change), Refusal(BAD_VECTOR, (1,)), f"the input of user 1 {comment}"
        _refused(made, f"input-{name}", SERVER, 2, call, refusal, "SAG-33", "Lengths", why)
    for name, neighbours, comment in (
        ("fewer", (0, 2), "leaves user 3 out"),
        ("itself", (0, 1, 2, 3), "names its sender"),
        ("none", (), "names nobody"),
    ):
        call, refusal = _with(SERVER, 2, 1, having(neighbours=neighbours)), Refusal(NOT_THESE, (1,))
        why = f"the input of user 1 {comment}"
        _refused(made, f"neighbours-{name}", SERVER, 2, call, refusal, "SAG-37", "OtherNeighbours", why)

    call = _with(SERVER, 2, 1, lambda message: replace(message, neighbours=message.neighbours[::-1]))
    refusal, why = Refusal(IN_ORDER, (1,)), "the neighbours of user 1 in descending order"
    _refused(made, "neighbours-descending", SERVER, 2, call, refusal, "SAG-76", "NeighbourOrder", why)


def _turned(message: Any) -> Any:
    """Return an answer with its survivors, and their shares, in descending order."""
    data = message.seed_shares
    shares = [data[at : at + ELEMENT_BYTES] for at in range(0, len(data), ELEMENT_BYTES)]
    return replace(message, survivors=message.survivors[::-1], seed_shares=b"".join(shares[::-1]))


def _server_answers(made: VectorFile) -> None:
    size = ELEMENT_BYTES
    call, refusal = _with(SERVER, 3, 1, _turned), Refusal(MALFORMED, (1,))
    why = "the survivors of the answer of user 1, and their shares, in descending order"
    _refused(made, "answer-descending", SERVER, 3, call, refusal, "SAG-77", "AnswerOrder", why)
    for name, change, comment in (
        ("fewer", lambda m: replace(m, survivors=m.survivors[1:], seed_shares=m.seed_shares[size:]), "lacks a share"),
        ("cut", lambda m: replace(m, seed_shares=m.seed_shares[:-1]), "has a share that is cut"),
        ("longer", lambda m: replace(m, seed_shares=m.seed_shares + b"\0"), "has a byte behind its shares"),
        ("large", lambda m: replace(m, seed_shares=b"\xff" * size + m.seed_shares[size:]), "has a share above 2**521"),
        ("dropped", lambda m: replace(m, dropped=(0,), key_shares=bytes(size)), "has a share of a masking key besides"),
    ):
        codes = BAD_VECTOR if name in ("cut", "longer", "large") else MALFORMED
        call, refusal, why = _with(SERVER, 3, 1, change), Refusal(codes, (1,)), f"the answer of user 1 {comment}"
        _refused(made, f"answer-{name}", SERVER, 3, call, refusal, "SAG-26", "WrongAnswer", why)
    call, comment = lambda scene: _fewer(scene, SERVER, 3, 2), "two answers, where t = 3"
    _refused(made, "few-answers", SERVER, 3, call, Refusal(TOO_FEW), "SAG-27", "FewAnswers", comment)
    _wrong_secrets(made)


def _wrong_secrets(made: VectorFile) -> None:
    """Add servers that got another commitment or masking key than the one that they recover."""
    for name, at, kind, field, drop, comment in (
        ("commitment", 1, SeedCommitment, "commitment", {}, "user 1 is committed to another self seed"),
        ("key", 0, secagg.AdvertisedKeys, "masking", {"masked_input": [1]}, "user 1 advertised another masking key"),
    ):
        scene = _Scene(f"secagg-server-another-{name}", _FEW, drop)
        calls = scene.calls(SERVER)
        other = public_key(drawn_bytes(scene.id, "another", 32))
        calls[at] = altered(scene, SERVER, at, scene.place(at, kind, 1), having(**{field: other}))
        blamed = (*(message.sender for message in scene.received[SERVER, PHASES[3]]), *((1,) if drop else ()))
        made.script(
            scene.id,
            scene.of_server,
            scene.params(SERVER, calls),
            {},
            refused={3: Refusal(BAD_SHARE, blamed)},
            clauses=["SAG-28", "ADP-21"],
            flags=["Unchecked"],
            comment=comment,
            policy=scene.policy,
        )


def _requests(made: VectorFile) -> None:
    for name, clause, changed, comment in (
        ("honest", "SAG-01", {"D": 2}, "N - D = T + 1"),
        ("low", "SAG-02", {"t": 2}, "t = T + 1 on the complete graph"),
        ("high", "SAG-02", {"t": 4}, "t = N - D + 1"),
    ):
        scene = _Scene(f"secagg-server-numbers-{name}", _FEW)
        params = {**scene.params(SERVER, []), **changed}
        no_party(made, scene, SERVER, params, BAD_PARAM, clause, "Numbers", comment)
    scene = _Scene("secagg-server-numbers-edge", _MORE)
    params = {**scene.params(SERVER, []), "k": 3}
    no_party(made, scene, SERVER, params, BAD_PARAM, "SAG-01", "Numbers", "kN is odd on a sparse graph")
    for name, order, comment in (
        ("twice", [0, 1, 2, 0], "user 0 stands in two places"),
        ("outside", [0, 1, 2, 4], "user N has a place, and user 3 none"),
    ):
        scene = _Scene(f"secagg-server-order-{name}", _FEW)
        params = {**scene.params(SERVER, []), "order": order}
        no_party(made, scene, SERVER, params, ORDER, "SAG-04", "NoOrder", comment)
