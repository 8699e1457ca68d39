"""Vectors of Multi-RoundSecAgg, one function at a time: families, choices, session ids, survivors, audits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from secagg_spec.conformance.cases import multi_round_oracles as oracles
from secagg_spec.conformance.cases.multi_round_functions import (
    BATCH,
    COMPLETE,
    FAMILY,
    MAX_FREQUENCY,
    REQUEST,
    SESSION,
    Asked,
    Choice,
    per_round,
    wrong_colluders,
    wrong_numbers,
)
from secagg_spec.conformance.cases.multi_round_logs import AUDIT
from secagg_spec.conformance.cases.multi_round_oracles import Numbers
from secagg_spec.conformance.checks.multi_round_choices import DRAWS, FREQUENCIES, NUMBERS, USERS
from secagg_spec.conformance.checks.multi_round_rounds import CHOICE, HEADER
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
)

_TINY = Numbers(12, 6, 3)
_PRESETS = {"tiny": _TINY, "default": Numbers(24, 12, 4), "paper": Numbers(120, 12, 6)}

_WRONG = {name: wrong for name, wrong in wrong_numbers(_TINY).items() if wrong["N"]}
"""Numbers that do not fit together. Some would, if they were moved to another member."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("multi_round", "Multi-RoundSecAgg, one function at a time: choices, rounds, and audits of logs.")
    _families(made)
    _choices(made)
    _refused_choices(made)
    _session_ids(made)
    _survivors(made)
    _requests(made)
    _audits(made)
    return made


# ------------------------------------------------------------------------------------------------------ the family


def _families(made: VectorFile) -> None:
    for name, p in _PRESETS.items():
        made.valid(
            f"family-{name}", FAMILY, p.members(),
            clauses=["MRA-02"], flags=["Family"], comment=f"the parameters {name} of section 2",
        )  # fmt: skip
    for N, K, T, comment in (
        (6, 3, 1, "batches of one user: all sets of three"),
        (8, 4, 4, "rounds of one batch: two groups that never mix"),
        (6, 6, 2, "everybody, in every round"),
        (1, 1, 1, "one user"),
        (6, 4, 2, "all but one batch"),
    ):
        made.valid(
            f"family-{N}-{K}-{T}", FAMILY, Numbers(N, K, T).members(),
            clauses=["MRA-02"], flags=["Family"], comment=comment,
        )  # fmt: skip
    for N, K, T in ((120, 60, 1), (240, 120, 2), (46, 2, 1), (1001, 1000, 1)):
        size = oracles.family_size(Numbers(N, K, T))
        made.valid(
            f"family-large-{N}-{K}-{T}", FAMILY, Numbers(N, K, T).members(),
            clauses=["MRA-02"], flags=["FamilySize" if size > 2**60 else "Family"],
            comment=f"{size} sets, which are not listed",
        )  # fmt: skip
    for name, wrong in _WRONG.items():
        id = f"family-refused-{name.replace(' ', '-').lower()}"
        made.invalid(
            id, FAMILY, wrong,
            codes=NUMBERS, clauses=["MRA-01"], flags=[_kind(wrong)], comment=f"there is {name}",
        )  # fmt: skip


def _kind(wrong: dict[str, int]) -> str:
    fits = 1 <= wrong["T"] <= wrong["K"] <= wrong["N"]
    return "Remainder" if fits else "Sizes"


# --------------------------------------------------------------------------------------------------------- choices


def _below(id: str, name: str, bound: int) -> int:
    """Draw an integer at least 0 and below a bound."""
    return int(drawn(id, name, bound, 1)[0]) if bound > 1 else 0


