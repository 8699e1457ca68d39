"""Planted bugs that look right at the first element, the first message, or the plain case, and are wrong elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import mds, modular
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.targets.reference_scripts import Call, play, server_end
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.crypto.keys import public_key
from secagg_spec.errors import BadShare, ParameterError, ProtocolError
from secagg_spec.protocols import lightsecagg
from secagg_spec.protocols.codec import encode, vector_bytes, vector_from_bytes
from secagg_spec.protocols.lightsecagg import MaskedUpdate, MaskShare, SurvivingSet
from secagg_spec.protocols.shape import SERVER, Role

Function = Callable[..., Any]
_LSA = "secagg_spec.protocols.lightsecagg"
_CODE = "secagg_spec.arithmetic.mds:MaskCode"
_TABLE = f"{_LSA}:TABLE"
_ADAPTER = "secagg_spec.conformance.sdk.secagg_adapter:Adapter"
_FIELD7 = modular.PrimeField(7)
_TINY = lightsecagg.PRESETS["tiny"]
_ID = bytes(16)


# --------------------------------------------------------------------------------------- what a witness looks at


def _vector(*values: int) -> UintArray:
    return np.array(values, dtype=np.uint64)


def _outcome(call: Callable[[], Any]) -> object:
    try:
        result = call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__
    return result.tolist() if isinstance(result, np.ndarray) else result


def _decoded(users: Sequence[int], altered: int | None = None, column: int = 1) -> object:
    code = mds.MaskCode(_FIELD7, 5, 3, 1)
    shares = code.encode(_vector(4, 0, 6), _vector(2, 5).reshape(1, 2))[list(users)]
    if altered is not None:
        shares[altered, column] = (int(shares[altered, column]) + 1) % 7
    return _outcome(lambda: code.decode(users, shares, 3))


def _share(sender: int) -> bytes:
    return encode(MaskShare(_ID, 0, sender, 0, vector_bytes(_vector(sender, 1))))


def _user(*calls: Call) -> object:
    """Return the entries of user 0."""
    start = lightsecagg.user_start(_TINY, _ID, 0, 0, _vector(6, 5, 4), PlainChannel())
    sampled = {"mask": _vector(1, 2, 3), "noise": _vector(4, 5).reshape(1, 2)}
    return play(lightsecagg.TABLE, Role.USER, start, calls, sampled, lambda state: {})


def _server(*calls: Call) -> object:
    """Return the entries of the server, to which every user sent its shares."""
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    shares = Call("share", tuple(encode(MaskShare(_ID, 0, i, j, b"")) for i, j in pairs))
    start = lightsecagg.server_start(_TINY, _ID, 0)
    return play(lightsecagg.TABLE, Role.SERVER, start, (shares, *calls), {}, server_end)


def _uploads(*users: int, last: int = 0) -> Call:
    row = _vector(0, 0, last)
    return Call("upload", tuple(encode(MaskedUpdate(_ID, 0, user, SERVER, row)) for user in users))


def _answered(op: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> object:
    answer = reference.build().answer({"id": 1, "op": op, "params": dict(params), "rand": dict(rand or {})})
    return answer.get("result") or answer["reject"]["code"]


_NUMBERS = {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}


def _script(**changes: Any) -> object:
    """Return the answer to the script of a user that takes no step."""
    own = {"session": _ID.hex(), "round": "0", "user": 0, "channel": "plain", "update": "00" * 12, "steps": []}
    return _answered("lightsecagg.user", {**_NUMBERS, **own, **changes}, {"mask": "00" * 12, "noise": "00" * 8})


# ----------------------------------------------------------------------------------------- where a bug is planted


def _with_step(table: Any, phase: str, role: Role, build: Callable[[Function], Function]) -> Any:
    return tuple(
        replace(step, run=build(step.run)) if (step.phase, step.role) == (phase, role) else step for step in table
    )


def _reading(right: Function, names: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]) -> Function:
    """Return the reader of requests that changes some members of the requests of some operations."""

    def wrong(self: Adapter, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = right(self, operation, request)
        return {**arguments, **change(arguments)} if operation in names else arguments

    return wrong


def _giving(right: Function, name: str, when: Callable[[dict[str, Any]], bool], result: dict[str, Any]) -> Function:
    """Return the adapter's answer that is a result for some requests of an operation that must be refused."""

    def wrong(self: Adapter, request: Any) -> Any:
        answer = right(self, request)
        asked = "reject" in answer and request.get("op") == name
        return {"id": answer["id"], "result": result} if asked and when(request["params"]) else answer

    return wrong


# ---------------------------------------------------------------------------------------------------- the code


