"""One valid call of every public function that chooses users, and of Multi-RoundSecAgg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.crypto import entropy
from secagg_spec.crypto.entropy import SeededSource, SystemSource
from secagg_spec.errors import InconsistentSets, LengthMismatch, OutOfRange, ParameterError, UnknownUser
from secagg_spec.protocols import codec
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round import runs as multi_round_runs
from secagg_spec.protocols.multi_round.round import Parameters
from secagg_spec.protocols.multi_round.runs import Turn
from secagg_spec.protocols.steps import SERVER, Role
from secagg_spec.selection import batches, strategies
from tests.protocols.chosen import BOTH, SECAGG, SELECTION, case_of
from tests.strategies import pseudorandom, vector

MODULES = (batches, strategies, multi_round, multi_round_runs)
CORES = {
    "family",
    "family_size",
    "complete",
    "in_family",
    "draw",
    "uniform",
    "least",
    "fair",
    "round_batches",
    "leave_out",
    "look_at_survivors",
}
"""Functions behind a boundary, and functions whose only arguments are objects of the library."""

Parts: TypeAlias = tuple[Callable[..., Any], dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]

CHOSEN = tuple(range(4, 12))
NUMBERS = {"N": 12, "K": 8, "T": 4, "c": 1}
START = {"session": bytes(16), "number": 3}
SEEN, HERE = np.zeros(12, dtype=np.int64), np.ones(12, dtype=np.bool_)
TURN = Turn(pseudorandom(1, 97, 12, 2), range(12), {})
SAMPLED = ("sealing_key", "masking_key", "self_seed", "key_coefficients", "seed_coefficients", "coefficients")
OTHERS = (*SAMPLED, "private", "t", "secret", "mask", "noise", "surviving", "users", "update", "number")
CHOICE = {"strategy": "fair", "frequencies": SEEN, "available": HERE}
HEADER = ("session", "round", "sender", "receiver")


def started(p: Parameters, **changed: Any) -> Any:
    """The state of user 4."""
    values = {**START, "user": 4, "chosen": CHOSEN, "update": vector([1, 2]), **changed}
    return multi_round.user_start(p, **values)


def step_call(p: Parameters, row: int) -> Parts:
    """A valid call of the step in one row of the table."""
    case, step = case_of(p), p.base.table[row]
    network = case.stage(row)
    party = SERVER if step.role is Role.SERVER else 0
    sampled = {name: case.randomness[party][name] for name in step.randomness}
    fields = {name for kind in step.receives for name in codec.field_codecs(kind)}
    also = (*HEADER, *fields, *OTHERS, "survivors", *(kind.__name__ for kind in step.receives))
    arguments = {"inbox": network.mail(step, party), "randomness": sampled}
    return step.take, arguments, {"state": network.states[party]}, also, ()


def both(name: str, call: Callable[[Parameters], Parts]) -> dict[str, Parts]:
    """A call over either protocol."""
    return {f"{name} of a session over {p.base.name}": call(p) for p in BOTH}


CALLS: dict[str, Parts] = {
    "Parameters of batches": (batches.Parameters, {"N": 12, "K": 8, "T": 4}, {}, (), ()),
    "Parameters.batch_of": (SELECTION.batch_of, {"user": 3}, {}, (), ()),
    "Parameters.members": (SELECTION.members, {"batch": 1}, {}, (), ()),
    "whole_batches": (batches.whole_batches, {"users": (0, 1, 2, 3, 5)}, {"parameters": SELECTION}, (), ()),
    "ranges": (strategies.ranges, CHOICE, {"parameters": SELECTION}, (), ()),
    "choose": (strategies.choose, {**CHOICE, "draws": [2, 1]}, {"parameters": SELECTION}, ("T",), ()),
    "draw_below": (entropy.draw_below, {"ranges": [3, 2**32]}, {"source": SystemSource()}, (), ()),
    "Numbers": (multi_round.Numbers, NUMBERS, {}, (), ()),
    **both(
        "Parameters",
        lambda p: (multi_round.Parameters, {"selection": SELECTION, "round": p.round}, {}, (), ()),
    ),
    "whole_inputs": (multi_round.whole_inputs, {"arrived": (0, 1, 2, 3, 5)}, {"parameters": SELECTION}, (), ()),
    "check_choice": (
        multi_round.check_choice,
        {"user": 4, "chosen": CHOSEN},
        {"parameters": SELECTION},
        (),
        (),
    ),
    "check_survivors": (
        multi_round.check_survivors,
        {"survivors": (0, 1, 2, 3)},
        {"parameters": SELECTION},
        (),
        (),
    ),
    "round_session": (multi_round.round_session, {**START, "chosen": CHOSEN}, {"parameters": SELECTION}, (), ()),
    "Round": (multi_round.Round, {**START, "chosen": CHOSEN, "parameters": SECAGG}, {}, (), ()),
    **both(
        "user_start",
        lambda p: (started, {**START, "user": 4, "chosen": CHOSEN, "update": vector([1, 2])}, {"p": p}, (), ()),
    ),
    **both(
        "server_start",
        lambda p: (multi_round.server_start, {**START, "chosen": CHOSEN}, {"parameters": p}, (), ()),
    ),
    **both(
        "user_again",
        lambda p: (
            multi_round.user_again,
            {"number": 4, "chosen": CHOSEN, "update": vector([1, 2])},
            {"state": started(p)},
            (),
            (),
        ),
    ),
    **both(
        "server_again",
        lambda p: (
            multi_round.server_again,
            {"number": 4, "chosen": CHOSEN},
            {"state": multi_round.server_start(p, bytes(16), 3, CHOSEN)},
            (),
            (),
        ),
    ),
    **both(
        "open_round",
        lambda p: (
            multi_round.open_round,
            {"chosen": CHOSEN, "updates": case_of(p).updates, "session": bytes(16), "round": 0},
            {"parameters": p},
            ("number", "update"),
            (),
        ),
    ),
    **both(
        "run_round",
        lambda p: (
            multi_round.run_round,
            {
                "chosen": CHOSEN,
                "updates": case_of(p).updates,
                "randomness": case_of(p).randomness,
                "dropouts": {p.base.adds: [0]},
                "session": bytes(16),
                "round": 0,
            },
            {"parameters": p},
            OTHERS,
            (),
        ),
    ),
    **both(
        "run_session",
        lambda p: (
            multi_round_runs.run_session,
            {"turns": [TURN], "strategy": "fair", "session": bytes(16)},
            {"parameters": p, "source": SeededSource(b"calls", "session")},
            (*OTHERS, "updates", "available", "dropouts"),
            (),
        ),
    ),
    **{
        f"{step.phase} by the {step.role.value} in a session over {p.base.name}": step_call(p, row)
        for p in BOTH
        for row, step in enumerate(p.base.table)
    },
}

_OUTSIDE = np.array([0] * 11 + [2**32], dtype=np.int64)
REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("Parameters of batches", {"T": 5}, ParameterError, "K = 8: must be a multiple of T = 5, as 5 or 10 are"),
    ("Parameters of batches", {"K": 13}, ParameterError, "K = 13: must be an integer in [1, 12]"),
    ("Parameters of batches", {"N": 2**32}, ParameterError, "N = 4294967296: must be an integer in [1, 4294967295]"),
    ("Numbers", {"c": 3}, ParameterError, "T = 4: must be at least c + 2 = 5"),
    ("Numbers", {"c": 0}, ParameterError, "c = 0: must be an integer in [1, 4294967295]"),
    ("whole_batches", {"users": (0, 12)}, UnknownUser, "users = 12: must be a user in [0, 12)"),
    ("whole_inputs", {"arrived": (0, 8)}, UnknownUser, "arrived = 8: must be a user in [0, 8)"),
    ("choose", {"draws": [0]}, LengthMismatch, "len(draws) = 1: must be 2"),
    ("choose", {"draws": [3, 0]}, OutOfRange, "draws[0] = 3: must be an integer in [0, 3)"),
    (
        "choose",
        {"draws": [np.timedelta64(0, "s"), 0]},
        OutOfRange,
        "draws[0] = np.timedelta64(0,'s'): must be an integer in [0, 3)",
    ),
    ("choose", {"frequencies": SEEN[:11]}, LengthMismatch, "frequencies.shape = (11,): must be (12)"),
    ("choose", {"frequencies": _OUTSIDE}, OutOfRange, "frequencies[11] = 4294967296: must be in [0, 4294967296)"),
    ("choose", {"available": HERE[:3]}, LengthMismatch, "available.shape = (3,): must be (12)"),
    ("choose", {"strategy": "random"}, ParameterError, "T = 4: must be 1 for the strategy 'random'"),
    (
        "choose",
        {"strategy": "Fair"},
        ParameterError,
        "strategy = 'Fair': must be one of random, weighted, partition, uniform, fair, least",
    ),
    ("draw_below", {"ranges": [0]}, ParameterError, "ranges = 0: must be an integer in [1, 4294967296]"),
    (
        "check_choice",
        {"chosen": (0, 1, 2, 3)},
        InconsistentSets,
        "the choice [0, 1, 2, 3] must be 2 whole batches of 4 users, ascending",
    ),
    ("check_choice", {"user": 0}, InconsistentSets, "the choice [4, 5, 6, 7, 8, 9, 10, 11] is without user 0"),
    (
        "check_survivors",
        {"survivors": (0, 1, 2)},
        InconsistentSets,
        "the survivors [0, 1, 2] must be whole batches of the 8 users of the round, 4 in each",
    ),
    (
        "round_session",
        {"chosen": (0, 1)},
        ParameterError,
        "chosen = [0, 1]: must be a set of the family, its users ascending",
    ),
]