def _drawn_choice(
    id: str, p: Numbers, strategy: str, frequencies: Sequence[int] = (), missing: Iterable[int] = ()
) -> Choice:
    """Draw a choice: its frequencies unless given, the order of the available users, and its draws."""
    often = tuple(frequencies) or tuple(drawn(id, "frequencies", 3, p.N).tolist())
    here = [user for user in range(p.N) if user not in set(missing)]
    steps = [_below(id, f"place {at}", len(here) - at) for at in range(len(here))]
    order = iter(steps)
    named = tuple(oracles.drawn(here, len(here), lambda bound: next(order)))
    bounds = oracles.bounds(p, strategy, often, named)
    draws = [_below(id, f"draw {at}", bound) for at, bound in enumerate(bounds)]
    return Choice(p, strategy, often, named, tuple(draws))


def _choose(
    made: VectorFile, id: str, chosen: Choice, clauses: Sequence[str], flags: Sequence[str], comment: str
) -> None:
    made.valid(id, BATCH, chosen.params(), chosen.rand(), clauses=clauses, flags=flags, comment=comment)


_Ints = tuple[int, ...]
_WEIGHTED: tuple[tuple[str, _Ints, _Ints, str, str], ...] = (
    ("ties", (0, 0, 0, 0, 0), (4, 2), "Ties", "all users have one frequency"),
    ("one-more-drawn", (1, 0, 1, 1, 1), (3,), "Ties", "one user has the least frequency, and one more is drawn"),
    ("few-of-the-least", (0, 1, 2, 2, 2), (), "FewOfTheLeast", "one user for each of the two least frequencies"),
)
"""Choices of two of five users: the name, frequencies, draws, flag, and comment."""


def _choices(made: VectorFile) -> None:
    four = Numbers(8, 4, 2)
    for strategy in oracles.STRATEGIES:
        p = (
            Numbers(12, 5, 1)
            if strategy in oracles.SEPARATE
            else Numbers(12, 3, 3)
            if strategy == "partition"
            else _TINY
        )
        for number in range(4):
            id = f"choice-{strategy}-{number}"
            flags = ["Drawn"] if strategy in ("random", "uniform") else ["Seldom"]
            _choose(made, id, _drawn_choice(id, p, strategy), ["MRA-05"], flags, f"{strategy}, with all users")
    for name, p in _PRESETS.items():
        for strategy in ("uniform", "fair", "least"):
            id = f"choice-{strategy}-{name}"
            missing = [p.T, p.N - 1]
            chosen = _drawn_choice(id, p, strategy, missing=missing)
            _choose(made, id, chosen, ["MRA-05"], ["Drawn"], f"the parameters {name}; two batches are not complete")
    for name, strategy, often in (
        ("least-of-a-batch", "fair", (9, 0, 3, 3, 1, 4, 2, 2)),
        ("one-batch-first", "fair", (0, 0, 1, 1, 2, 2, 0, 0)),
        ("all-places-by-frequency", "least", (0, 0, 1, 1, 2, 2, 1, 1)),
        ("least-of-a-batch-in-all-places", "least", (9, 2, 3, 3, 1, 4, 9, 0)),
        ("digits", "least", (10, 10, 9, 9, 100, 100, 9, 12)),
        ("largest-frequencies", "fair", (MAX_FREQUENCY,) * 6 + (MAX_FREQUENCY - 1,) * 2),
    ):
        id, comment = f"choice-{name}", f"frequencies {list(often)}"
        _choose(made, id, _drawn_choice(id, four, strategy, often), ["MRA-05"], ["Seldom"], comment)
    all_least = Choice(four, "fair", (0, 0, 1, 1, 2, 2, 0, 0), tuple(range(8)), (0, 1))
    comment = "two batches of the least frequency: one of them is first, and then one of all others"
    _choose(made, "choice-others-of-any-frequency", all_least, ["MRA-05"], ["Seldom"], comment)
    id = "choice-least-is-incomplete"
    chosen = _drawn_choice(id, four, "fair", (0, 9, 1, 1, 2, 2, 3, 3), [1])
    comment = "the user of the least frequency is in a batch that is not complete"
    _choose(made, id, chosen, ["MRA-05", "MRA-04"], ["SeldomAndIncomplete"], comment)
    for name, seldom, draws, flag, comment in _WEIGHTED:
        weighted = Choice(Numbers(5, 2, 1), "weighted", seldom, (4, 3, 0, 1, 2), draws)
        clause = "MRA-04" if flag == "FewOfTheLeast" else "MRA-05"
        _choose(made, f"choice-weighted-{name}", weighted, [clause], [flag], comment)
    _rounds_or_none(made, four)