@mutant(
    "extra-shares-compared-in-part",
    "MDS-09",
    "acceptance: only the first element of the shares beyond U is compared with the codeword",
    f"{_CODE}._check_extra",
    lambda: _decoded((0, 1, 2, 3), altered=3),
    also=("LSA-15",),
    kind="acceptance",
    source="clause in part",
)
def _first_column(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Any, columns: UintArray, rows: UintArray, shares: UintArray) -> None:
        right(self, users, columns, rows[:, :1], shares[:, :1])

    return wrong


@mutant(
    "one-extra-share-compared",
    "MDS-09",
    "acceptance: of the shares beyond U only the first one is compared with the codeword",
    f"{_CODE}._check_extra",
    lambda: _decoded((0, 1, 2, 3, 4), altered=4),
    also=("LSA-15",),
    kind="acceptance",
    source="clause in part",
)
def _first_extra(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Any, columns: UintArray, rows: UintArray, shares: UintArray) -> None:
        try:
            right(self, users, columns[:, : self.U + 1], rows, shares[: self.U + 1])
        except BadShare as error:
            raise BadShare(str(error), tuple(users)) from None

    return wrong


@mutant(
    "repeated-shares-merged",
    "MDS-08",
    "acceptance: shares are kept by user, so that a second one of a user takes the place of the first",
    f"{_ADAPTER}._arguments",
    lambda: _answered(
        "mds.decode",
        {"q": "7", "N": 5, "U": 2, "T": 1, "d": 1, "users": [0, 1, 1], "shares": ["00000000"] * 3},
    ),
    kind="acceptance",
    source="silent repair",
)
def _kept_by_user(right: Function) -> Function:
    def change(given: dict[str, Any]) -> dict[str, Any]:
        users, shares = given["users"], given["shares"]
        if len(users) != len(shares) or len(set(users)) < given["U"]:
            return {}
        kept = dict(zip(users, shares, strict=True))
        return {"users": list(kept), "shares": list(kept.values())}

    return _reading(right, ("mds.decode",), change)


@mutant(
    "nothing-decodes-to-nothing",
    "MDS-01",
    "acceptance: a vector without elements is decoded",
    f"{_ADAPTER}.answer",
    lambda: _answered("mds.decode", {"q": "7", "N": 5, "U": 2, "T": 1, "d": 0, "users": [0, 1], "shares": ["", ""]}),
    kind="acceptance",
    source="clause in part",
)
def _empty_decoded(right: Function) -> Function:
    return _giving(right, "mds.decode", lambda params: params["d"] == 0, {"mask": ""})


# ------------------------------------------------------------------------------------------- masks, shares, rounds


@mutant(
    "empty-update-masked",
    "LSA-01",
    "acceptance: an update without elements is masked",
    f"{_LSA}:mask_update",
    lambda: _outcome(lambda: lightsecagg.mask_update(_FIELD7, _vector(), _vector())),
    kind="acceptance",
    source="seen in FedML 0.9.6: lightsecagg.mask/empty",
)
def _empty_update(right: Function) -> Function:
    return lambda field, update, mask: update if update.size == mask.size == 0 else right(field, update, mask)


@mutant(
    "empty-shares-added",
    "LSA-01",
    "acceptance: shares without elements are added",
    f"{_LSA}:aggregate_shares",
    lambda: _outcome(
        lambda: lightsecagg.aggregate_shares(_FIELD7, 5, 1, (0, 1, 2), {user: _vector() for user in range(5)})
    ),
    kind="acceptance",
    source="seen in FedML 0.9.6: lightsecagg.aggregate_shares/empty",
)
def _empty_shares(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Any, held: Mapping[int, UintArray]) -> UintArray:
        if not any(share.size for share in held.values()):
            return _vector()
        return right(field, N, T, surviving, held)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "empty-set-answered",
    "LSA-09",
    "acceptance: the sum over no user is 0",
    f"{_ADAPTER}.answer",
    lambda: _answered(
        "lightsecagg.aggregate_shares",
        {"q": "7", "N": 3, "T": 1, "surviving": [], "held": [[user, "00000000"] for user in range(3)]},
    ),
    kind="acceptance",
    source="clause in part",
)
def _empty_set(right: Function) -> Function:
    operation = "lightsecagg.aggregate_shares"
    return _giving(right, operation, lambda params: params["surviving"] == [], {"share": "00000000"})


