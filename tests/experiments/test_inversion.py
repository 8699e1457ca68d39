"""Images out of sums: what is exact is exact, and what comes out is told and drawn as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is in the extra `train`")
pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")

from secagg_spec.errors import ParameterError  # noqa: E402
from secagg_spec.experiments import inversion, inversion_report  # noqa: E402
from secagg_spec.experiments.inversion import Inverter, Result, Settings, labels_of, quotients, similarity  # noqa: E402
from secagg_spec.learning import digits  # noqa: E402
from secagg_spec.protocols.secagg import round as secagg  # noqa: E402
from secagg_spec.selection.batches import Parameters  # noqa: E402

pytestmark = pytest.mark.slow

SMALL = Settings(Parameters(6, 4, 2), rounds=16, shown=1, width=4, starts=1, steps=40)
DENSE = replace(SMALL, net="dense", shown=2)


@pytest.fixture(scope="module")
def data() -> digits.Digits:
    return digits.bundled()


@pytest.fixture(scope="module")
def conv(data: digits.Digits) -> Result:
    return inversion.run(SMALL, data)


@pytest.fixture(scope="module")
def dense(data: digits.Digits) -> Result:
    return inversion.run(DENSE, data)


def update(settings: Settings, data: digits.Digits, chosen: list[int]) -> tuple[Inverter, inversion.Update]:
    """The sum of the updates of some images."""
    net = inversion.build(settings.net, data.side, settings.width, 1)
    targets = torch.nn.functional.one_hot(torch.from_numpy(data.labels[chosen]), 10).double()
    images = torch.from_numpy(data.images(np.array(chosen)))
    return Inverter(settings, net, data.side), inversion.gradient(net, images, targets)


@pytest.mark.parametrize("name", ["conv", "dense"])
def test_updates_come_out_exactly_under_random_selection_and_not_at_all_in_batches(
    name: str, request: pytest.FixtureRequest
) -> None:
    result: Result = request.getfixturevalue(name)
    assert all(result.random.after)
    assert result.random.error == result.random.bound == 0
    assert result.single.after == (None,) * 6
    assert all(result.batches.after)
    assert result.batches.error == result.batches.bound == 0


@pytest.mark.parametrize("name", ["conv", "dense"])
def test_the_image_of_an_update_is_found(name: str, request: pytest.FixtureRequest) -> None:
    for row in request.getfixturevalue(name).rows:
        assert row.alone is not None
        assert row.alone.nearer == 0
        assert row.alone.score > 40
        assert row.as_one is not None
        assert row.together is not None
        assert row.as_one.score < row.alone.score
        assert (len(row.as_one.images), len(row.together.images)) == (1, 2)


def test_the_images_of_a_batch_are_found_in_its_sum(conv: Result) -> None:
    together = conv.rows[0].together
    assert together is not None
    assert together.score > 30
    assert together.nearer == 0


def test_each_sum_comes_of_a_round_of_secagg(data: digits.Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = secagg.run_round

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(named["round"])
        return real(*given, **named)

    monkeypatch.setattr(secagg, "run_round", counted)
    inversion.run(replace(DENSE, rounds=3), data)
    assert calls == [0, 1, 2, 0, 1, 2]


def test_what_does_not_come_out_is_not_inverted(data: digits.Digits) -> None:
    result = inversion.run(replace(DENSE, rounds=1), data)
    assert result.random.after == (None,) * 6
    assert (result.rows[0].alone, result.rows[0].as_one, result.rows[0].together) == (None, None, None)
    report = "\n".join(inversion_report.lines(result))
    assert "random selection:   0 of 6 updates of users come out\n" in report
    assert "the images of 0 of 2 users are found" in report


def test_updates_that_drift_are_off_by_no_more_than_the_bound(data: digits.Digits) -> None:
    result = inversion.run(replace(DENSE, rate=0.05), data)
    assert 0 < result.random.error <= result.random.bound
    assert 0 < result.batches.error <= result.batches.bound
    report = "\n".join(inversion_report.lines(result))
    assert "trains the net between rounds, with the rate 0.05" in report
    assert "exactly" not in report


def test_the_server_trains_the_net(data: digits.Digits) -> None:
    images = data.images(np.arange(6))
    labels = torch.from_numpy(data.labels[:6])
    net = inversion.build("dense", 8, 4, 0)
    settings = replace(DENSE, rate=1.0, rounds=40)
    played = inversion._play(settings, settings.parameters, "uniform", net, images, labels)
    losses = []
    for one in (net, played.net):
        losses.append(float(torch.nn.functional.cross_entropy(one(torch.from_numpy(images)[:, None]), labels).detach()))
    assert losses[1] < losses[0] / 2
    assert played.middle == 20


def test_the_sum_over_images_is_the_sum_of_their_updates(data: digits.Digits) -> None:
    _, both = update(SMALL, data, [3, 5])
    _, one = update(SMALL, data, [3])
    _, other = update(SMALL, data, [5])
    assert all(torch.allclose(a, b + c) for a, b, c in zip(both, one, other, strict=True))


def test_labels_are_read_off_the_last_layer(data: digits.Digits) -> None:
    for chosen in ([4], [1, 2], [1, 11, 5]):
        _, found = update(SMALL, data, chosen)
        labels = labels_of(found, len(chosen)).argmax(dim=1).tolist()
        assert sorted(labels) == sorted(data.labels[chosen].tolist())


def test_a_neuron_of_a_dense_layer_holds_the_image(data: digits.Digits) -> None:
    _, found = update(DENSE, data, [4])
    assert np.allclose(quotients(found), data.images(np.array([4])))


def test_numbers_take_the_shapes_of_the_net() -> None:
    net = inversion.build("conv", 8, 2, 0)
    count = sum(weights.numel() for weights in net.parameters())
    parts = inversion._parts(net, np.arange(float(count)))
    assert torch.cat([part.flatten() for part in parts]).tolist() == list(range(count))
    assert [part.shape for part in parts] == [weights.shape for weights in net.parameters()]


def test_two_runs_are_the_same(data: digits.Digits, dense: Result) -> None:
    assert list(inversion_report.lines(inversion.run(DENSE, data))) == list(inversion_report.lines(dense))


def test_what_is_told_is_what_was_found(conv: Result) -> None:
    report = "\n".join(inversion_report.lines(conv))
    assert "6 users with one image each (scikit-learn's digits), 4 in each of 16 rounds of SecAgg" in report
    assert "random selection:   6 of 6 updates of users come out after" in report
    assert "max |error| = 0, exactly" in report
    assert "batch partitioning: 0 of 6 updates of users come out" in report
    assert "those of 1 of 1" in report
    row = conv.rows[0]
    for found in (row.alone, row.as_one, row.together):
        assert found is not None
        assert f"{found.score:.1f} ({found.nearer})" in report


def test_the_picture_is_written_and_is_the_same_each_time(conv: Result, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    paths = inversion_report.draw(conv, tmp_path / "new")
    assert [path.name for path in paths] == ["reconstruction.svg", "reconstruction.png"]
    before = [path.read_bytes() for path in paths]
    assert before[0].startswith(b"<?xml")
    assert before[1].startswith(b"\x89PNG")
    assert [path.read_bytes() for path in inversion_report.draw(conv, tmp_path / "new")] == before


def test_tiles_stand_in_a_square() -> None:
    images = np.stack([np.full((8, 8), value) for value in (0.0, 0.25, 0.5)])
    canvas = inversion_report.tiled(images)
    assert canvas.shape == (236, 236)
    assert [canvas[60, 60], canvas[60, 170], canvas[170, 60], canvas[170, 170]] == [1, 0.75, 0.5, 0.8]
    assert inversion_report.tiled(images[:1]).shape == (118, 118)


def test_similarity_is_that_of_the_books() -> None:
    black = np.zeros((2, 2))
    assert similarity(black, black) == 99
    assert similarity(black, black + 0.1) == pytest.approx(20)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": Parameters(6, 2, 2)}, "K = 2: must be an integer >= 3"),
        ({"parameters": Parameters(6, 4, 1)}, "T = 1: must be an integer >= 2"),
        ({"rounds": 0}, "rounds = 0"),
        ({"shown": 7}, r"shown = 7: must be an integer in \[1, 6\]"),
        ({"width": 0}, "width = 0"),
        ({"net": "deep"}, "net = 'deep': must be one of conv, dense"),
        ({"rate": float("nan")}, r"rate = nan: must be a number in \[0, 100\]"),
        ({"rate": True}, r"rate = True: must be a number in \[0, 100\]"),
    ],
)
def test_settings_are_checked(change: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_too_many_users_or_numbers_are_refused(data: digits.Digits) -> None:
    with pytest.raises(ParameterError, match="N = 1800: must be at most 1797"):
        inversion.run(replace(SMALL, parameters=Parameters(1800, 4, 2)), data)
    with pytest.raises(ParameterError, match="numbers of all updates = 87120000"):
        inversion.run(replace(SMALL, rounds=30000, width=2, rate=1.0, parameters=Parameters(6, 4, 2)), data)