def _rounds_or_none(made: VectorFile, p: Numbers) -> None:
    for strategy in ("uniform", "fair", "least"):
        id, comment = f"choice-{strategy}-just-enough", "just as many batches are complete as make a round"
        chosen = _drawn_choice(id, p, strategy, missing=[1, 4])
        _choose(made, id, chosen, ["MRA-04", "MRA-03"], ["JustEnough", "Incomplete"], comment)
        id, comment = f"choice-{strategy}-none", "one batch is complete, and a round has two"
        chosen = _drawn_choice(id, p, strategy, missing=[1, 4, 7])
        _choose(made, id, chosen, ["MRA-04"], ["TooFew" if strategy == "uniform" else "Incomplete"], comment)
    turned = Choice(p, "uniform", (0,) * 8, tuple(range(7, -1, -1)), (1, 0))
    comment = "the available users are named in descending order"
    _choose(made, "choice-named-from-the-end", turned, ["MRA-06"], ["Named"], comment)
    nobody = Choice(p, "uniform", (0,) * 8, ())
    _choose(made, "choice-nobody-is-there", nobody, ["MRA-04"], ["TooFew"], "nobody is available")


def _refused_choices(made: VectorFile) -> None:
    right = Choice(Numbers(8, 4, 2), "uniform", (0,) * 8, tuple(range(8)), (3, 1))

    def refuse(name: str, clause: str, flag: str, codes: frozenset[str], draws: Sequence[int], **changed: Any) -> None:
        made.invalid(
            f"choice-refused-{name}", BATCH, right.params(**changed), right.rand(draws),
            codes=codes, clauses=[clause], flags=[flag], comment=f"there is {name.replace('-', ' ')}",
        )  # fmt: skip

    draws: tuple[int, ...]
    for name, draws in (("a-draw-too-large", (4, 1)), ("a-later-draw-too-large", (3, 3)), ("a-negative-draw", (-1, 1))):
        refuse(name, "MRA-08", "DrawRange", DRAWS, draws)
    for name, draws in (("a-draw-too-many", (3, 1, 0)), ("a-draw-too-few", (3,)), ("no-draw", ())):
        refuse(name, "MRA-08", "DrawCount", DRAWS, draws)
    refuse("a-draw-without-a-round", "MRA-08", "DrawCount", DRAWS, (0,), available=[0, 1, 2])
    for name, wrong in (("a-frequency-too-few", (0,) * 7), ("a-frequency-too-many", (0,) * 9)):
        refuse(name, "MRA-09", "FrequencyList", FREQUENCIES, (3, 1), frequencies=list(wrong))
    refuse("a-negative-frequency", "MRA-09", "FrequencyList", FREQUENCIES, (3, 1), frequencies=[0] * 7 + [-1])
    refuse("a-frequency-of-2-to-the-32", "MRA-09", "FrequencyList", FREQUENCIES, (3, 1), frequencies=[2**32] + [0] * 7)
    for name, user in (("a-user-twice", 5), ("a-stranger", 8), ("a-negative-user", -1)):
        refuse(name, "MRA-09", "AvailableUsers", USERS, (3, 1), available=[*range(8), user])
    for strategy, draws in (("random", (3, 1)), ("weighted", (3, 1)), ("partition", (3, 1))):
        name = f"batches-of-two-for-{strategy}"
        refuse(name, "MRA-09", "StrategyBatch", NUMBERS, draws, strategy=strategy)
    for name, strategy in (("no-strategy", ""), ("another-case", "Uniform"), ("another-name", "fairest")):
        refuse(name, "ADP-40", "Strategy", NUMBERS, (3, 1), strategy=strategy)
    for name, numbers in _WRONG.items():
        N = max(numbers["N"], 0)
        given = {"strategy": "uniform", "frequencies": [0] * N, "available": list(range(N))}
        if _kind(numbers) == "Sizes":
            made.invalid(
                f"choice-refused-{name.replace(' ', '-').lower()}", BATCH, {**numbers, **given},
                {"draws": [0] * per_round(numbers)},
                codes=NUMBERS, clauses=["MRA-01"], flags=["Sizes"], comment=f"there is {name}",
            )  # fmt: skip


