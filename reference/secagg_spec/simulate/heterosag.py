"""``secagg-spec simulate heterosag``: one round of HeteroSAg, who masks what with whom, and attacks on it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import Malformed, ParameterError, TooFewSurvivors
from secagg_spec.privacy.wording import numbers
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import CellSum
from secagg_spec.protocols.heterosag.plan import MATRICES, PRESETS, Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network, check_dropouts, run_synchronous
from secagg_spec.simulate import heterosag_report as report
from secagg_spec.simulate.heterosag_inputs import ATTACKS, Inputs, byzantine_users, draw_inputs, plain_sums
from secagg_spec.simulate.inputs import BOX_ELEMENTS, add_drop, read_dropouts, refuse_large, seed_bytes
from secagg_spec.simulate.matrices import MOST, Look
from secagg_spec.simulate.narration import counted, ended_well, failed_round, followed, narrate, traffic

DEFAULTS = {"users": "those of the preset", "length": "that of the preset"}


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add = parser.add_argument
    masked = "who masks with whom; separate is the naive scheme, each group by itself (perfect)"
    add("--preset", choices=[*PRESETS], default="default", help="default values of the other options (default)")
    add(
        "--groups",
        type=int,
        metavar="G",
        help="number of groups of almost equal size (as in the preset, or as many as --levels or --subgroups names)",
    )
    levels = (
        "levels of each group, ascending, or one number for all (as in the preset; for more or fewer groups 2,6,8,…)"
    )
    add("--levels", metavar="K,K,…", help=levels)
    parts = "subgroups of each group, or one number for all (as in the preset; 1 for more or fewer groups)"
    add("--subgroups", metavar="L,L,…", help=parts)
    add("--matrix", choices=MATRICES, help=masked)
    add("--colluders", type=int, metavar="T", help="users that may collude with the server (1)")
    add(
        "--dropouts",
        type=int,
        metavar="D",
        help="users that may drop out (as in the preset; for another N, N // 5; or fewer if T leaves fewer)",
    )
    add(
        "--threshold",
        type=int,
        metavar="t",
        help="number of shares needed (as in the preset; for another N, T or D, N // 2 + 1, or N - D if that is less, "
        "and at least T + 2)",
    )
    add_drop(parser, "masked_input")
    add("--byzantine", type=int, default=0, metavar="B", help="users that attack, spread over all groups (0)")
    add("--attack", choices=[*ATTACKS], help="what attackers do to their inputs (gaussian)")
    add("--trim", type=int, metavar="b", help="also show the trimmed mean, without the b largest and b smallest")
    add("--show", choices=["messages"], help="print every step: who sends what to whom")
    parser.set_defaults(users=None, length=None)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: the round gave the right sums; 1: it ended without them."""
    p = read_parameters(options)
    dropouts = read_dropouts(options.drop, heterosag.PHASES)
    check_dropouts(heterosag.TABLE, range(p.N), dropouts, "--drop")
    byzantine = byzantine_users(p, validate.integer("byzantine", options.byzantine, 0, p.N - 1))
    if options.attack is not None and not byzantine:
        raise ParameterError("--attack", options.attack, "left out where nobody attacks: --byzantine is 0")
    options.attack = options.attack or "gaussian"
    _check_trim(options.trim, p)
    seed = seed_bytes(options.seed)
    inputs = draw_inputs(p, byzantine, options.attack, seed)
    for block in (report.heading(p, dropouts), report.matrix(p, Look.of_terminal()), report.bits(p)):
        print("\n".join(block), end="\n\n")
    return _round(p, inputs, dropouts, options)


def _round(p: Parameters, inputs: Inputs, dropouts: Mapping[str, Sequence[int]], options: argparse.Namespace) -> int:
    """Run the round with all its messages, and print the result."""
    network = heterosag.open_round(p, inputs.updates, session=bytes(16), round=0)
    sources = {user: SeededSource(seed_bytes(options.seed), f"user {user}") for user in range(p.N)}
    ended = ""
    try:
        run_synchronous(network, dropouts, secagg.draw_randomness(p, sources), followed)
    except (TooFewSurvivors, Malformed) as error:
        ended = str(error)
    print("\n".join(_messages(network, options.show)))
    lost = [user for users in dropouts.values() for user in users]
    if ended:
        print(failed_round(ended, lost, "sums"))
        return 1
    server = network.states[SERVER]
    _compare(p, inputs, server.sums, server.base.survivors)
    blocks = (
        report.sums(server.sums),
        report.decodable_segments(p, server.base.survivors),
        report.attack(inputs, options.attack, server.base.survivors),
        report.averages(inputs, server.sums, server.base.survivors, options.trim),
    )
    for block in blocks:
        print("\n" + "\n".join(block))
    has = f"the sums of {counted(len(server.sums), 'cell')}, and they are right: they equal the plain sums"
    print("\n" + "\n".join(ended_well(lost, has, "heterosag")))
    return 0


