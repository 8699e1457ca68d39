"""Planted bugs of a round: its session id, who survives, and what a user looks at before it joins and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.multi_round_witness import Function, request, session, survivors
from secagg_spec.conformance.mutants.wrapped import BUILD, changing
from secagg_spec.crypto.keys import LABEL, fields, sha256
from secagg_spec.errors import InconsistentSets
from secagg_spec.protocols.multi_round import PURPOSE
from secagg_spec.selection.batches import Parameters, in_family

_ROUND = "secagg_spec.protocols.multi_round"
_ID, _INPUTS = f"{_ROUND}:round_session", f"{_ROUND}:whole_inputs"
_CHOICE, _SURVIVORS = f"{_ROUND}:check_choice", f"{_ROUND}:check_survivors"


# ------------------------------------------------------------------------------------------------- the session id


def _bound(
    name: str, effect: str, *, kind: str, source: str
) -> Callable[[Callable[[Parameters, bytes, int, Sequence[int]], bytes]], Any]:
    """Register a mutant with another session id of a round."""

    def register(made: Callable[[Parameters, bytes, int, Sequence[int]], bytes]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
                right(parameters, session, number, chosen)
                return made(parameters, session, number, chosen)

            return wrong

        return mutant(name, "MRA-19", effect, _ID, session, kind=kind, source=source)(build)

    return register


def _hashed(*parts: Any) -> bytes:
    return sha256(fields(LABEL, PURPOSE, *parts))[:16]


@_bound(
    "round-id-without-n",
    "replay: rounds of sessions with another N have one session id",
    kind="acceptance",
    source="field not bound: N",
)
def _without_n(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, number, p.K, p.T, *chosen)


@_bound(
    "round-id-without-t",
    "privacy: users that think of other batches have one session id",
    kind="privacy",
    source="field not bound: T",
)
def _without_t(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, number, p.N, p.K, *chosen)


@_bound(
    "round-id-without-the-choice",
    "privacy: a server that tells users of different choices is not noticed",
    kind="privacy",
    source="field not bound: the choice",
)
def _without_choice(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, number, p.N, p.K, p.T)


@_bound(
    "round-id-of-batches",
    "disagreement: the batches of a choice are hashed, and not its users",
    kind="form",
    source="other rule: batches hashed and not users",
)
def _of_batches(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, number, p.N, p.K, p.T, *sorted({user // p.T for user in chosen}))


@_bound(
    "round-id-of-the-session",
    "replay: all rounds of a session have its own id",
    kind="privacy",
    source="field not bound: everything but the session",
)
def _of_session(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return session


@_bound(
    "round-id-of-descending-users",
    "disagreement: the chosen users are hashed in descending order",
    kind="form",
    source="order",
)
def _descending(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, number, p.N, p.K, p.T, *reversed(chosen))


@_bound(
    "round-id-with-the-highest-byte-first",
    "disagreement: numbers are hashed with the highest byte first",
    kind="form",
    source="encoding",
)
def _highest_first(p: Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    return _hashed(session, *(entry.to_bytes(4, "big") for entry in (number, p.N, p.K, p.T, *chosen)))


@mutant(
    "round-id-of-any-choice",
    "MRA-19",
    "disagreement: a choice is put in order, and what is no set of the family is filled up, before it is hashed",
    BUILD,
    lambda: [session((6, 7, 2, 3)), session((2, 3, 6)), session((1, 2, 3, 4)), session((2, 3, 6, 7, 8))],
    kind="acceptance",
    source="silent repair",
)
def _any_choice(right: Function) -> Function:
    def mended(given: dict[str, Any]) -> dict[str, Any]:
        N, K, T = (given[name] for name in ("N", "K", "T"))
        if T < 1 or not T <= K <= N or any(count % T for count in (N, K)):
            return given
        kept = list(dict.fromkeys(user // T for user in given["chosen"] if 0 <= user < N))
        others = [batch for batch in range(N // T) if batch not in kept]
        whole = sorted([*kept, *others][: K // T])
        return {**given, "chosen": [batch * T + at for batch in whole for at in range(T)]}

    return changing("select.session")(mended)(right)  # type: ignore[no-any-return]


@mutant(
    "round-id-of-a-fitted-session",
    "MRA-19",
    "disagreement: a session id is cut to 16 bytes or continued by zeros, and a round number is reduced",
    BUILD,
    lambda: [session(session="07" * 15), session(session="07" * 17), session(round=2**32)],
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    def mended(given: dict[str, Any]) -> dict[str, Any]:
        number = int(given["round"]) % 2**32
        return {**given, "session": (given["session"] + "00" * 16)[:32], "round": str(number)}

    return changing("select.session")(mended)(right)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------ colluders


@mutant(
    "colluders-not-looked-at",
    "MRA-17",
    "privacy: c is moved to where it is allowed, so that one honest user may be alone with c colluders",
    BUILD,
    lambda: [survivors(0, 1, 2, c=0), survivors(0, 1, 2, c=2), request(c=3)],
    kind="privacy",
    source="silent repair",
)
def _colluders(right: Function) -> Function:
    def moved(given: dict[str, Any]) -> dict[str, Any]:
        return {**given, "c": max(1, min(given["c"], given["T"] - 2))}

    return changing("select.complete", "select.request")(moved)(right)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------ survivors


def _surviving(
    name: str, effect: str, *arrived: int, kind: str, source: str
) -> Callable[[Callable[[Parameters, Sequence[int]], Any]], Any]:
    """Register a mutant with other survivors."""

    def register(left: Callable[[Parameters, Sequence[int]], Any]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, arrived: Sequence[int]) -> tuple[int, ...]:
                right(parameters, arrived)
                return tuple(left(parameters, arrived))

            return wrong

        return mutant(name, "MRA-18", effect, _INPUTS, lambda: survivors(*arrived), kind=kind, source=source)(build)

    return register


def _count(p: Parameters, arrived: Sequence[int], user: int) -> int:
    return sum(other // p.T == user // p.T for other in arrived)


@_surviving(
    "survivors-of-any-batch",
    "privacy: all users whose masked inputs came survive, whoever is missing",
    0,
    1,
    2,
    3,
    kind="privacy",
    source="paper: multi-round, a batch that loses a member",
)
def _of_any(p: Parameters, arrived: Sequence[int]) -> Any:
    return sorted(arrived)


@_surviving(
    "survivors-of-most-of-a-batch",
    "privacy: the users of a batch survive that lacks one",
    0,
    1,
    2,
    3,
    4,
    kind="privacy",
    source="off by one",
)
def _of_most(p: Parameters, arrived: Sequence[int]) -> Any:
    return sorted(user for user in arrived if _count(p, arrived, user) >= p.T - 1)


@_surviving(
    "survivors-only-of-all-batches",
    "no sum: a batch that is lost loses the round",
    0,
    1,
    2,
    3,
    kind="refusal",
    source="clause too strict",
)
def _of_all(p: Parameters, arrived: Sequence[int]) -> Any:
    return sorted(arrived) if len(arrived) == p.K else ()


@_surviving(
    "survivors-with-the-missing-ones",
    "failure: a batch survives as a whole when somebody's input came",
    0,
    1,
    2,
    3,
    kind="sum",
    source="other rule: a batch survives with any of its users",
)
def _with_missing(p: Parameters, arrived: Sequence[int]) -> Any:
    return [user for user in range(p.K) if _count(p, arrived, user)]


@_surviving(
    "survivors-in-the-order-of-arrival",
    "disagreement: survivors stand as their inputs came",
    5,
    4,
    3,
    kind="form",
    source="order",
)
def _in_order(p: Parameters, arrived: Sequence[int]) -> Any:
    return [user for user in arrived if _count(p, arrived, user) == p.T]


@mutant(
    "inputs-of-strangers-passed-over",
    "MRA-18",
    "failure: whoever is not in the round is passed over, and a second masked input takes the place of the first",
    BUILD,
    lambda: [survivors(0, 1, 2, 9), survivors(0, 1, 2, 1), survivors(0, 1, 2, -1)],
    kind="acceptance",
    source="silent repair",
)
def _strangers(right: Function) -> Function:
    def mended(given: dict[str, Any]) -> dict[str, Any]:
        return {**given, "arrived": [user for user in dict.fromkeys(given["arrived"]) if 0 <= user < given["K"]]}

    return changing("select.complete")(mended)(right)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------- what a user looks at


def _joining(
    name: str, effect: str, *witness: Any, kind: str, source: str
) -> Callable[[Callable[[Parameters, int, Sequence[int]], bool]], Any]:
    """Register a mutant that joins with other choices; the witnesses are a choice and a user."""

    def register(good: Callable[[Parameters, int, Sequence[int]], bool]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, user: int, chosen: Sequence[int]) -> tuple[int, ...]:
                if not good(parameters, user, chosen):
                    raise InconsistentSets("the choice is none")
                return tuple(chosen)

            return wrong

        shown = lambda: [request(chosen=chosen, user=user) for chosen, user in witness]  # noqa: E731
        return mutant(name, "MRA-20", effect, _CHOICE, shown, kind=kind, source=source)(build)

    return register


def _is_set(p: Parameters, users: Sequence[int]) -> bool:
    inside = all(0 <= user < p.N for user in users) and len(set(users)) == len(users)
    return inside and in_family(p, users)


def _ascends(users: Sequence[int]) -> bool:
    return list(users) == sorted(set(users))


@_joining(
    "joins-without-being-chosen",
    "failure: a user joins a round that it was not chosen for",
    (range(9), 10),
    kind="acceptance",
    source="clause in part",
)
def _not_chosen(p: Parameters, user: int, chosen: Sequence[int]) -> bool:
    return _ascends(chosen) and _is_set(p, chosen)


@_joining(
    "joins-any-k-users",
    "privacy: a user joins with any K users, so that its batch can be asked for in parts",
    ((0, 1, 2, 3, 4, 5, 6, 7, 9), 4),
    kind="privacy",
    source="clause in part",
)
def _any_k(p: Parameters, user: int, chosen: Sequence[int]) -> bool:
    inside = all(0 <= other < p.N for other in chosen)
    return _ascends(chosen) and inside and len(chosen) == p.K and user in chosen


@_joining(
    "joins-its-own-batch",
    "privacy: a user looks whether its own batch is whole, and not the others",
    ((*range(8), 9), 4),
    kind="privacy",
    source="clause in part",
)
def _own_batch(p: Parameters, user: int, chosen: Sequence[int]) -> bool:
    own = all(other in chosen for other in p.members(user // p.T)) and all(0 <= other < p.N for other in chosen)
    return _ascends(chosen) and own and len(chosen) == p.K


@_joining(
    "joins-whole-batches",
    "cost: a user joins with any number of whole batches",
    (range(6), 4),
    (range(12), 4),
    kind="acceptance",
    source="clause in part",
)
def _batches(p: Parameters, user: int, chosen: Sequence[int]) -> bool:
    whole = {user // p.T * p.T + at for user in chosen for at in range(p.T)} == set(chosen)
    return _ascends(chosen) and whole and user in chosen and max(chosen) < p.N


@_joining(
    "joins-in-any-order",
    "disagreement: a choice whose users do not ascend is taken, so that users have other numbers in the round",
    ((3, 4, 5, 9, 10, 11, 6, 7, 8), 4),
    kind="acceptance",
    source="clause in part",
)
def _any_order(p: Parameters, user: int, chosen: Sequence[int]) -> bool:
    return _is_set(p, chosen) and user in chosen


def _answering(
    name: str, effect: str, *witness: Sequence[int], kind: str, source: str
) -> Callable[[Callable[[Parameters, list[int]], bool]], Any]:
    """Register a mutant that answers for other survivors."""

    def register(good: Callable[[Parameters, list[int]], bool]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, survivors: Sequence[int]) -> None:
                if not good(parameters, list(survivors)):
                    raise InconsistentSets("the survivors are no union of batches")

            return wrong

        shown = lambda: [request(survivors) for survivors in witness]  # noqa: E731
        return mutant(name, "MRA-21", effect, _SURVIVORS, shown, kind=kind, source=source)(build)

    return register


@_answering(
    "survivors-not-looked-at",
    "privacy: a server that asks for all but one user has that user",
    (0, 1, 2, 3),
    kind="privacy",
    source="paper: multi-round, a batch that loses a member",
)
def _any_survivors(p: Parameters, survivors: list[int]) -> bool:
    return True


@_answering(
    "a-lone-member-survives",
    "privacy: one user of a batch may survive without the others",
    (0, 1, 2, 3),
    kind="privacy",
    source="clause in part",
)
def _lone(p: Parameters, survivors: list[int]) -> bool:
    return all(_count(p, survivors, user) in (1, p.T) for user in survivors) and max(survivors, default=0) < p.K


@_answering(
    "a-batch-survives-without-one",
    "privacy: a batch may lack one user",
    (0, 1, 2, 3, 4),
    kind="privacy",
    source="off by one",
)
def _lacks_one(p: Parameters, survivors: list[int]) -> bool:
    return all(_count(p, survivors, user) >= p.T - 1 for user in survivors) and max(survivors, default=0) < p.K


@_answering(
    "as-many-as-batches-survive",
    "privacy: survivors are counted, and a multiple of T is enough",
    (0, 1, 3, 4, 5, 6),
    kind="privacy",
    source="clause in part",
)
def _multiple(p: Parameters, survivors: list[int]) -> bool:
    return not divmod(len(survivors), p.T)[1] and max(survivors, default=0) < p.K


@_answering(
    "survivors-outside-the-round",
    "failure: whole batches may survive that are not in the round",
    range(12),
    kind="acceptance",
    source="clause in part",
)
def _outside(p: Parameters, survivors: list[int]) -> bool:
    return all(_count(p, survivors, user) == p.T for user in survivors)


@_answering(
    "only-everybody-survives",
    "no sum: a user answers for all users of the round only",
    (0, 1, 2),
    kind="refusal",
    source="clause too strict",
)
def _everybody(p: Parameters, survivors: list[int]) -> bool:
    return survivors == list(range(p.K))


@mutant(
    "survivors-by-numbers-of-the-session",
    "MRA-21",
    "failure: survivors are taken for users by their numbers in the session, of the batches that were chosen",
    BUILD,
    lambda: [request(range(3)), request(range(9))],
    kind="refusal",
    source="other rule: numbers of the session and not of the round",
)
def _session_numbers(right: Function) -> Function:
    def named(given: dict[str, Any]) -> dict[str, Any]:
        places = {user: place for place, user in enumerate(given["chosen"])}
        return {**given, "survivors": [places.get(user, given["K"]) for user in given["survivors"]]}

    return changing("select.request")(named)(right)  # type: ignore[no-any-return]