# ---------------------------------------------------------------------------------------------- a round


def _session_ids(made: VectorFile) -> None:
    rounds = {"tiny": 0, "default": 256, "paper": 2**32 - 1}
    for name, p in _PRESETS.items():
        id = f"round-id-{name}"
        chosen = p.users(sorted(_some_batches(id, p)))
        params = {**p.members(), "session": drawn_bytes(id, "session", 16).hex(), "round": str(rounds[name])}
        made.valid(
            id, SESSION, {**params, "chosen": chosen},
            clauses=["MRA-19"], flags=["RoundId"], comment=f"the parameters {name}, in round {rounds[name]}",
        )  # fmt: skip
    for name, chosen in (
        ("descending", [11, 10, 9, 2, 1, 0]),
        ("other-batch-first", [9, 10, 11, 0, 1, 2]),
        ("user-less", [0, 1, 2, 9, 10]),
        ("part-of-a-batch", [0, 1, 2, 8, 9, 10]),
        ("batch-more", [0, 1, 2, 3, 4, 5, 9, 10, 11]),
        ("user-twice", [0, 1, 2, 9, 10, 10]),
        ("stranger", [0, 1, 2, 12, 13, 14]),
    ):
        _refused_id(made, f"round-id-refused-{name}", "RoundIdChoice", CHOICE, f"the choice is {chosen}", chosen=chosen)
    for name, changed in (
        ("session-of-15", {"session": drawn_bytes("round-id-refused-session-of-15", "session", 15).hex()}),
        ("session-of-17", {"session": drawn_bytes("round-id-refused-session-of-17", "session", 17).hex()}),
        ("round", {"round": str(2**32)}),
    ):
        _refused_id(made, f"round-id-refused-{name}", "RoundIdForm", HEADER, f"there is {changed}", **changed)
    for name, numbers in _WRONG.items():
        if (_kind(numbers) == "Sizes" and numbers["N"] > numbers["K"] > 0) or name.startswith("a round larger"):
            chosen = list(range(min(numbers["K"], numbers["N"])))
            id = f"round-id-refused-{name.replace(' ', '-').lower()}"
            _refused_id(made, id, "Sizes", NUMBERS | CHOICE, f"there is {name}", "MRA-01", **numbers, chosen=chosen)


def _refused_id(
    made: VectorFile, id: str, flag: str, codes: frozenset[str], comment: str, clause: str = "MRA-19", **changed: Any
) -> None:
    params = {**_TINY.members(), "session": drawn_bytes(id, "session", 16).hex(), "round": "3"}
    params |= {"chosen": [0, 1, 2, 9, 10, 11], **changed}
    made.invalid(id, SESSION, params, codes=codes, clauses=[clause], flags=[flag], comment=comment)


def _some_batches(id: str, p: Numbers) -> list[int]:
    """Draw the batches of a round."""
    steps = iter([_below(id, f"batch {at}", p.batches - at) for at in range(p.per_round)])
    return oracles.drawn(range(p.batches), p.per_round, lambda bound: next(steps))


_SESSION = Numbers(15, 9, 3)
"""Three batches of three users in a round."""


