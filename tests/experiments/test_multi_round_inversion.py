"""Figure 1 of Multi-RoundSecAgg over several seeds: what comes out, and what is said of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is in the extra `train`")
pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")

from secagg_spec.errors import ParameterError
from secagg_spec.experiments import inversion, multi_round_inversion
from secagg_spec.experiments.experiment import Context, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED
from secagg_spec.learning import digits, files
from secagg_spec.selection.batches import Parameters
from tests.learning.test_datasets import contents, put

pytestmark = pytest.mark.slow

(EXPERIMENT,) = multi_round_inversion.EXPERIMENTS
TINY = EXPERIMENT.presets["tiny"]


@pytest.fixture(scope="module")
def results() -> list[Result]:
    cells = EXPERIMENT.cells(TINY)
    return [Result(cell, json.loads(json.dumps(EXPERIMENT.run(cell, Context())))) for cell in cells]


def test_a_cell_is_a_run_of_the_command(results: list[Result]) -> None:
    settings = inversion.Settings(Parameters(6, 4, 2), 16, 1, 1, "dense", 4, starts=1, steps=20)
    right = inversion.run(settings, digits.bundled())
    (user,) = results[1].found["users"]
    (row,) = right.rows
    assert user["user"] == row.user
    assert np.allclose(user["original"], row.original, atol=1e-3)
    for way, found in (("alone", row.alone), ("as_one", row.as_one), ("together", row.together)):
        assert found is not None
        assert (user[way]["score"], user[way]["nearer"]) == (found.score, found.nearer)
        assert np.allclose(user[way]["images"], found.images, atol=1e-3)
    assert results[1].found["updates told"] == {"random": 6, "batches": 0}
    assert results[1].found["pool"] == 1797


def test_shares_and_scores_are_those_of_the_users() -> None:
    def user(alone: tuple[float, int] | None, as_one: tuple[float, int], together: tuple[float, int]) -> object:
        ways = {"alone": alone, "as_one": as_one, "together": together}
        return {"guess": 11.0} | {
            way: None if found is None else dict(zip(("score", "nearer"), found, strict=True))
            for way, found in ways.items()
        }

    users = [user((80.0, 0), (12.0, 3), (50.0, 0)), user(None, (8.0, 0), (20.0, 1))]
    results = [Result({"seed": seed}, {"users": users}) for seed in range(3)]
    assert EXPERIMENT.numbers(TINY, results) == {
        "random selection: found": [0.5] * 3,
        "batches: further": [(80 + 11) / 2 - 10] * 3,
        "batches: found": [0.5] * 3,
        "batches: found together": [0.5] * 3,
    }
    assert {one.verdict for one in EXPERIMENT.judge(TINY, results)} == {CONFIRMED, REFUTED}


def test_updates_are_inverted_under_random_selection(results: list[Result]) -> None:
    found = {one.statement.name: one.verdict for one in EXPERIMENT.judge(TINY, results)}
    assert found["random selection: found"] == found["batches: further"] == CONFIRMED


def test_progress_is_told_and_ends_at_no_more_than_all() -> None:
    shares: list[float] = []
    said = multi_round_inversion._Said(Context(tell=shares.append), 3)
    for line in ("random selection", "batch partitioning", "images"):
        said(line)
    assert shares == [0, 1 / 3, 2 / 3]


def test_images_of_mnist_are_those_of_files_with_the_right_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = put(tmp_path, contents(), monkeypatch)
    assert len(multi_round_inversion.images("mnist", where).labels) == 7
    data = (where / files.MNIST[1]).read_bytes() + b"\0"
    (where / files.MNIST[1]).write_bytes(data)
    with pytest.raises(ParameterError, match=hashlib.sha256(data).hexdigest()):
        multi_round_inversion.images("mnist", where)
    with pytest.raises(ParameterError, match="--data-dir"):
        multi_round_inversion.images("mnist", None)


def test_picture_and_rows(results: list[Result]) -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    (figure,) = EXPERIMENT.draw(plt, TINY, results).values()
    assert len(figure.axes) == 4
    nothing = [Result(one.cell, {**one.found, "users": [{**one.found["users"][0], "alone": None}]}) for one in results]
    (figure,) = EXPERIMENT.draw(plt, TINY, nothing).values()
    assert figure.axes[1].get_xlabel() == "does not come out"
    rows = list(EXPERIMENT.rows(TINY, nothing))
    assert len(rows) == 3
    assert rows[0]["alone, score"] == ""
    assert rows[0]["as_one, nearer"] == results[0].found["users"][0]["as_one"]["nearer"]
