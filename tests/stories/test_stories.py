"""Stories find each hole when its repair is taken out, and nothing when all repairs are there."""

from __future__ import annotations

from random import Random

import pytest

from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.privacy.lies import answered_by_one, keeps_batches, least_sum, requests_needed
from tests.quick import WHOLE
from tests.stories import __main__ as command
from tests.stories.catalogue import (
    BATCH_BOUNDS,
    FORGETFUL,
    HOLES,
    LIES_BOUND,
    LIGHTSECAGG,
    SESSION_BOUNDS,
    WORLDS,
    Hole,
    withholding,
)
from tests.stories.engine import World, again, played, shortest, tell
from tests.stories.letters import Letter, Rules
from tests.stories.view import View, beyond, consequences

SEED = 1
WITHIN = 500
FEW = 40 if WHOLE else 10


def _name(one: object) -> str:
    if isinstance(one, Rules):
        return str(one)
    world = one.world if isinstance(one, Hole) else one
    assert isinstance(world, World)
    hole = f", {one.name}" if isinstance(one, Hole) else ""
    return f"{world.name} {world.profile}{hole}"


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=_name)
def test_nothing_is_learned_beyond_the_text_when_all_rules_are_kept(world: World) -> None:
    tally = played(world, Rules(), FEW, SEED)
    assert tally.first is None, f"{world.name}\n{tally.first}"


@pytest.mark.slow
@pytest.mark.parametrize(("world", "rules"), FORGETFUL, ids=_name)
def test_ballots_and_sealing_hold_where_users_forget(world: World, rules: Rules) -> None:
    tally = played(world, rules, FEW, SEED)
    assert tally.first is None, f"{world.name}\n{tally.first}"


@pytest.mark.slow
@pytest.mark.parametrize("hole", [one for one in HOLES if WHOLE or not one.late], ids=_name)
def test_a_hole_is_found_when_its_repair_is_taken_out(hole: Hole) -> None:
    with hole.planted():
        tally = played(hole.world, hole.rules, WITHIN, SEED, until_leak=True)
    assert tally.first is not None, f"not found in {WITHIN} stories"
    print(f"{_name(hole)}: found at story {tally.at}")


def test_bounds_are_those_of_the_text() -> None:
    assert [keeps_batches(12, 9, 1), keeps_batches(15, 9, 1), 2 * 9 > 15 + 1, 2 * 6 > 9 + 1] == [
        True,
        False,
        True,
        True,
    ]
    assert [least_sum(5, 3, 0), least_sum(5, 3, 0, withheld=True), least_sum(6, 4, 0, withheld=True)] == [2, 1, 3]
    assert [answered_by_one(10, 1, 6, 2), answered_by_one(11, 1, 7, 2), answered_by_one(12, 1, 3, 2)] == [
        True,
        True,
        False,
    ]
    assert [answered_by_one(10, 1, 8, requests_needed(10, 1)), answered_by_one(11, 1, 8, requests_needed(7, 1))] == [
        True
    ] * 2


def test_users_that_do_not_look_for_batches_tell_other_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stories.lies.check_survivors", lambda parameters, survivors: None)
    assert played(BATCH_BOUNDS[0], Rules(), WITHIN, SEED, until_leak=True).first is not None


def test_users_that_do_not_look_back_tell_single_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stories.requests.check_past", lambda parameters, survivors, past: None)
    for world in SESSION_BOUNDS:
        assert played(world, Rules(), WITHIN, SEED, until_leak=True).first is not None


@pytest.mark.slow
def test_a_story_is_played_again_and_shortened() -> None:
    rules = Rules(numbers=False)
    with mutants.planted("nonce-is-zero-again"):
        story = next(s for s in (tell(LIGHTSECAGG, rules, str(at)) for at in range(20)) if s.leak)
        short = shortest(LIGHTSECAGG, rules, story.letters)
        assert again(LIGHTSECAGG, rules, short.letters) == short
        assert len(short.letters) <= len(story.letters)
        assert not again(LIGHTSECAGG, rules, short.letters[:-1]).leak
    assert not again(LIGHTSECAGG, rules, short.letters).leak


def test_a_story_depends_on_its_seed_alone() -> None:
    assert tell(LIES_BOUND, Rules(), "a") == tell(LIES_BOUND, Rules(), "a") != tell(LIES_BOUND, Rules(), "b")


def test_a_server_that_relays_all_shares_does_not_gain_from_whom_it_asks_first() -> None:
    """A user that goes on before others have shared lacks their shares, and single inputs come out."""
    all_users, first = (0, 1, 2, 3, 4), [Letter("step", (1, 2, 3)), Letter("step", (3,))]
    rest = [Letter("step", (0, 4)), Letter("step", (0, 1, 2, 4))]
    asked = {1: (0, 1, 3), 2: (0, 2, 3), 4: (0, 3, 4), 0: (0, 3, 4)}
    requests = [Letter("step", (user,), received=members) for user, members in asked.items()]
    letters = [Letter("begin", all_users, fresh=True), Letter("step", all_users), *first, *rest, *requests]
    assert again(withholding(5, 3, 2), Rules(), letters).leak == ("x_3",)
    assert again(LIES_BOUND, Rules(), letters).leak == ()


def test_an_honest_round_tells_its_sum_and_no_more() -> None:
    everyone = (0, 1, 2, 3, 4)
    letters = [Letter("begin", everyone), *[Letter("step", everyone)] * 3]
    assert again(LIGHTSECAGG, Rules(), letters).leak == ()
    play = LIGHTSECAGG.open(Rules(), Random(0))
    assert play.leak() == ()
    unannounced = Rules(failed=False)
    assert again(LIGHTSECAGG, unannounced, letters).leak == ()
    one_answer = [*letters[:-1], Letter("step", (0,))]
    assert again(LIGHTSECAGG, Rules(), one_answer).leak == ()
    assert again(LIGHTSECAGG, unannounced, one_answer).leak


def test_a_row_that_is_not_what_was_sent_is_an_error() -> None:
    view = View(7)
    x = view.symbol("x", 3)
    view.saw({x: 2}, 6)
    with pytest.raises(AssertionError):
        view.saw({x: 2}, 5)
    with pytest.raises(AssertionError):
        view.symbol("x", 4)


def test_consequences_are_what_is_left_without_the_masks() -> None:
    x, y, mask, noise = range(4)
    rows = [{x: 1, mask: 1}, {y: 1, mask: 1}, {x: 1, noise: 1}]
    assert consequences(7, rows, [x, y]) == [{x: 1, y: 6}]
    assert consequences(7, rows, [x, y], {noise}) == [{x: 1}, {y: 1}]
    assert consequences(7, rows[2:], [x, y]) == []
    assert beyond(7, [{x: 1, y: 6}], [{x: 2, y: 5}]) == []
    assert beyond(7, [{x: 1}, {y: 1}], [{x: 1, y: 1}]) == [{x: 1}, {y: 1}]


@pytest.mark.parametrize("given", [("--stories", "0"), ("--stories", "-5"), ("--jobs", "0")])
def test_no_stories_are_refused(given: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(given)
    assert ended.value.code == 2
    assert f"is not a whole number of {given[0][2:]}, at least 1" in capsys.readouterr().err