def _survivors(made: VectorFile) -> None:
    for name, arrived, comment in (
        ("all", range(9), "everything came"),
        ("one-missing", (8, 7, 6, 5, 4, 3, 2, 1), "one masked input did not come"),
        ("two-missing", (0, 1, 2, 4, 5, 6, 7), "two batches lack a masked input"),
        ("out-of-order", (5, 0, 4, 2, 3, 8), "one batch is complete, its users in another order"),
        ("none", (0, 3, 6), "one user of each batch is there"),
        ("nobody", (), "nothing came"),
    ):
        params = {**_SESSION.members(), "c": 1, "arrived": list(arrived)}
        made.valid(
            f"survivors-{name}", COMPLETE, params, clauses=["MRA-18"], flags=["Survivors"], comment=comment
        )  # fmt: skip
    for name, user in (("twice", 4), ("another-round", 9), ("negative", -1)):
        params = {**_SESSION.members(), "c": 1, "arrived": [*range(9), user]}
        made.invalid(
            f"survivors-refused-{name}", COMPLETE, params,
            codes=USERS, clauses=["MRA-18"], flags=["ArrivedUsers"], comment=f"a masked input came of user {user} too",
        )  # fmt: skip
    for name, changed in wrong_colluders(_SESSION).items():
        params = {**_SESSION.members(), **changed, "arrived": list(range(9))}
        made.invalid(
            f"survivors-refused-{name.replace(' ', '-').replace('+', 'plus')}", COMPLETE, params,
            codes=NUMBERS, clauses=["MRA-17"], flags=["Colluders"], comment=f"there is {name}",
        )  # fmt: skip