def _messages(network: Network, show: str | None) -> list[str]:
    if show == "messages":
        return ["the round, step by step:", *narrate(network.transcript, len(network.states) - 1)]
    return ["the round sends (step by step with --show messages):", *traffic(network.transcript)]


def _compare(p: Parameters, inputs: Inputs, sums: Sequence[CellSum], survivors: Sequence[int]) -> None:
    plain = plain_sums(p, inputs.updates, survivors)
    pairs = zip(sums, plain, strict=True)
    right = all(a.survivors == b.survivors and np.array_equal(a.total, b.total) for a, b in pairs)
    if not right:
        raise AssertionError("the round did not give the plain sums")


# ------------------------------------------------------------------------------------------------- parameters


def read_parameters(options: argparse.Namespace, run: bool = True) -> Parameters:
    """Return the preset's parameters as changed by the options; if `run`, refuse those too large to run."""
    base = PRESETS[options.preset]
    N = base.N if options.users is None else validate.integer("users", options.users, 3, 2**16)
    levels, subgroups = (_list(name, getattr(options, name)) for name in ("levels", "subgroups"))
    sizes = _sizes(base, N, _groups(options.groups, base, levels, subgroups))
    groups = len(sizes)
    d = base.d if options.length is None else validate.integer("length", options.length, 1)
    if run:
        refuse_large("users * users * shares + users * length", N * N * BOX_ELEMENTS + N * d)
    T = base.T if options.colluders is None else options.colluders
    D = min(base.D if base.N == N else N // 5, max(0, N - T - 2)) if options.dropouts is None else options.dropouts
    t = _threshold(base, N, T, D) if options.threshold is None else options.threshold
    parts = _for_each("subgroups", subgroups, groups, base.subgroups if len(base.sizes) == groups else (1,) * groups)
    validate.integer("subgroups in all", sum(parts), 2, MOST)
    default = base.levels if len(base.levels) == groups else tuple(2 if g == 0 else 2 * g + 4 for g in range(groups))
    K = _for_each("levels", levels, groups, default)
    matrix = options.matrix or base.matrix
    try:
        return Parameters(N, D, T, t, d, sizes, parts, K, base.range, matrix)
    except ParameterError as error:
        if not error.parameter.startswith("sizes["):
            raise
        group = int(error.parameter[6:-1])
        need = f"at least T + 2 = {T + 2} users for each of its {parts[group]} subgroups"
        allowed = f"enough for {groups} groups: group {group} has {sizes[group]} and needs {need}"
        raise ParameterError("users", N, f"{allowed}; or --groups, --subgroups or --colluders fewer") from None


def _list(name: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = numbers(f"--{name}", text)
    if not found:
        raise ParameterError(f"--{name}", text, "whole numbers with commas between, one for each group or one for all")
    return found


def _groups(given: int | None, base: Parameters, *lists: tuple[int, ...] | None) -> int:
    """Return the number of groups: as given, or the length of a list."""
    if given is not None:
        return validate.integer("groups", given, 1, MOST)
    named = [len(one) for one in lists if one is not None and len(one) > 1]
    return named[0] if named else len(base.sizes)


def _sizes(base: Parameters, N: int, groups: int) -> tuple[int, ...]:
    """Return the number of users of each group: that of the preset, or all users spread evenly."""
    if (base.N, len(base.sizes)) == (N, groups):
        return base.sizes
    return tuple(len(part) for part in np.array_split(np.empty(N, bool), groups))


def _for_each(name: str, given: tuple[int, ...] | None, groups: int, default: tuple[int, ...]) -> tuple[int, ...]:
    """Return one number for each group."""
    if given is None:
        return default
    if len(given) not in (1, groups):
        raise ParameterError(f"--{name}", list(given), f"{groups} numbers, one for each group, or one for all")
    return given * groups if len(given) == 1 else given


def _threshold(base: Parameters, N: int, T: int, D: int) -> int:
    return base.t if (base.N, base.T, base.D) == (N, T, D) else max(T + 2, min(N // 2 + 1, N - D))


def _check_trim(trim: int | None, p: Parameters) -> None:
    if trim is not None:
        fewest = min(len(row) for row in p.plan)
        validate.integer("trim", trim, 0, (fewest - 1) // 2)
