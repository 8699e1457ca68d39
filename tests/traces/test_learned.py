"""What a server learned in a recorded round: one sum of honest messages, and more where it got more."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, SurvivingSet
from secagg_spec.protocols.secagg.round import MaskedInput, UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER
from secagg_spec.traces.learned import Learned, Seen
from tests.strategies import fewer
from tests.traces.recorded import (
    ORDER,
    PARAMETERS,
    Line,
    Recorded,
    changed,
    finding,
    learned,
    only,
    places,
    recorded,
    run,
)

WITHOUT_PARTS = tuple(name for name in PARAMETERS if name != "heterosag")


def survivors(each: Recorded) -> tuple[int, ...]:
    """The users in the sum of a round."""
    state = each.network.states[SERVER]
    base = getattr(state, "base", state)
    found: tuple[int, ...] = base.surviving if each.name.startswith("light") else base.survivors
    return found


@pytest.mark.requirement("TRC-15")
@fewer(4)
@given(recorded(WITHOUT_PARTS))
def test_the_server_of_an_honest_round_learned_the_sum_alone(each: Recorded) -> None:
    found = learned(each.lines)
    if each.ended:  # in LightSecAgg too few answers give a part of the sum
        assert found.alone == ()
        assert {one.users for one in found.sums} <= {survivors(each)}
        assert not found.dimension or (each.name.startswith("light") and found.dimension < found.unknown)
        return
    (one,) = found.sums
    assert (one.users, one.plain, one.where) == (survivors(each), True, "")
    assert found.other == ()
    assert found.alone == ()
    elements = found.unknown // PARAMETERS[each.name].N
    assert found.dimension == elements
    if not each.name.startswith("light"):
        p = PARAMETERS[each.name]
        graph = p.graph(ORDER if each.name == "secagg+" else None)
        gone = {line["from"] for line in each.lines if line.get("from") is not None and line["phase"] == "share_keys"}
        gone -= set(survivors(each))
        assert found.seeds == survivors(each)
        met = {tuple(sorted((user, peer))) for user in gone for peer in graph.neighbours(user)}
        assert set(found.pairs) <= met
        assert {pair for pair in met if set(pair) & set(survivors(each))} <= {*found.pairs, *_unmet(each)}


def _unmet(each: Recorded) -> set[tuple[int, ...]]:
    """Pairs of users without a common mask, since one of them is not among the sharers."""
    state = each.network.states[SERVER]
    sharers = set(getattr(state, "base", state).sharers)
    users = range(PARAMETERS[each.name].N)
    return {pair for pair in combinations(users, 2) if not set(pair) <= sharers}


@pytest.mark.requirement("TRC-15")
@fewer(4)
@given(recorded(("heterosag",), most=1))
def test_the_server_of_heterosag_learned_a_sum_for_each_cell(each: Recorded) -> None:
    p = PARAMETERS["heterosag"]
    found = learned(each.lines)
    wanted = (
        []
        if each.ended
        else [(f"segment {part.segment}", tuple(sorted(part.members & set(survivors(each))))) for part in p.parts]
    )
    assert sorted((one.where, one.users) for one in found.sums) == sorted(wanted)
    assert found.unknown in (0, sum(len(part.members) for part in p.parts))
    assert found.dimension == len(wanted)


@pytest.mark.requirement("TRC-15")
@fewer(4)
@given(recorded(WITHOUT_PARTS), st.data())
def test_each_line_more_teaches_the_server_no_less(each: Recorded, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(each.lines)))
    before, after = learned(each.lines[:cut]), learned(each.lines)
    assert before.dimension <= after.dimension
    if not [at for at in places(each.lines[:cut], "from") if each.lines[at]["phase"] == each.phases[-1]]:
        assert before.dimension == 0


@pytest.mark.requirement("TRC-15")
@fewer(4)
@given(recorded(("secagg", "lightsecagg"), most=1), st.data())
def test_users_that_pool_what_they_know_leave_the_sum_of_the_others(each: Recorded, data: st.DataObject) -> None:
    colluder = data.draw(st.integers(0, 4))
    found = learned(each.lines, (colluder,))
    if not each.ended:
        (one,) = found.sums
        assert one.users == tuple(user for user in survivors(each) if user != colluder)


@pytest.mark.requirement("TRC-15")
def test_so_many_users_that_they_hold_all_shares_know_each_model() -> None:
    for name in ("secagg", "lightsecagg"):
        assert learned(run(name).lines, (0, 1, 2)).alone == (3, 4)


# --------------------------------------------------------------------------------------------- a server that lies


def after_requests(each: Recorded, kind: Any, change: Any, answer_kind: Any, answer: Any) -> list[Line]:
    """The lines of a round whose server asks each user again in other words, and gets a second answer of it."""
    asked = [at for at in places(each.lines, "to") if isinstance(each.decoded(each.lines[at]), kind)]
    answers = [at for at in places(each.lines, "from") if isinstance(each.decoded(each.lines[at]), answer_kind)]
    again = [changed(each, each.lines[at], **change) for at in asked]
    said = [changed(each, each.lines[at], **answer) for at in answers]
    return [*each.lines, *again, *said]


@pytest.mark.requirement("TRC-15", "TRC-09")
@fewer(4)
@given(st.sampled_from(("secagg", "secagg-active")), st.integers(0, 4))
def test_the_other_secret_of_a_user_opens_its_model(name: str, user: int) -> None:
    each = run(name)
    rest = tuple(other for other in range(5) if other != user)
    shares = {"survivors": rest, "seed_shares": bytes(4 * 66), "dropped": (user,), "key_shares": bytes(66)}
    sets = {"survivors": rest, "dropped": (user,)}
    lines = after_requests(each, UnmaskRequest, sets, UnmaskShares, shares)
    assert (finding(lines).rule, finding(lines).line) == (
        "TRC-09",
        len(each.lines) + 1,
    )
    found = learned(lines)
    assert found.alone == (user,)
    assert {one.users for one in found.sums} == {(user,), rest}
    assert found.dimension == 2
    assert set(found.pairs) == {tuple(sorted((user, other))) for other in rest}


@pytest.mark.requirement("TRC-15", "TRC-09")
@fewer(4)
@given(st.sampled_from(("lightsecagg", "lightsecagg-active")), st.integers(0, 4))
def test_two_surviving_sets_open_a_model(name: str, user: int) -> None:
    each = run(name)
    rest = tuple(other for other in range(5) if other != user)
    lines = after_requests(each, SurvivingSet, {"users": rest}, AggregatedShare, {})
    assert finding(lines).line == len(each.lines) + 1
    found = learned(lines)
    assert found.alone == (user,)
    assert {one.users for one in found.sums} == {(user,), rest}


@pytest.mark.requirement("TRC-15")
def test_answers_for_one_user_alone_open_its_model() -> None:
    """Also where a user has to refuse the set."""
    each = run("lightsecagg", {"recover": range(5)})
    asked = [at for at in places(each.lines, "to") if isinstance(each.decoded(each.lines[at]), SurvivingSet)]
    whole = run("lightsecagg")
    said = [line for line in whole.lines if "from" in line and line["phase"] == "recover"]
    lines = [changed(each, line, users=(3,)) if at in asked else line for at, line in enumerate(each.lines)]
    found = learned([*lines, *said])
    assert (found.alone, [one.users for one in found.sums]) == ((3,), [(3,)])
    assert learned([*lines, *said[:2]]).alone == (3,)
    assert learned([*lines, *said[:1]]).alone == ()


@pytest.mark.requirement("TRC-15")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
def test_a_late_masked_input_counts_in_what_was_learned(name: str) -> None:
    """Alone it teaches nothing; with the answers that it takes, its model."""
    phase = "masked_input" if name == "secagg" else "upload"
    each, whole = run(name, {phase: [1]}), run(name)
    late = next(line for line in whole.lines if line.get("from") == 1 and line["phase"] == phase)
    lines = [*each.lines, late]
    assert only(lines).finding is None
    assert [one.users for one in learned(lines).sums] == [(0, 2, 3, 4)]
    if name == "secagg":
        answer = [line for line in each.lines if "from" in line and line["phase"] == "unmasking"]
        both = {"survivors": (0, 1, 2, 3, 4), "seed_shares": bytes(5 * 66), "dropped": (), "key_shares": b""}
        again = [changed(each, line, **both) for line in answer]
        assert learned([*lines, *again]).alone == (1,)
        assert learned([*each.lines, *again]).alone == ()


def test_a_graph_in_two_pieces_gives_two_sums() -> None:
    """On a sparse graph the survivors may be no longer connected; then each piece is a sum of its own."""
    p = PARAMETERS["secagg+"]
    found = learned(run("secagg+", {"masked_input": [ORDER[0], ORDER[1]]}).lines)
    left = [user for user in range(7) if user not in ORDER[:2]]
    assert [one.users for one in found.sums] == list(components(p.graph(ORDER), left))


def test_a_round_that_is_too_large_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secagg_spec.traces.learned.MOST_SYMBOLS", 4)
    for name in ("secagg", "lightsecagg"):
        with pytest.raises(AssertionError):
            learned(run(name).lines)


def test_bytes_that_nobody_can_read_teach_nothing() -> None:
    each = run("secagg")
    bad = [{"phase": "unmasking", "from": user, "message": text} for user in (0, 9) for text in ("", "07", "0702ff")]
    found = learned([*each.lines, *bad])
    assert found == learned(each.lines)
    assert isinstance(found, Learned)
    assert np.array_equal(found.sums[0].users, range(5))
    assert Seen(only(each.lines)).learned() == Learned(0, 0, ())


@pytest.mark.requirement("TRC-15")
def test_an_input_with_fewer_masks_is_hidden_by_these_alone() -> None:
    """The input of user 0 names no neighbour: with its self mask, its model is known."""
    each = run("secagg")
    lines = [
        changed(each, line, neighbours=())
        if isinstance(each.decoded(line), MaskedInput) and line["from"] == 0
        else line
        for line in each.lines[1:]
        if "message" in line
    ]
    assert 0 in learned([each.lines[0], *lines]).alone