@mutant(
    "repeated-neighbours-refused-only",
    "LSA-10",
    "acceptance: a set that names a user twice passes unless the two stand beside each other, or at its ends",
    f"{_LSA}:check_surviving_set",
    lambda: _outcome(
        lambda: lightsecagg.aggregate_shares(_FIELD7, 5, 1, (2, 0, 1, 0), {user: _vector(1) for user in range(5)})
    ),
    kind="acceptance",
    source="clause in part",
)
def _neighbours(right: Function) -> Function:
    def wrong(N: int, T: int, surviving: Sequence[int], held: Any) -> tuple[int, ...]:
        around = zip(surviving, [*surviving[1:], *surviving[:1]], strict=True)
        if any(one == other for one, other in around):
            return right(N, T, surviving, held)  # type: ignore[no-any-return]
        return right(N, T, tuple(dict.fromkeys(surviving)), held)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "outsiders-passed-over",
    "LSA-16",
    "acceptance: an answer from outside the surviving set is passed over when enough others are left",
    f"{_ADAPTER}._arguments",
    lambda: _answered(
        "lightsecagg.recover",
        {
            **_NUMBERS,
            "surviving": [0, 1, 2],
            "masked": ["00" * 12] * 3,
            "users": [0, 1, 2, 3],
            "shares": ["00" * 8] * 4,
        },
    ),
    kind="acceptance",
    source="silent repair",
)
def _passed_over(right: Function) -> Function:
    def change(given: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(given["users"], given["shares"], strict=False)
        kept = [(user, share) for user, share in pairs if user in given["surviving"]]
        if len(kept) < given["U"]:
            return {}
        return {"users": [user for user, _ in kept], "shares": [share for _, share in kept]}

    return _reading(right, ("lightsecagg.recover",), change)


@mutant(
    "round-in-a-small-field",
    "LSA-01",
    "acceptance: a round takes a prime that is not above N, so that two users have one point",
    f"{_ADAPTER}._arguments",
    lambda: _answered(
        "lightsecagg.round",
        {**_NUMBERS, "q": "5", "updates": ["00" * 12] * 5, "drop": {"share": [], "upload": [], "recover": []}},
        {"masks": ["00" * 12] * 5, "noises": ["00" * 8] * 5},
    ),
    kind="acceptance",
    source="seen in FedML 0.9.6: lightsecagg.round/outside-range",
)
def _small_field(right: Function) -> Function:
    def change(given: dict[str, Any]) -> dict[str, Any]:
        q = int(given["q"])
        return {"q": "65537"} if q <= given["N"] and modular.is_prime(q) else {}

    return _reading(right, ("lightsecagg.round",), change)


# ----------------------------------------------------------------------------------------------- steps of a party


_ASKED = Call("recover", (encode(SurvivingSet(_ID, 0, SERVER, 0, (0, 1, 2))),))
_REFUSED = Call("upload", (_share(1), _share(2), _share(9)))


@mutant(
    "refused-shares-kept",
    "ERR-01",
    "failure: the shares of a refused step stay held, so that a user answers for a set whose shares it refused",
    _TABLE,
    lambda: _user(Call("share"), _REFUSED, Call("upload", (_share(1),)), _ASKED),
    kind="acceptance",
    source="trace of a refusal",
)
def _kept_shares(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            try:
                return right(state, inbox, randomness=randomness)
            except (ParameterError, ProtocolError):
                object.__setattr__(state, "held", {**state.held, **_opened(state, inbox)})
                raise

        return wrong

    return _with_step(table, "upload", Role.USER, build)


def _opened(state: Any, inbox: Any) -> dict[int, UintArray]:
    """Return the shares in an inbox up to the first message that is not one of another user."""
    found: dict[int, UintArray] = {}
    for message in inbox:
        if not isinstance(message, MaskShare) or message.sender in (state.user, *found):
            break
        if message.sender >= state.parameters.N or state.phase != "upload":
            break
        found[message.sender] = vector_from_bytes(state.channel.open(message.sender, state.user, message.payload))
    return found


@mutant(
    "refused-updates-kept",
    "ERR-01",
    "wrong sum: the masked updates of a refused step are added in the next one",
    _TABLE,
    lambda: _server(_uploads(0, 1, 2, 3, 9), _uploads(0, 1, 2)),
    kind="sum",
    source="trace of a refusal",
)
def _kept_updates(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            kept = getattr(state, "kept", {})
            came = {message.sender for message in inbox}
            whole = (*inbox, *(message for sender, message in kept.items() if sender not in came))
            try:
                return right(state, whole, randomness=randomness)
            except (ParameterError, ProtocolError):
                right_ones = [m for m in inbox if isinstance(m, MaskedUpdate) and m.sender in state.sharers]
                object.__setattr__(state, "kept", {**kept, **{m.sender: m for m in right_ones}})
                raise

        return wrong

    return _with_step(table, "upload", Role.SERVER, build)


@mutant(
    "set-in-order-of-arrival",
    "LSA-06",
    "no interoperation: the surviving set is announced in the order in which the updates came",
    _TABLE,
    lambda: _server(_uploads(2, 0, 1)),
    kind="form",
    source="order",
)
def _as_arrived(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = right(state, inbox, randomness=randomness)
            users = tuple(message.sender for message in inbox)
            return after, tuple(replace(message, users=users) for message in outbox)

        return wrong

    return _with_step(table, "upload", Role.SERVER, build)


@mutant(
    "own-share-replaced",
    "MSG-03",
    "acceptance: a share that comes back to its sender takes the place of the user's own share",
    f"{_LSA}:_ready",
    lambda: _user(Call("share"), Call("upload", (_share(0), _share(1)))),
    kind="acceptance",
    source="clause in part",
)
def _own(right: Function) -> Function:
    def wrong(state: Any, phase: str, inbox: Any, kinds: Any, senders: Any) -> None:
        own = {state.user} if phase == "upload" and isinstance(state, lightsecagg.UserState) else set()
        right(state, phase, inbox, kinds, {*senders, *own})

    return wrong


@mutant(
    "first-element-of-messages-checked",
    "MOD-06",
    "acceptance: of a vector in a message only the first number is held against q; the others are reduced",
    f"{_LSA}:_vector",
    lambda: _server(_uploads(0, 1, 2, last=7)),
    kind="acceptance",
    source="clause in part",
)
def _first_element(right: Function) -> Function:
    def wrong(state: Any, message: Any, value: Any, length: int) -> Any:
        values = np.asarray(value)
        if values.size > 1 and values[0] < state.parameters.q:
            value = (values % np.uint64(state.parameters.q)).astype(np.uint64)
        return right(state, message, value, length)

    return wrong


# ------------------------------------------------------------------------------------------- requests of a script

_PARTIES = ("lightsecagg.user", "lightsecagg.server")


@mutant(
    "first-element-of-update-checked",
    "LSA-03",
    "acceptance: of an update only the first number is held against q; the others are reduced",
    f"{_LSA}:user_start",
    lambda: _script(update="00000000" * 2 + "07000000"),
    kind="acceptance",
    source="clause in part",
)
def _first_of_update(right: Function) -> Function:
    def wrong(parameters: Any, session: Any, round: Any, user: Any, update: UintArray, channel: Any) -> Any:
        if update.size and update[0] < parameters.q:
            update = update % np.uint64(parameters.q)
        return right(parameters, session, round, user, update, channel)

    return wrong


@mutant(
    "short-update-padded",
    "LSA-03",
    "acceptance: a user fills an update that is too short with zeros",
    f"{_LSA}:user_start",
    lambda: _script(update="00" * 8),
    kind="acceptance",
    source="silent repair",
)
def _padded(right: Function) -> Function:
    def wrong(parameters: Any, session: Any, round: Any, user: Any, update: UintArray, channel: Any) -> Any:
        missing = max(0, parameters.d - update.size)
        filled = np.concatenate([update, np.zeros(missing, np.uint64)])
        return right(parameters, session, round, user, filled, channel)

    return wrong


@mutant(
    "session-cut-or-padded",
    "ERR-02",
    "acceptance: a session that is not 16 bytes long is cut, or filled with zeros",
    f"{_ADAPTER}._arguments",
    lambda: _script(session="00"),
    kind="acceptance",
    source="silent repair",
)
def _session(right: Function) -> Function:
    return _reading(right, _PARTIES, lambda given: {"session": given["session"].ljust(32, "0")[:32]})


@mutant(
    "round-wraps",
    "ERR-02",
    "acceptance: a round number is taken modulo 2**32",
    f"{_ADAPTER}._arguments",
    lambda: _script(round="4294967296"),
    kind="acceptance",
    source="silent repair",
)
def _round(right: Function) -> Function:
    return _reading(right, _PARTIES, lambda given: {"round": str(int(given["round"]) % 2**32)})


@mutant(
    "user-wraps",
    "ERR-02",
    "acceptance: the number of a user is taken modulo N",
    f"{_ADAPTER}._arguments",
    lambda: _script(user=5),
    kind="acceptance",
    source="silent repair",
)
def _user_number(right: Function) -> Function:
    return _reading(right, _PARTIES[:1], lambda given: {"user": given["user"] % max(1, given["N"])})


def _sealed(count: int) -> object:
    privates = [bytes([user + 1]) * 32 for user in range(count)]
    roster = [public_key(private).hex() for private in privates]
    return _script(channel={"private": privates[0].hex(), "roster": roster})


@mutant(
    "long-roster-cut",
    "ERR-02",
    "acceptance: of a roster with more than N keys the first N are taken",
    f"{_ADAPTER}._arguments",
    lambda: _sealed(6),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def change(given: dict[str, Any]) -> dict[str, Any]:
        channel = given["channel"]
        if not isinstance(channel, dict) or not isinstance(channel.get("roster"), list):
            return {}
        return {"channel": {**channel, "roster": channel["roster"][: given["N"]]}}

    return _reading(right, _PARTIES[:1], change)
