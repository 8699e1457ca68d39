"""Planted bugs that a schedule of the network shows: a restart, a second lie, another order, two users at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.conformance import adversary
from secagg_spec.conformance.adversary import Act, Found
from secagg_spec.conformance.capabilities import greet
from secagg_spec.conformance.connection import DirectConnection
from secagg_spec.conformance.deals import Deal
from secagg_spec.conformance.mixed import Difference, Player
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.targets.reference_messages import parse
from secagg_spec.conformance.targets.reference_sessions import Sessions
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import InconsistentSets, ParameterError, ProtocolError
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg import SurvivingSet
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_SESSIONS = "secagg_spec.conformance.targets.reference_sessions:Sessions"
_PROTOCOLS = "secagg_spec.protocols"
_ADVERSARY = "secagg_spec.conformance.adversary"
_TESTS = "tests/conformance/test_adversary.py"
_USERS = range(5)
_ID = b"adversary in one"
_ALL: Act = ("all",)


# ------------------------------------------------------------------------------------------ the rounds of a witness


def _secagg() -> Deal:
    numbers = {"R": "8", "N": 5, "D": 1, "T": 1, "t": 3, "k": 4, "d": 2}
    setups: dict[int, Mapping[str, Any]] = {SERVER: {"order": list(_USERS)}}
    rands = {}
    for user in _USERS:
        setups[user] = {"user": user, "order": list(_USERS), "update": pack(np.array([user, 1], np.uint64))}
        source = SeededSource(b"adversary", str(user))
        keys = {name: source.take(32).hex() for name in ("sealing_key", "masking_key", "self_seed")}
        names = ("key_coefficients", "seed_coefficients")
        rows = {name: b"".join(map(element_bytes, draw_coefficients(source, 2))).hex() for name in names}
        rands[user] = {**keys, **rows}
    return Deal("secagg", numbers, _ID, 9, setups, rands)


def _light(active: bool = False) -> Deal:
    numbers = {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, **({"W": 4} if active else {})}
    keys = [bytes([user + 1]) * 32 for user in _USERS]
    roster, verification = ([make(key).hex() for key in keys] for make in (public_key, verification_key))
    setups: dict[int, Mapping[str, Any]] = {SERVER: {"roster": roster, "verification": verification} if active else {}}
    rands = {}
    for user in _USERS:
        own: dict[str, Any] = {"channel": "plain"}
        if active:
            key = keys[user].hex()
            own = {"private": key, "signing": key, "roster": roster, "verification": verification}
        setups[user] = {"user": user, "update": pack(np.array([user, 1, 6], np.uint64)), **own}
        noise = pack(np.array([user, 5], np.uint64))
        rands[user] = {"mask": pack(np.array([1, user, 3], np.uint64)), "noise": noise}
    return Deal("lightsecagg-active" if active else "lightsecagg", numbers, _ID, 9, setups, rands)


def _buffered() -> Deal:
    code = {"q": "97", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "K": 3, "c_l": "1", "c_g": "5", "tau_max": 2}
    numbers = {**code, "kind": "polynomial", "numerator": 1, "denominator": 1, "start": "0"}
    vectors = [pack(np.array([at, 1, 2], np.uint64)) for at in (1, 2, 3)]
    noises = [pack(np.array([at, 3], np.uint64)) for at in (4, 5, 6)]
    setups: dict[int, Mapping[str, Any]] = {SERVER: {}}
    setups.update({user: {"user": user, "channel": "plain", "updates": vectors} for user in _USERS})
    rands: dict[int, Mapping[str, Any]] = {user: {"masks": vectors, "noises": noises} for user in _USERS}
    rands[SERVER] = {"roundings": [pack_reals(np.zeros(3))] * 3}
    return Deal("basecagg", numbers, _ID, 9, setups, rands)


def _played(deal: Deal, played: Sequence[int], *acts: Act) -> Callable[[], object]:
    """Return the witness of some acts: what every step came to, and the first difference where there is one."""

    def witness() -> object:
        connection = DirectConnection(reference.build().answer)
        player, events = Player(connection, greet(connection.ask)), []
        try:
            with adversary.opened(deal, player, played) as engine:
                for act in acts:
                    engine.do(act)
                events = [(event.party, event.phase, type(event.error).__name__, event.sent) for event in engine.log]
        except Found as found:
            return str(found)
        return events

    return witness


def _marked(right: Function, mark: Callable[[Any], Mapping[str, Any]]) -> Function:
    """Return a step that leaves something behind in the state when it is refused."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except (ParameterError, ProtocolError):
            for name, value in mark(state).items():
                object.__setattr__(state, name, value)
            raise

    return wrong


