"""Figure 1 of Multi-RoundSecAgg, over several seeds: whether the sums of many rounds reveal the users' images.

====================  ==========================================================================
paper                 here
====================  ==========================================================================
N, K, T               `users`, `per_round`, `privacy` of settings
====================  ==========================================================================

The attack is that of `experiments.inversion`. An image is *found* if no image of the data is nearer to the recovered
one than the user's own.

Source: Multi-RoundSecAgg, figure 1; claims MRS-FIG1 and UNI-INVERT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import ParameterError
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed
from secagg_spec.learning import digits, files
from secagg_spec.selection.batches import Parameters

if TYPE_CHECKING:
    from secagg_spec.experiments.inversion import Found, Row

WORSE = 20.0
"""By how many decibels a smear is further from an image than the result of an inversion."""
_ABOUT = """Each user holds one image, and its update is the gradient of one step on it. The server has sums of SecAgg
of many rounds, under random selection and with whole batches, and inverts what it can combine of them. The paper shows
one picture, and its appendix on the attack was not read: images, networks and numbers of users are decided here. Taken
for one user's update, the sum over a batch is inverted in many ways, of which the one nearest to the user's image
counts: more than a server could tell. The paper does not try to invert the sum for what it is, a sum of T updates
(UNI-INVERT). By default the bundled digits stand for the paper's images; in the preset paper it is MNIST."""
_WAYS = ("alone", "as_one", "together")
_DECIMALS = 3


def _preset(data: str, seeds: int, **others: Any) -> Data:
    return {
        "data": data,
        "users": 24,
        "per_round": 8,
        "privacy": 4,
        "rounds": 60,
        "shown": 2,
        "net": "conv",
        "width": 8,
        "starts": 1,
        "steps": 100,
        "seeds": seeds,
        **others,
    }


_PRESETS = {
    "tiny": _preset("digits", 3, users=6, per_round=4, privacy=2, rounds=16, shown=1, net="dense", width=4, steps=20),
    "default": _preset("digits", 12),
    "paper": _preset("mnist", 5, shown=4, starts=3, steps=300),
}


def _cells(settings: Data) -> list[Data]:
    shared = {name: value for name, value in settings.items() if name != "seeds"}
    return [{"seed": seed, **shared} for seed in range(settings["seeds"])]


def _run(cell: Data, context: Context) -> Data:
    from secagg_spec.experiments import inversion  # noqa: PLC0415

    settings = inversion.Settings(
        Parameters(cell["users"], cell["per_round"], cell["privacy"]),
        cell["rounds"],
        cell["shown"],
        cell["seed"],
        cell["net"],
        cell["width"],
        starts=cell["starts"],
        steps=cell["steps"],
    )
    said = _Said(context, 2 + cell["shown"])
    found = inversion.run(settings, images(cell["data"], context.data), said)
    return {
        "users": [_as_json(row, found.guess) for row in found.rows],
        "pool": found.pool,
        "updates told": {"random": _out(found.random.after), "batches": _out(found.single.after)},
    }


@dataclass
class _Said:
    """Reports the finished share whenever a line is printed."""

    context: Context
    steps: int
    done: int = 0

    def __call__(self, line: str) -> None:
        self.context.tell(self.done / self.steps)
        self.done += 1


def images(data: str, folder: Path | None) -> digits.Digits:
    """Return the images that users hold: the bundled digits, or MNIST files whose hashes are those of the table.

    Raises
    ------
    ParameterError
        There is no folder, or a file is missing or damaged (EXP-01).
    """
    if data == "digits":
        return digits.bundled()
    if folder is None:
        raise ParameterError("data set", data, "digits, unless --data-dir or SECAGG_SPEC_DATA names a folder with it")
    for name in files.MNIST[:2]:
        files.read(folder, name)
    return digits.mnist(folder)


def _out(after: Sequence[int | None]) -> int:
    """Return how many sums can be computed."""
    return sum(count is not None for count in after)


