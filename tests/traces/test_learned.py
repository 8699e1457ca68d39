"""What a server learned in a recorded round: one sum of honest messages, and more where it got more."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, SurvivingSet
from secagg_spec.protocols.secagg.round import MaskedInput, UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER
from secagg_spec.traces.learned import Learned, Seen, Sum
from secagg_spec.traces.rounds import Round
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


# ------------------------------------------------------------------------------- all columns of a round, by plain ranks


def eliminated(rows: list[list[int]], p: int, columns: int) -> list[list[int]]:
    """Rows after elimination of some first columns, without those columns; rows with a pivot there are gone."""
    rows = [list(row) for row in rows]
    for column in range(columns):
        at = next((n for n, row in enumerate(rows) if row[column]), None)
        if at is not None:
            pivot = rows.pop(at)
            factor = pow(pivot[column], -1, p)
            rows = [[(a - row[column] * factor * b) % p for a, b in zip(row, pivot, strict=True)] for row in rows]
    return [row[columns:] for row in rows]


def rank(rows: list[list[int]], p: int) -> int:
    """The rank of rows."""
    return len(rows) - len(eliminated(rows, p, len(rows[0]))) if rows else 0


def known_of(p: lightsecagg.Parameters, came: set[int], asked: set[tuple[int, Any]], others: list[int]) -> Any:
    """What the server and all but `others` know of chosen elements alone, as rows, and the places of the columns."""
    L, parts, modulus = p.share_length, p.U - p.T, p.field.modulus
    units = np.eye(p.U, dtype=np.uint64)
    code = [p.code.encode(one[:parts], one[parts:].reshape(p.T, 1))[:, 0].tolist() for one in units]
    names = [
        (what, i, e) for what, count in (("n", p.T * L), ("z", p.d), ("x", p.d)) for i in others for e in range(count)
    ]

    def share(i: int, j: int, c: int) -> dict[Any, int]:
        masks = {("z", i, m * L + c): code[m][j] for m in range(parts) if m * L + c < p.d}
        return masks | {("n", i, m * L + c): code[parts + m][j] for m in range(p.T)}

    seen = [{("x", i, e): 1, ("z", i, e): 1} for i in others if i in came for e in range(p.d)]
    seen += [share(i, j, c) for i in others for j in range(p.N) if j not in others for c in range(L)]
    for j, chosen in asked:
        terms = [[share(i, j, c) for i in chosen if i in others] for c in range(L)]
        seen += [{name: value for each in column for name, value in each.items()} for column in terms]
    noise = sum(name[0] != "x" for name in names)
    everything = eliminated([[one.get(name, 0) for name in names] for one in seen], modulus, noise)
    places = [name[1:] for name in names[noise:]]

    def within(chosen: Any) -> list[list[int]]:
        order = sorted(range(len(places)), key=lambda at: bool(chosen(*places[at])))
        count = sum(not chosen(*place) for place in places)
        left = eliminated([[row[at] for at in order] for row in everything], modulus, count)
        back = {at: n - count for n, at in enumerate(order) if n >= count}
        return [[row[back[at]] if at in back else 0 for at in range(len(places))] for row in left if any(row)]

    return within, places


CASES = [
    ((5, 3, 1, 3), (0, 1)),
    ((5, 3, 1, 4), (0, 1)),
    ((5, 4, 1, 5), (0, 1, 2)),
    ((5, 4, 1, 6), (0, 1, 2)),
    ((5, 4, 1, 8), (0, 1)),
    ((7, 4, 2, 7), (0, 1, 2)),
    ((5, 3, 1, 7), (4,)),
    ((5, 3, 1, 1), ()),
    ((4, 3, 1, 5), (0, 1, 2, 3)),
]


@pytest.mark.requirement("TRC-15")
@pytest.mark.parametrize("asks", ["all", "without the last", "twice", "few", "nobody"])
@pytest.mark.parametrize(("numbers", "coalition"), CASES)
def test_what_was_learned_of_each_element_is_what_ranks_of_the_whole_round_say(
    numbers: tuple[int, int, int, int], coalition: tuple[int, ...], asks: str
) -> None:
    """Also where U - T does not divide d: each sum holds where it says, and no element has more."""
    N, U, T, d = numbers
    p = lightsecagg.Parameters(q=97, N=N, D=N - U, U=U, T=T, d=d)
    everybody, fewer = tuple(range(N)), tuple(range(N - 1))
    sets = {"all": [everybody], "without the last": [fewer], "twice": [everybody, fewer], "few": [everybody]}
    asked = {(j, chosen) for chosen in sets.get(asks, []) for j in chosen if asks != "few" or j < 1}
    came = set(fewer if asks == "without the last" else everybody)
    played = Round.__new__(Round)
    played.parameters = p
    seen = Seen(played, {user: set() for user in came}, asked=asked)
    found, others = seen.learned(coalition), [user for user in everybody if user not in coalition]
    assert found is not None
    within, places = known_of(p, came, asked, others)

    def row(terms: dict[tuple[int, int], int]) -> list[int]:
        return [terms.get(place, 0) % 97 for place in places]

    everything, used = within(lambda user, element: True), list[list[int]]()
    for element in range(d):
        here = [one.factors for one in found.sums if not one.where or element in elements(one.where)]
        rows = [row({(user, element): factor for user, factor in factors.items()}) for factors in here]
        true = within(lambda user, at, element=element: at == element)
        assert rank(rows, 97) == rank(true, 97) == rank([*rows, *true], 97)
        used += rows
    for text in found.other:
        for formula in text.split(", and so on to "):
            terms = re.findall(r"(-?) ?(?:(\d+)\*)?x_(\d+)\[(\d+)\]", formula)
            used.append(row({(int(i), int(e)): int(sign + (factor or "1")) for sign, factor, i, e in terms}))
    assert rank([*everything, *used], 97) == rank(everything, 97)
    if p.share_length <= 2:
        assert rank(used, 97) == rank(everything, 97)
    assert found.alone == tuple(user for user in others if within(lambda i, at, user=user: i == user))


def elements(where: str) -> set[int]:
    """The elements that words name."""
    spans = [re.fullmatch(r"(\d+)(?: to (\d+))?", words) for words in re.sub("elements? ", "", where).split(", ")]
    return {at for span in spans if span for at in range(int(span[1]), int(span[2] or span[1]) + 1)}


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
@pytest.mark.parametrize("name", ["lightsecagg", "lightsecagg-active"])
def test_an_answer_is_to_the_first_surviving_set_that_has_none(name: str) -> None:
    """Also where both sets go out before either answer comes."""
    each, rest = run(name), (0, 1, 2, 3)
    asked = [at for at in places(each.lines, "to") if isinstance(each.decoded(each.lines[at]), SurvivingSet)]
    answers = [at for at in places(each.lines, "from") if isinstance(each.decoded(each.lines[at]), AggregatedShare)]
    lines = list(each.lines)
    lines[max(asked) + 1 : max(asked) + 1] = [changed(each, each.lines[at], users=rest) for at in asked]
    assert [one.users for one in learned(lines).sums] == [(0, 1, 2, 3, 4)]
    both = learned([*lines, *(each.lines[at] for at in answers)])
    assert (both.alone, {one.users for one in both.sums}) == ((4,), {rest, (4,)})


@pytest.mark.requirement("TRC-15", "TRC-09")
@pytest.mark.parametrize("name", ["secagg", "secagg-active"])
@pytest.mark.parametrize("first", [True, False])
def test_a_second_masked_input_with_fewer_masks_opens_a_model(name: str, first: bool) -> None:
    each = run(name)
    at = next(at for at in places(each.lines, "from") if isinstance(each.decoded(each.lines[at]), MaskedInput))
    bare, user = changed(each, each.lines[at], neighbours=()), each.lines[at]["from"]
    found = learned([*each.lines[: at + (not first)], bare, *each.lines[at + (not first) :]])
    rest = tuple(other for other in survivors(each) if other != user)
    assert (found.alone, found.dimension) == ((user,), 2)
    assert {one.users for one in found.sums} == {(user,), rest}


@pytest.mark.requirement("TRC-15")
def test_half_of_an_input_is_known_of_each_user_whose_masks_cancel_twice() -> None:
    """Three users send two masked inputs with one mask each: modulo an even R, all but one bit of each is known."""
    each = run("secagg")
    lines = []
    for line in each.lines:
        if "message" not in line or not isinstance(each.decoded(line), MaskedInput):
            lines.append(line)
        elif line["from"] < 3:
            lines += [changed(each, line, neighbours=(peer,)) for peer in range(3) if peer != line["from"]]
    found = learned(lines)
    assert (found.alone, found.dimension) == ((0, 1, 2), 3)
    assert Sum({2: 2}) in found.sums


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


@pytest.mark.requirement("TRC-15", "TRC-06")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
@pytest.mark.parametrize("other", [{"session": bytes(16)}, {"round": 2}])
def test_messages_of_another_round_teach_nothing_of_this_one(name: str, other: dict[str, Any]) -> None:
    """Their masks and seeds are others, also where a user answers a round that is over."""
    each = run(name)
    last = [at for at in places(each.lines, "from") if each.lines[at]["phase"] == each.phases[-1]]
    lines = [changed(each, line, **other) if at in last else line for at, line in enumerate(each.lines)]
    assert (finding(lines).rule, finding(lines).line) == ("TRC-06", last[0] + 1)
    found = learned(lines)
    assert (found.dimension, found.sums, found.seeds, found.pairs) == (0, (), (), ())
    sent = [at for at in places(each.lines, "from") if each.lines[at]["phase"] == each.phases[-2]]
    lines = [changed(each, line, **other) if at == sent[0] else line for at, line in enumerate(each.lines)]
    assert learned(lines).alone == ()
    assert all(each.lines[sent[0]]["from"] not in one.users for one in learned(lines).sums)


@pytest.mark.requirement("TRC-15")
def test_answers_that_the_server_sends_and_sets_that_users_send_teach_nothing() -> None:
    for name in ("secagg", "lightsecagg"):
        each = run(name)
        last = [at for at in places(each.lines, "from") if each.lines[at]["phase"] == each.phases[-1]]
        before = [line for at, line in enumerate(each.lines) if at not in last]
        answers = [changed(each, each.lines[at], sender=SERVER) for at in last]
        back = [{**{key: line[key] for key in ("phase", "message")}, "to": line["from"]} for line in answers]
        assert learned([*before, *back]) == learned(before)
    asked = [at for at in places(each.lines, "to") if isinstance(each.decoded(each.lines[at]), SurvivingSet)]
    asking = [changed(each, each.lines[at], users=(3,), sender=each.lines[at]["to"]) for at in asked]
    said = [{**{key: line[key] for key in ("phase", "message")}, "from": line["to"]} for line in asking]
    lines = [line for at, line in enumerate(each.lines) if at not in asked]
    at = min(at for at, line in enumerate(lines) if line.get("from") is not None and line["phase"] == each.phases[-1])
    assert learned([*lines[:at], *said, *lines[at:]]).dimension == 0


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
