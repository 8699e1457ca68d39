"""A round that failed after its survivors were announced, and one more: what both tell, and what a log says of it."""

from __future__ import annotations

import pytest

from secagg_spec.privacy.lightsecagg import Column, Situation
from secagg_spec.privacy.participation import account
from secagg_spec.privacy.views import Space, View
from secagg_spec.protocols.lightsecagg.round import PRESETS
from secagg_spec.selection.participation import Roster, of_sets

DEFAULT = PRESETS["default"]
EVERYONE = tuple(range(DEFAULT.N))
OTHERS = EVERYONE[:-1]
LAST = EVERYONE[-1]


def equations(answers: int, colluders: int, second: tuple[int, ...] | None) -> int:
    """How many elements of the last user's update follow from a round with so many answers and one over `second`."""
    found = 0
    for first in range(DEFAULT.share_length):
        elements = tuple(range(first, DEFAULT.d, DEFAULT.share_length))
        space = Space(DEFAULT.field)
        before, after = (Column(DEFAULT, DEFAULT.code, elements, space=space, drawing=at) for at in range(2))
        view = View(space, EVERYONE[:colluders])
        asked = dict.fromkeys(EVERYONE[colluders:answers], EVERYONE)
        before.show(view, Situation(EVERYONE, EVERYONE, asked))
        if second is not None:
            after.show(view, Situation(second, EVERYONE, dict.fromkeys(second, second)))
        found += view.about(LAST).dimension
    return found


@pytest.mark.slow
@pytest.mark.requirement("MRA-27")
@pytest.mark.parametrize("colluders", [0, 3])
def test_a_failed_round_and_one_with_a_user_fewer_tell_twelve_equations_on_sixteen_elements(colluders: int) -> None:
    """Nobody deviates: U - 1 = 6 users answer in the first round, those of the server's side among them."""
    assert (DEFAULT.U - 1, DEFAULT.T, DEFAULT.d) == (6, 3, 16)
    assert equations(6, colluders, None) == 0
    assert equations(6, colluders, EVERYONE) == 0
    assert equations(6, colluders, OTHERS) == 12
    assert [equations(answers, colluders, OTHERS) for answers in (3, 4, 5, 7)] == [0, 4, 8, 16]


@pytest.mark.requirement("MRA-27")
def test_the_audit_sees_it_when_the_failed_round_is_logged_with_its_survivors() -> None:
    roster = Roster(DEFAULT.N)
    assert list(account(of_sets(roster, [EVERYONE, OTHERS])).found) == [LAST]
    assert not account(of_sets(roster, [(), OTHERS])).found


def test_rounds_of_one_space_have_the_same_updates_under_masks_of_their_own() -> None:
    space = Space(DEFAULT.field)
    before, after, again = (Column(DEFAULT, DEFAULT.code, (0,), space=space, drawing=at) for at in (0, 1, 1))
    assert before.updates[0].symbols.tolist() == after.updates[0].symbols.tolist()
    assert before.mask(0).symbols.tolist() != after.mask(0).symbols.tolist() == again.mask(0).symbols.tolist()
    assert before.noise(0).symbols.tolist() != after.noise(0).symbols.tolist() == again.noise(0).symbols.tolist()
