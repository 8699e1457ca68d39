"""Figure 3 of BASA: the computing time of a user against the number of users, and against the size of the buffer.

========================  ==========================================================
paper                     here
========================  ==========================================================
BASA                      `BASA`: boxes by attributes, as in the paper; `BY_POSITION`: one key pair for each position
LSA in AFL                `LSA`: BASecAgg, which is LightSecAgg in asynchronous learning
number of users           N of a cell with the axis ``users``
buffer size               K of a cell with the axis ``buffer``
dimension                 `length`, d
========================  ==========================================================

Source: BASA, section 4.4; spec/experiments.md, section 5 (EXP-20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.experiments.costs import attribute_ring, buffered_parameters, position_parameters
from secagg_spec.experiments.curves import band
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed
from secagg_spec.experiments.one_user import UserOfBASecAgg, user_of_basa

BY_USERS, BY_BUFFER = "BASA-FIG3A", "BASA-FIG3B"
LSA, BASA, BY_POSITION = "LSA (AFL)", "BASA", "BASA by position"
_ABOUT = """The seconds of the processor that one user spends when it executes a protocol once, by the implementations
of this project; a seed is one repetition of the measurement, and nothing is trained. LSA in asynchronous learning is
BASecAgg with K - 2 colluding users, where the shares of 70 % of the users suffice: a user shares its mask, holds the
shares of the others in the buffer, uploads and answers. In BASA it is the user at the middle position; boxes are sealed
by attributes, as in the paper, or to one key pair for each position. The paper measured wall-clock time on its
testbed."""
_LOOKS = {LSA: ("#d55e00", "-."), BASA: ("#0072b2", "-"), BY_POSITION: ("#56b4e9", "--")}
_MARKS = "o^sDvP"


def _preset(
    lengths: Sequence[int], users: Sequence[int], buffers: Sequence[int], of_buffers: Sequence[int], repeats: int
) -> Data:
    return {
        "data": "none",
        "seeds": 5,
        "lengths": list(lengths),
        "users": list(users),
        "buffer": 10,
        "buffers": list(buffers),
        "buffer_lengths": list(of_buffers),
        "repeats": repeats,
    }


_PRESETS = {
    "tiny": {**_preset([500], [20, 200], [3, 9, 27], [500], 2), "seeds": 3},
    "default": _preset([20_000, 100_000, 500_000], [100, 300, 1000], [10, 20, 50, 100, 200], [100_000], 3),
    "paper": _preset(
        [100_000, 500_000, 1_000_000],
        range(100, 1001, 100),
        [10, 50, 100, 200, 500, 1000],
        [100_000, 500_000, 1_000_000],
        5,
    ),
}


def _cells(settings: Data) -> list[Data]:
    repeats = settings["repeats"]
    by_users = [
        {"axis": "users", "protocol": name, "length": d, "sizes": settings["users"], "buffer": settings["buffer"]}
        for name, d in product(_LOOKS, settings["lengths"])
    ]
    by_buffer = [
        {"axis": "buffer", "protocol": name, "length": d, "sizes": settings["buffers"]}
        for name, d in product((BASA, BY_POSITION), settings["buffer_lengths"])
    ]
    cells = [*by_users, *by_buffer]
    return [{"seed": seed, **cell, "repeats": repeats} for seed in range(settings["seeds"]) for cell in cells]


def _run(cell: Data, context: Context) -> Data:
    """Return the seconds of a user for each size: the minimum over several runs, in which the sizes alternate."""
    timed = [_user(cell, size) for size in cell["sizes"]]
    runs = []
    for repeat in range(cell["repeats"]):
        runs.append([seconds() for seconds in timed])
        context.tell((repeat + 1) / cell["repeats"])
    return {"sizes": list(cell["sizes"]), "seconds": np.min(runs, axis=0).tolist()}


def _user(cell: Data, size: int) -> Callable[[], float]:
    """Return a function that times a user of a cell once."""
    N, K = (size, cell["buffer"]) if cell["axis"] == "users" else (size, size)
    if cell["protocol"] == LSA:
        return partial(_next_round, UserOfBASecAgg(buffered_parameters(N, K, cell["length"])))
    ring: KeyRing = attribute_ring() if cell["protocol"] == BASA else PositionKeys()
    return user_of_basa(position_parameters(N, K, cell["length"]), ring, K // 2).seconds


def _next_round(user: UserOfBASecAgg) -> float:
    return user.next().seconds()


# ------------------------------------------------------------------------------------------------ what the paper says


def _statements(settings: Data) -> tuple[Statement, ...]:
    by_users = (one for d in settings["lengths"] for one in _by_users(settings, d))
    return (*by_users, *(one for d in settings["buffer_lengths"] for one in _linear(d)))


def _by_users(settings: Data, d: int) -> Iterator[Statement]:
    least, most = settings["users"][0], settings["users"][-1]
    grown = f"a user's seconds for N = {most} over those for N = {least}"
    yield Statement(
        BY_USERS,
        _name("LSA grows", d),
        f"for {_of(d)} a user of LSA needs considerably more time the more users there are",
        f"{grown}, in {LSA}",
        ">=",
        3.0,
    )
    yield Statement(
        BY_USERS,
        _name("BASA does not grow", d),
        f"for {_of(d)} a user of BASA needs hardly more time the more users there are",
        f"{grown}, in BASA",
        "<=",
        1.2,
    )
    yield Statement(
        BY_USERS,
        _name("BASA below LSA", d),
        f"for {_of(d)} a user of BASA with K = {settings['buffer']} needs less time than one of LSA with N = {most}",
        f"a user's seconds in BASA over those in {LSA}, N = {most}",
        "<=",
        1.0,
    )


def _linear(d: int) -> Iterator[Statement]:
    text = f"for {_of(d)} the time of a user of BASA grows linearly with the buffer"
    measure = "slope of log(T(K) - T(K_0)) against log(K - K_0), where K_0 is the smallest buffer"
    yield Statement(BY_BUFFER, _name("at least linear", d), text, measure, ">=", 0.8)
    yield Statement(BY_BUFFER, _name("at most linear", d), text, measure, "<=", 1.2)


def _name(what: str, d: int) -> str:
    return f"{what}, d = {d}"


def _of(d: int) -> str:
    return f"d = {d / 1e6:g} million"


def _numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = {}
    for d in settings["lengths"]:
        lsa, basa = (_seconds(results, axis="users", protocol=name, length=d) for name in (LSA, BASA))
        found[_name("LSA grows", d)] = [times[-1] / times[0] for times in lsa]
        found[_name("BASA does not grow", d)] = [times[-1] / times[0] for times in basa]
        found[_name("BASA below LSA", d)] = [
            of_basa[-1] / of_lsa[-1] for of_basa, of_lsa in zip(basa, lsa, strict=True)
        ]
    for d in settings["buffer_lengths"]:
        runs = _seconds(results, axis="buffer", protocol=BASA, length=d)
        slopes = [slope(settings["buffers"], times) for times in runs]
        found |= {_name("at least linear", d): slopes, _name("at most linear", d): slopes}
    return found


def _seconds(results: Sequence[Result], **wanted: Any) -> list[Sequence[float]]:
    """Return the seconds for each size, one sequence for each seed."""
    found = by_seed(results, **wanted)
    return [found[seed]["seconds"] for seed in sorted(found)]


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log(T(K) - T(K_0)) against log(K - K_0) by least squares: 1 if T is linear.

    If a time is not above the first one, this logarithm does not exist and the slope is 0: T does not grow.
    """
    above = np.asarray(seconds[1:]) - seconds[0]
    if (above <= 0).any():
        return 0.0
    return float(np.polyfit(np.log(np.asarray(sizes[1:]) - sizes[0]), np.log(above), 1)[0])