def _as_json(row: Row, guess: RealArray) -> dict[str, Any]:
    """Return a user's image, its recovered image, and the similarity of the data's mean image to it."""
    from secagg_spec.experiments.inversion import similarity  # noqa: PLC0415

    ways = zip(_WAYS, (row.alone, row.as_one, row.together), strict=True)
    return {
        "user": row.user,
        "original": _rounded(row.original),
        "guess": similarity(guess, row.original),
        **{way: None if found is None else _found(found) for way, found in ways},
    }


def _found(found: Found) -> dict[str, Any]:
    return {"score": found.score, "nearer": found.nearer, "images": _rounded(found.images)}


def _rounded(array: RealArray) -> list[Any]:
    rounded: list[Any] = np.round(array, _DECIMALS).tolist()
    return rounded


# ------------------------------------------------------------------------------------------------ what the paper says


def _statements(settings: Data) -> tuple[Statement, ...]:
    T = settings["privacy"]
    return (
        Statement(
            "MRS-FIG1",
            "random selection: found",
            "with random selection, model inversion shows the users' images",
            "share of users whose image is found",
            ">=",
            0.9,
        ),
        Statement(
            "MRS-FIG1",
            "batches: further",
            "with Multi-RoundSecAgg what it shows is much further from them",
            "mean decibels (PSNR) with random selection minus those of a batch's sum inverted as one update",
            ">=",
            WORSE,
        ),
        Statement(
            "MRS-FIG1",
            "batches: found",
            "with Multi-RoundSecAgg it does not work well, when a batch's sum is taken for one user's update",
            "share of users whose image is found",
            "<=",
            0.1,
        ),
        Statement(
            "UNI-INVERT",
            "batches: found together",
            f"with Multi-RoundSecAgg it shows at least half, when a batch's sum is taken for the sum of {T} updates",
            "share of users whose image is found",
            ">=",
            0.5,
        ),
    )


def _numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    of = by_seed(results)
    seeds = [of[seed]["users"] for seed in sorted(of)]
    return {
        "random selection: found": [_share(users, "alone") for users in seeds],
        "batches: further": [_score(users, "alone") - _score(users, "as_one") for users in seeds],
        "batches: found": [_share(users, "as_one") for users in seeds],
        "batches: found together": [_share(users, "together") for users in seeds],
    }


def _share(users: Sequence[Data], way: str) -> float:
    """Return the share of some users whose image is found; it is not found if the sum cannot be computed."""
    return sum(user[way] is not None and not user[way]["nearer"] for user in users) / len(users)


def _score(users: Sequence[Data], way: str) -> float:
    """Return the mean decibels of some users; a sum that cannot be computed counts with the data's mean image."""
    return float(np.mean([user["guess"] if user[way] is None else user[way]["score"] for user in users]))


# ------------------------------------------------------------------------------------------------ rows and pictures


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        for user in one.found["users"]:
            scores = {f"{way}, {what}": _cell(user[way], what) for way in _WAYS for what in ("score", "nearer")}
            yield {"seed": one.cell["seed"], "user": user["user"], "mean image, score": user["guess"], **scores}


def _cell(found: Data | None, what: str) -> Any:
    return "" if found is None else found[what]


def _draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the users of the first seed."""
    from secagg_spec.experiments import inversion_report  # noqa: PLC0415

    of = by_seed(results)
    first = of[min(of)]
    rows = [_row(user) for user in first["users"]]
    return {"images": inversion_report.figure_of(rows, settings["privacy"], first["pool"])}


def _row(user: Data) -> Row:
    from secagg_spec.experiments.inversion import Row  # noqa: PLC0415

    return Row(user["user"], np.array(user["original"]), *(_of_json(user[way]) for way in _WAYS))


def _of_json(found: Data | None) -> Found | None:
    from secagg_spec.experiments.inversion import Found  # noqa: PLC0415

    return None if found is None else Found(np.array(found["images"]), found["score"], found["nearer"])


EXPERIMENTS = (
    Experiment(
        name="multi-round-fig1",
        title="Images out of the sums of many rounds, under random selection and with whole batches",
        figures=("Multi-RoundSecAgg, figure 1",),
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
