"""What planted bugs of Multi-RoundSecAgg are shown on: requests of one function at a time. It registers none itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from secagg_spec.conformance.targets import reference

Function = Callable[..., Any]
NUMBERS = {"N": 8, "K": 4, "T": 2}
"""Four batches of two users, two of them in a round."""
ALL = range(8)


def answer(operation: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> object:
    """Return the result of the reference, or the code with which it refuses, or that it breaks."""
    given = reference.build().answer({"id": 1, "op": operation, "params": params, **({"rand": rand} if rand else {})})
    return given.get("result", given.get("reject", {}).get("code", "broken"))


def family(N: int = 8, K: int = 4, T: int = 2) -> object:
    """Return a family."""
    return answer("select.family", {"N": N, "K": K, "T": T})


def batch(
    strategy: str,
    frequencies: Sequence[int] = (0,) * 8,
    available: Sequence[int] = ALL,
    draws: Sequence[int] = (1, 0),
    **numbers: int,
) -> object:
    """Return a choice."""
    given = {"strategy": strategy, "frequencies": list(frequencies), "available": list(available)}
    return answer("select.batch", {**NUMBERS, **numbers, **given}, {"draws": list(draws)})


def one_by_one(
    strategy: str, frequencies: Sequence[int] = (0,) * 5, draws: Sequence[int] = (1, 0), **given: Any
) -> object:
    """Return a choice of two of five users, in batches of one."""
    return batch(strategy, frequencies, given.pop("available", range(5)), draws, **{"N": 5, "K": 2, "T": 1, **given})


def session(chosen: Sequence[int] = (2, 3, 6, 7), round: int = 5, session: str = "07" * 16, **numbers: int) -> object:
    """Return the session id of a round."""
    given = {"session": session, "round": str(round), "chosen": list(chosen)}
    return answer("select.session", {**NUMBERS, **numbers, **given})


_ROUND = {"N": 12, "K": 9, "T": 3, "c": 1}


def survivors(*arrived: int, **numbers: int) -> object:
    """Return who survives of those whose masked inputs came."""
    return answer("select.complete", {**_ROUND, **numbers, "arrived": list(arrived)})


def request(
    survivors: Sequence[int] = range(9), chosen: Sequence[int] = range(3, 12), user: int = 4, **numbers: int
) -> object:
    """Return what a user says to a choice and to survivors; as a rule it is user 4, in the first batch of the round."""
    given = {"user": user, "chosen": list(chosen), "survivors": list(survivors)}
    return answer("select.request", {**_ROUND, **numbers, **given})


def audit(*rounds: Sequence[int], N: int = 4) -> object:
    """Return what a log tells; as a rule of four users."""
    return answer("audit.privacy", {"N": N, "rounds": [list(users) for users in rounds]})


TRIANGLE = ((0, 1), (1, 2), (0, 2))
"""Three rounds from which each of three users comes out, by halves."""