def _requests(made: VectorFile) -> None:
    chosen = (3, 4, 5, 6, 7, 8, 12, 13, 14)
    right = Asked(_SESSION, 1, 7, chosen, tuple(range(9)))

    def answered(name: str, survivors: Sequence[int], comment: str) -> None:
        made.valid(
            f"asked-{name}", REQUEST, right.params(survivors=list(survivors)),
            clauses=["MRA-20", "MRA-21"], flags=["WholeBatches"], comment=comment,
        )  # fmt: skip

    answered("everybody", range(9), "all users of the round survive")
    answered("own-batch", (3, 4, 5), "the user's batch alone survives")
    answered("two-batches", (3, 4, 5, 6, 7, 8), "a batch is lost")

    def refuse(name: str, clause: str, flag: str, comment: str, **changed: Any) -> None:
        made.invalid(
            f"asked-refused-{name}", REQUEST, right.params(**changed),
            codes=CHOICE, clauses=[clause], flags=[flag], comment=comment,
        )  # fmt: skip

    for name, survivors in (
        ("one-less", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("a-lone-one", (3, 4, 5, 8)),
        ("own-part", (0, 1, 2, 3, 4)),
        ("alone-among-others", (0, 1, 2, 4)),
        ("as-many-as-a-batch", (0, 4, 8)),
        ("outside", tuple(range(12))),
    ):
        refuse(name, "MRA-21", "PartOfABatch", f"the survivors are {list(survivors)}", survivors=list(survivors))
    for name, wrong in (
        ("part-of-a-batch", (3, 4, 5, 6, 7, 8, 11, 12, 13)),
        ("own-batch-whole", (2, 3, 4, 6, 7, 8, 12, 13, 14)),
        ("fewer-batches", (3, 4, 5, 6, 7, 8)),
        ("more-batches", (0, 1, 2, *chosen)),
    ):
        refuse(name, "MRA-20", "AnyChoice", f"the choice is {list(wrong)}", chosen=list(wrong))
    for name, wrong in (("descending", chosen[::-1]), ("batch-order", (6, 7, 8, 3, 4, 5, 12, 13, 14))):
        refuse(name, "MRA-20", "ChoiceOrder", f"the choice is {list(wrong)}", chosen=list(wrong))
    for user in (0, 11):
        refuse(f"not-chosen-{user}", "MRA-20", "NotChosen", f"user {user} is not in the choice", user=user)
    for name, numbers in wrong_colluders(_SESSION).items():
        made.invalid(
            f"asked-refused-{name.replace(' ', '-').replace('+', 'plus')}", REQUEST, right.params(**numbers),
            codes=NUMBERS, clauses=["MRA-17"], flags=["Colluders"], comment=f"there is {name}",
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ the audit

_Rounds = Sequence[Sequence[int]]
_LINES = ((0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5))
"""The lines of the plane of seven points: users are recoverable by sixths."""
_ALL_FLAGS = ("Recoverable", "Combination", "Strong", "Weak", "Figures")


_LOGS: tuple[tuple[str, int, _Rounds, str], ...] = (
    ("no-rounds", 3, (), "no rounds"),
    ("empty-rounds", 3, ((), ()), "two rounds without a sum"),
    ("one-round", 4, ((0, 1, 2),), "one round, and a user that is in none"),
    ("triangle", 4, ((0, 1), (1, 2), (0, 2), (0, 1)), "three users come out by halves, after three rounds"),
    ("difference", 4, ((0, 1, 2), (), (0, 1)), "the second sum less than the first by one user"),
    ("alone", 3, ((1,), (0, 2), (1,)), "a user is alone, twice"),
    ("chain", 3, ((0, 1), (1, 2)), "weak privacy 2 and strong privacy 1"),
    ("all-but-one", 4, ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)), "by thirds"),
    ("cube", 5, ((0, 1, 2), (0, 1, 3), (0, 1), (2, 3, 4)), "users in the end, and one class of two"),
    ("plane", 7, _LINES, "seven users, three in each round, each two together once: by sixths"),
    ("plane-in-part", 8, _LINES[:5], "five rounds of these, and a user that is in none"),
    ("path", 6, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5,)), "all come out in the last round"),
    ("odd-circle", 5, ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)), "a circle of odd length, by halves"),
    ("even-circle", 4, ((0, 1), (1, 2), (2, 3), (0, 3)), "a circle of even length tells nothing"),
    ("batches", 12, ((0, 1, 2, 3, 4, 5), (0, 1, 2, 6, 7, 8), (3, 4, 5, 6, 7, 8)), "whole batches of three"),
    ("batch-in-part", 12, ((0, 1, 2, 3, 4, 5), (0, 1, 3, 4, 5)), "one user of a batch drops out of a second round"),
    ("growing", 6, ((0, 1), (0, 1, 2), (0, 2, 3), (1, 3, 4), (2, 4, 5), (0, 5)), "factors that are not 1"),
    (
        "thirteen-rounds",
        6,
        ((0, 1, 2, 4, 5), (1, 2), (1, 2, 3), *[()] * 9, (0,)),
        "user 0 is in the rounds 0 and 12, and users 1 and 2 are in 0, 1 and 2",
    ),
    (
        "hidden",
        7,
        ((), (0, 1, 2, 3, 4, 6), (1, 3, 4, 5), (0, 2, 3, 5), (0, 1, 5)),
        "users hidden by two or three others",
    ),
)
_BAD_LOGS: tuple[tuple[str, _Rounds], ...] = (
    ("twice", ((0, 1), (1, 2, 2))),
    ("stranger", ((0, 1), (2, 4))),
    ("negative", ((-1, 1), (2, 3))),
    ("all-twice", ((0, 0), (1, 1))),
)


def _audits(made: VectorFile) -> None:
    """Add logs whose rounds are independent up to the last one that matters, so that the combination is unique."""
    for name, N, rounds, comment in _LOGS:
        made.valid(
            f"audit-{name}", AUDIT, {"N": N, "rounds": [list(users) for users in rounds]},
            clauses=[f"MRA-1{at}" for at in (0, 1, 2, 3, 4, 6)], flags=_ALL_FLAGS, comment=comment,
        )  # fmt: skip
    for name, rounds in _BAD_LOGS:
        made.invalid(
            f"audit-refused-{name}", AUDIT, {"N": 4, "rounds": [list(users) for users in rounds]},
            codes=USERS, clauses=["MRA-15"], flags=["LogUsers"], comment=f"the rounds {[list(r) for r in rounds]}",
        )  # fmt: skip