# --------------------------------------------------------------------------------------------------- sessions


def _kept(sessions: Sessions) -> dict[str, Any]:
    """Return what is kept from one session to the next, as long as any is open."""
    if not sessions.open:
        sessions.__dict__["kept"] = {}
    kept: dict[str, Any] = sessions.__dict__["kept"]
    return kept


@mutant(
    "freed-party-goes-on",
    "ADP-24",
    "failure: a party that is ended and started again goes on where it was, and refuses its first step",
    f"{_SESSIONS}.new",
    _played(_secagg(), [0], _ALL, ("restart", 0, 9), ("step", 0, "advertise_keys")),
    kind="refusal",
    source="kept too long",
)
def _goes_on(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, **given: Any) -> Any:
        kept = _kept(self)
        right(self, handle, **given)
        self.open[handle] = kept.setdefault(repr(sorted(given.items())), self.open[handle])
        return {}

    return wrong


@mutant(
    "round-of-the-first-life",
    "MSG-03",
    "acceptance: a party that is started again in another round takes the stale messages of its first one",
    f"{_SESSIONS}.new",
    _played(_secagg(), [0], _ALL, ("restart", 0, 8), ("step", 0, "advertise_keys")),
    kind="acceptance",
    source="kept too long",
)
def _first_round(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, round: str, **given: Any) -> Any:
        return right(self, handle, round=_kept(self).setdefault(repr(sorted(given.items())), round), **given)

    return wrong


@mutant(
    "set-that-another-user-was-told",
    "ADP-24",
    "privacy: two users in one process answer for the set that one of them was told",
    f"{_SESSIONS}.step",
    _played(_light(), [0, 1], *[_ALL] * 4, ("tell", 1, 0, "recover", 1, "without", "users", 4), _ALL),
    kind="privacy",
    source="used twice",
)
def _another_set(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, phase: str, inbox: list[str]) -> Any:
        if phase != "recover" or handle not in self.open or not hasattr(self.open[handle].state, "held"):
            return right(self, handle, phase, inbox)
        users = [party.__dict__["told"] for party in self.open.values() if "told" in party.__dict__]
        answer = right(self, handle, phase, [_as_told(text, users) for text in inbox])
        if len(inbox) == 1 and isinstance(message := parse(bytes.fromhex(inbox[0])), SurvivingSet):
            self.open[handle].__dict__["told"] = message.users
        return answer

    return wrong


def _as_told(text: str, users: Sequence[tuple[int, ...]]) -> str:
    try:
        message = parse(bytes.fromhex(text))
    except ProtocolError:
        return text
    return encode(replace(message, users=users[0])).hex() if users and isinstance(message, SurvivingSet) else text


@mutant(
    "fourth-refusal-ends-the-party",
    "ERR-01",
    "failure: after four steps that it refused a party takes none, so that four wrong messages end a round",
    f"{_SESSIONS}.step",
    _played(_secagg(), [0], *[("step", 0, "unmasking")] * 4, _ALL),
    kind="refusal",
    source="trace of a refusal",
)
def _fourth(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, phase: str, inbox: list[str]) -> Any:
        known = self.open[handle].__dict__ if handle in self.open else {}
        if known.get("refusals", 0) > 3:
            raise Reject("wrong_phase", "the party has ended")
        try:
            return right(self, handle, phase, inbox)
        except Exception:
            known["refusals"] = known.get("refusals", 0) + 1
            raise

    return wrong


# ------------------------------------------------------------------------------------------------------ SecAgg

_LIE: Act = ("tell", 0, 0, "unmasking", 2, "both", "survivors", 1)