# ------------------------------------------------------------------------------------------------ rows and pictures


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        for size, seconds in zip(one.found["sizes"], one.found["seconds"], strict=True):
            K = one.cell.get("buffer", size)
            named = {name: one.cell[name] for name in ("seed", "axis", "protocol", "length")}
            yield {**named, "users": size, "buffer": K, "seconds": seconds}


def _draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    figure, (users, buffers) = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained")
    for name, (at, d) in product(_LOOKS, enumerate(settings["lengths"])):
        _line(users, settings["users"], results, at, axis="users", protocol=name, length=d)
    for name, (at, d) in product((BASA, BY_POSITION), enumerate(settings["buffer_lengths"])):
        _line(buffers, settings["buffers"], results, at, axis="buffer", protocol=name, length=d)
    users.set(title=f"(a) K = {settings['buffer']}", xlabel="number of users, N", xlim=0)
    buffers.set(title="(b) N = K", xlabel="size of the buffer, K (updates)", xscale="log")
    buffers.set_xticks(settings["buffers"], map(str, settings["buffers"]))
    buffers.minorticks_off()
    for axes in (users, buffers):
        axes.set(ylabel="time of a user (seconds of the processor)", yscale="log")
        axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return {"time-of-a-user": figure}


def _line(axes: Any, sizes: Sequence[int], results: Sequence[Result], at: int, **wanted: Any) -> None:
    """Draw the mean over seeds, with a band from minimum to maximum; each length has its own marker."""
    colour, line = _LOOKS[wanted["protocol"]]
    mark = _MARKS[divmod(at, len(_MARKS))[1]]
    label = f"{wanted['protocol']}, {_of(wanted['length'])}"
    band(axes, sizes, _seconds(results, **wanted), colour, line + mark, label)


EXPERIMENTS = (
    Experiment(
        name="basa-fig3",
        title="The time of a user of BASA and of LightSecAgg, against the users and the size of the buffer",
        figures=("BASA, figure 3",),
        about=_ABOUT,
        presets=_PRESETS,
        cells=_cells,
        run=_run,
        statements=_statements,
        numbers=_numbers,
        rows=_rows,
        draw=_draw,
    ),
)