@mutant(
    "second-request-is-not-checked",
    "SAG-20",
    "privacy: a user that refused a request answers the next one whatever it names, so that both secrets are released",
    f"{_PROTOCOLS}.secagg:check_request",
    _played(_secagg(), [], *[_ALL] * 6, _LIE),
    kind="privacy",
    source="trace of a refusal",
)
def _second_request(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        if hasattr(state, "met"):
            return message.survivors, message.dropped
        try:
            return right(state, message)
        except ProtocolError:
            object.__setattr__(state, "met", True)
            raise

    return wrong


@mutant(
    "reply-to-a-refused-request",
    "ERR-01",
    "privacy: a request that was refused is answered as well, with the one that is taken",
    f"{_PROTOCOLS}.secagg:user_unmasking",
    _played(_secagg(), [], *[_ALL] * 6, _LIE, _ALL),
    kind="privacy",
    source="trace of a refusal",
)
def _late_reply(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            after, outbox = right(state, inbox, randomness=randomness)
        except InconsistentSets:
            object.__setattr__(state, "refused", True)
            raise
        return after, outbox * (2 if hasattr(state, "refused") else 1)

    return wrong


# ------------------------------------------------------------------------------------------------- LightSecAgg


@mutant(
    "answers-in-the-order-of-users",
    "LSA-13",
    "wrong sum: the server takes the answers for those of the users in ascending order, in whichever order they come",
    f"{_PROTOCOLS}.lightsecagg:server_recover",
    _played(_light(), [], *[_ALL] * 5, ("swap", SERVER, 0, 1), _ALL),
    kind="sum",
    source="order",
)
def _in_order(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        senders = sorted(message.sender for message in inbox)
        ordered = [replace(message, sender=sender) for message, sender in zip(inbox, senders, strict=True)]
        return right(state, ordered, randomness=randomness)

    return wrong


@mutant(
    "second-set-after-a-refused-quorum",
    "LSA-22",
    "privacy: a user that refused a quorum signs another surviving set, so that two sets find enough signers",
    f"{_PROTOCOLS}.lightsecagg_active:user_recover",
    _played(
        _light(active=True),
        [],
        *[_ALL] * 6,
        ("alter", 0, 0, "element", "signatures", 0, 1),
        ("step", 0, "recover"),
        ("again", 0, 2, 1, "told", 0, "without", "users", 4),
    ),
    kind="privacy",
    source="trace of a refusal",
)
def _second_set(right: Function) -> Function:
    return _marked(right, lambda state: {"announced": None})


# ---------------------------------------------------------------------------------------------------- BASecAgg


@mutant(
    "refused-updates-clear-the-records",
    "BSA-15",
    "wrong sum: after a refused step the server forgets whose updates it took, and takes one twice",
    f"{_PROTOCOLS}.basecagg:server_upload",
    _played(_buffered(), [], *[_ALL] * 8, ("again", SERVER, 2, 2)),
    kind="sum",
    source="trace of a refusal",
)
def _cleared(right: Function) -> Function:
    def cleared(state: Any) -> dict[str, Any]:
        return {"records": {user: replace(record, taken=False) for user, record in state.records.items()}}

    return _marked(right, cleared)


@mutant(
    "stamp-forgotten-with-a-request",
    "BSA-08",
    "acceptance: a user that asks for a model again takes a stale stamp, and shares two masks under it",
    f"{_PROTOCOLS}.basecagg:user_request",
    _played(
        _buffered(),
        [],
        *[_ALL] * 3,
        ("step", 0, "upload"),
        ("step", 0, "request"),
        ("again", 0, 1, 1),
    ),
    kind="acceptance",
    source="clause in part",
)
def _forgotten(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, stamp=None), outbox

    return wrong


# ------------------------------------------------------------------------------------------------------- the kit


def _lists_of_a_user() -> object:
    """Return which of the letters of user 0 can be changed to name other users."""
    with adversary.opened(_light()) as engine:
        for _ in range(4):
            engine.do(_ALL)
        return adversary.Stage(engine, (0,)).lists(0)


@mutant(
    "server-that-never-lies",
    "CNF-20",
    "blindness: the network never tells users different things, and no user is seen that believes them",
    f"{_ADVERSARY}.rules:_names_users",
    _lists_of_a_user,
    reach=f"{_TESTS}::test_everything_that_the_network_may_do_happens_and_most_rounds_come_to_their_end",
    kind="acceptance",
    source="clause left out",
)
def _never_lies(right: Function) -> Function:
    return lambda letter: False


@mutant(
    "act-that-is-not-named",
    "CNF-21",
    "a failure does not say in which act it was met",
    f"{_ADVERSARY}.engine:Found.__init__",
    lambda: str(Found(3, _ALL, Difference("wrong_value", 0, "upload", ""), None)),
    reach=f"{_TESTS}::test_a_difference_is_named_by_act_party_step_message_and_element",
    kind="form",
    source="clause left out",
)
def _unnamed(right: Function) -> Function:
    def wrong(self: Found, number: int, act: Act, difference: Any, wanted: Any) -> None:
        right(self, number, act, difference, wanted)
        self.args = (str(difference),)

    return wrong
