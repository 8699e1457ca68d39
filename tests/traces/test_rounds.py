"""Honest traces conform, whole or cut, and each message that no conforming party sends is found, with its clause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, SurvivingSet
from secagg_spec.protocols.secagg.round import MaskedInput, UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Role
from secagg_spec.traces import rounds
from secagg_spec.traces.files import Closed, Head
from tests.strategies import fewer
from tests.traces.recorded import (
    COMPLETE,
    NUMBER,
    PARAMETERS,
    SESSION,
    Line,
    Recorded,
    changed,
    checked,
    entries,
    finding,
    learned,
    only,
    places,
    recorded,
    run,
)

SECAGG = ("secagg", "secagg+", "secagg-active")
LIGHT = ("lightsecagg", "lightsecagg-active")


@pytest.mark.requirement("TRC-02", "TRC-12")
@fewer(3)
@given(recorded())
def test_an_honest_round_conforms(each: Recorded) -> None:
    found = only(each.lines)
    assert found.finding is None
    assert found.complete != each.ended
    assert bool(found.ended) == each.ended
    assert not found.late


@pytest.mark.requirement("TRC-12")
@fewer(3)
@given(recorded(), st.data())
def test_a_round_that_is_cut_conforms_and_is_incomplete(each: Recorded, data: st.DataObject) -> None:
    """With or without the lines that end the phases."""
    lines = [line for line in each.lines if "closed" not in line] if data.draw(st.booleans()) else list(each.lines)
    cut = data.draw(st.integers(1, len(lines) - 1))
    found = only(lines[:cut])
    assert found.finding is None
    last = [line for line in lines[cut:] if line["phase"] == each.phases[-1]]
    assert not found.complete or not [line for line in last if "to" in line]


def last(each: Recorded) -> list[int]:
    """The lines of messages in the last phase."""
    return [at for at in places(each.lines, "from", "to") if each.lines[at]["phase"] == each.phases[-1]]


@pytest.mark.requirement("TRC-09", "TRC-14")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_that_is_there_twice_is_found(each: Recorded, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    found = finding([*each.lines[: at + 1], *each.lines[at:]])
    party = each.lines[at].get("from", SERVER)
    assert (found.line, found.rule, found.code, found.party) == (at + 2, "TRC-09", "replay", party)
    assert found.clauses == ("MSG-04",)


@pytest.mark.requirement("TRC-06")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_at_the_wrong_end_is_found(each: Recorded, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    line = dict(each.lines[at])
    member = "from" if "from" in line else "to"
    line[member] = data.draw(st.integers(0, 2 * PARAMETERS[each.name].N).filter(lambda user: user != line[member]))
    found = finding([*each.lines[:at], line, *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.clauses) == (at + 1, "TRC-06", ("MSG-03",))
    assert found.party == line.get("from", SERVER)


@pytest.mark.requirement("TRC-06", "TRC-07", "TRC-08", "TRC-10", "MSG-02", "MSG-03")
@fewer(3)
@given(recorded(), st.data())
def test_a_changed_byte_of_the_server_or_of_a_header_is_found(each: Recorded, data: st.DataObject) -> None:
    """The other bytes of users are sealed or masked, and a changed one may be what another user would send."""
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    octets = bytearray.fromhex(each.lines[at]["message"])
    place = data.draw(st.integers(0, 29 if "from" in each.lines[at] else len(octets) - 1))
    octets[place] ^= data.draw(st.integers(1, 255))
    lines = [*each.lines[:at], {**each.lines[at], "message": octets.hex()}, *each.lines[at + 1 :]]
    found = finding(lines)
    assert found.rule in {"TRC-06", "TRC-07", "TRC-08", "TRC-09", "TRC-10"}
    assert found.line == at + 1
    assert found.party == each.lines[at].get("from", SERVER)


@pytest.mark.requirement("TRC-06", "MSG-03")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_of_another_session_or_round_is_found(each: Recorded, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    other: dict[str, Any] = data.draw(st.sampled_from([{"session": bytes(16)}, {"round": NUMBER + 1}]))
    found = finding([*each.lines[:at], changed(each, each.lines[at], **other), *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.clauses, found.code) == (at + 1, "TRC-06", ("MSG-03",), "wrong_phase")


@pytest.mark.requirement("TRC-06", "MSG-02")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_that_is_cut_or_goes_on_is_found(each: Recorded, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    text = each.lines[at]["message"]
    other = data.draw(st.sampled_from([text[:-2], text + "00", text[:2], ""]))
    found = finding([*each.lines[:at], {**each.lines[at], "message": other}, *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.code) == (at + 1, "TRC-06", "malformed")
    assert found.clauses == ("MSG-02",)


@pytest.mark.requirement("TRC-07")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_before_its_phase_is_found(each: Recorded, data: st.DataObject) -> None:
    later = [at for at in places(each.lines, "from", "to") if each.lines[at]["phase"] != each.phases[0]]
    later = [at for at in later if "from" in each.lines[at] or each.lines[at]["phase"] != each.phases[1]]
    if not later:
        return
    at = data.draw(st.sampled_from(later))
    found = finding([each.lines[0], each.lines[at], *each.lines[1:at], *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.code) == (2, "TRC-07", "wrong_phase")


@pytest.mark.requirement("TRC-07")
@fewer(3)
@given(recorded(), st.data())
def test_a_message_with_the_name_of_another_phase_is_found(each: Recorded, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(places(each.lines, "from", "to")))
    others = [phase for phase in each.phases if phase != each.lines[at]["phase"]]
    line = {**each.lines[at], "phase": data.draw(st.sampled_from(others))}
    found = finding([*each.lines[:at], line, *each.lines[at + 1 :]])
    if "to" in line and each.phases.index(line["phase"]) == each.phases.index(each.lines[at]["phase"]) + 1:
        assert (found.line, found.rule) == (at + 1, "TRC-08")  # the server may go on now, but not so
    else:
        assert (found.line, found.rule, found.code) == (at + 1, "TRC-07", "wrong_phase")


@pytest.mark.requirement("TRC-08")
@fewer(3)
@given(recorded(COMPLETE, most=1), st.data())
def test_a_message_that_the_server_does_not_count_is_found(each: Recorded, data: st.DataObject) -> None:
    """On a complete graph each message of a user counts; without it, the server's next messages are wrong."""
    found_in = [at for at in places(each.lines, "from") if each.lines[at]["phase"] != each.phases[-1]]
    at = data.draw(st.sampled_from(found_in))
    lines = [*each.lines[:at], *each.lines[at + 1 :]]
    after = [n for n in places(lines, "to") if n >= at and lines[n]["phase"] != each.lines[at]["phase"]]
    if not after:
        assert only(lines).finding is None
        return
    found = finding(lines)
    assert (found.rule, found.party) == ("TRC-08", SERVER)
    assert after[0] < found.line
    assert {id[:3] for id in found.clauses} <= {"SAG", "LSA", "HSA"}
    assert set(found.clauses) <= set(resources.clauses())
    assert found.clauses


@pytest.mark.requirement("TRC-11")
@fewer(3)
@given(recorded(), st.data())
def test_a_user_that_was_not_sent_all_is_found(each: Recorded, data: st.DataObject) -> None:
    answered = {(each.lines[at]["phase"], each.lines[at]["from"]) for at in places(each.lines, "from")}
    asked = [at for at in places(each.lines, "to") if (each.lines[at]["phase"], each.lines[at]["to"]) in answered]
    if not asked:
        return
    at = data.draw(st.sampled_from(asked))
    lines = [*each.lines[:at], *each.lines[at + 1 :]]
    user, phase = each.lines[at]["to"], each.lines[at]["phase"]
    first = next(n for n in places(lines, "from") if (lines[n]["phase"], lines[n]["from"]) == (phase, user))
    found = finding(lines)
    assert (found.line, found.rule, found.code) == (first + 1, "TRC-11", "wrong_phase")
    others = [n for n in places(lines[:first], "to") if (lines[n]["phase"], lines[n]["to"]) == (phase, user)]
    assert found.party == (SERVER if others else user)


@pytest.mark.requirement("TRC-11")
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_user_for_whom_the_server_has_nothing_is_found(name: str) -> None:
    each = run(name)
    phase = each.phases[-2] if name.endswith("active") else each.phases[-1]
    after = run(name, {each.phases[2 if name.startswith("sec") or name == "heterosag" else 1]: [1]})
    whole = next(line for line in each.lines if line.get("from") == 1 and line["phase"] == phase)
    at = next(n for n in places(after.lines, "from") if after.lines[n]["phase"] == phase)
    found = finding([*after.lines[:at], whole, *after.lines[at:]])
    assert (found.line, found.rule, found.party) == (at + 1, "TRC-11", 1)


# ------------------------------------------------------------------------------------------ what the server says


def with_lines(each: Recorded, change: Any, *kinds: Any) -> tuple[int, list[Line]]:
    """The place of the first message of some kinds, and the lines with that message changed."""
    at = next(n for n in places(each.lines, "from", "to") if isinstance(each.decoded(each.lines[n]), kinds))
    return at, [
        *each.lines[:at],
        changed(each, each.lines[at], **change(each.decoded(each.lines[at]))),
        *each.lines[at + 1 :],
    ]


@pytest.mark.requirement("TRC-08", "TRC-14")
@pytest.mark.parametrize("name", [*SECAGG, "heterosag"])
def test_another_surviving_set_is_found(name: str) -> None:
    each = run(name, {"masked_input": [1]})

    def swapped(message: UnmaskRequest) -> dict[str, Any]:
        return {"survivors": message.survivors[:-1], "dropped": (*message.dropped, message.survivors[-1])}

    at, lines = with_lines(each, swapped, UnmaskRequest)
    found = finding(lines)
    assert (found.line, found.party, found.rule, found.code) == (at + 1, SERVER, "TRC-08", "inconsistent_sets")
    assert "survivors is" in found.what
    assert found.clauses == (("SAG-17",) if name != "heterosag" else found.clauses)


@pytest.mark.requirement("TRC-08")
@pytest.mark.parametrize("name", LIGHT)
def test_another_surviving_set_of_lightsecagg_is_found(name: str) -> None:
    at, lines = with_lines(run(name), lambda message: {"users": message.users[1:]}, SurvivingSet)
    found = finding(lines)
    assert (found.line, found.party, found.rule, found.code) == (at + 1, SERVER, "TRC-08", "inconsistent_sets")
    assert found.clauses == ("LSA-06", "LSA-07", "LSA-16")


@pytest.mark.requirement("TRC-08")
def test_a_server_that_asks_for_both_secrets_of_a_user_is_found() -> None:
    each = run("secagg", {"masked_input": [1]})
    at, lines = with_lines(each, lambda message: {"dropped": (*message.dropped, 2)}, UnmaskRequest)
    found = finding(lines)
    assert (found.line, found.rule, found.code) == (at + 1, "TRC-08", "inconsistent_sets")
    assert "dropped is [1, 2], must be [1]" in found.what


@pytest.mark.requirement("TRC-08")
@pytest.mark.parametrize(("name", "clauses"), [("secagg", ("SAG-18",)), ("lightsecagg", ("LSA-07",))])
def test_a_server_that_goes_on_with_too_few_is_found(name: str, clauses: tuple[str, ...]) -> None:
    phase = "masked_input" if name == "secagg" else "upload"
    few, whole = run(name, {phase: [0, 1, 2]}), run(name)
    assert few.ended
    asking = next(line for line in whole.lines if "to" in line and line["phase"] == whole.phases[-1])
    line = changed(whole, asking, **({"survivors": (3, 4)} if name == "secagg" else {"users": (3, 4)}))
    found = finding([*few.lines, line])
    assert (found.line, found.rule, found.code) == (len(few.lines) + 1, "TRC-08", "below_threshold")
    assert (found.party, found.clauses) == (SERVER, clauses)


@pytest.mark.requirement("TRC-08")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
def test_a_session_without_a_whole_batch_says_so(name: str) -> None:
    phase = "masked_input" if name == "secagg" else "upload"
    head, *lines = run(name, {phase: [0]}).lines
    last = max(at for at, line in enumerate(lines) if line["phase"] == phase)
    found = only([{**head, "batch": 5}, *lines[: last + 1]])
    assert (found.finding, found.ended) == (None, f"no batch of 5 users is whole in {phase}")


@pytest.mark.requirement("TRC-09")
def test_a_round_with_a_finding_has_not_ended_for_what_came_before_it() -> None:
    head, first, *lines = run("secagg").lines
    found = only([head, first, first, *lines])
    assert found.finding is not None
    assert (found.finding.line, found.finding.rule, found.ended) == (3, "TRC-09", "")


# --------------------------------------------------------------------------------------------- what users say


@pytest.mark.requirement("TRC-10", "TRC-14")
@pytest.mark.parametrize(
    ("name", "kind", "change", "clauses", "code"),
    [
        ("secagg", MaskedInput, lambda m: {"neighbours": m.neighbours[1:]}, ("SAG-37",), "inconsistent_sets"),
        ("secagg+", MaskedInput, lambda m: {"masked": m.masked + 100}, ("SAG-33",), "malformed"),
        ("secagg", MaskedInput, lambda m: {"masked": m.masked[1:]}, ("SAG-33",), "malformed"),
        ("secagg", UnmaskShares, lambda m: {"survivors": m.survivors[1:]}, ("SAG-26",), "malformed"),
        ("secagg-active", UnmaskShares, lambda m: {"seed_shares": m.seed_shares[1:]}, (), "malformed"),
        ("lightsecagg", AggregatedShare, lambda m: {"share": m.share[1:]}, (), "malformed"),
    ],
)
def test_a_message_that_the_server_must_refuse_is_found(
    name: str, kind: Any, change: Any, clauses: tuple[str, ...], code: str
) -> None:
    at, lines = with_lines(run(name), change, kind)
    found = finding(lines)
    assert (found.line, found.rule, found.code) == (at + 1, "TRC-10", code)
    assert (found.party, found.blamed) == (lines[at]["from"], (lines[at]["from"],))
    assert found.clauses == clauses or (not clauses and found.clauses)


@pytest.mark.requirement("TRC-10")
@fewer(3)
@given(recorded(("secagg-active", "lightsecagg-active"), most=1), st.data())
def test_a_wrong_signature_is_found(each: Recorded, data: st.DataObject) -> None:
    signed = [at for at in places(each.lines, "from") if hasattr(each.decoded(each.lines[at]), "signature")]
    at = data.draw(st.sampled_from(signed))
    signature = bytearray(getattr(each.decoded(each.lines[at]), "signature"))  # noqa: B009
    signature[data.draw(st.integers(0, 63))] ^= 1
    line = changed(each, each.lines[at], signature=bytes(signature))
    found = finding([*each.lines[:at], line, *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.code) == (at + 1, "TRC-10", "bad_signature")
    assert found.party == line["from"]


@pytest.mark.requirement("TRC-10")
@pytest.mark.parametrize(("name", "field"), [("secagg", "seed_shares"), ("lightsecagg", "share")])
def test_a_wrong_share_is_found_with_the_first_answer_that_shows_it(name: str, field: str) -> None:
    """Users 0 to 4 answer, three answers suffice, and that of user 1 is wrong: the third or the fourth one shows it."""
    each = run(name)
    at = next(n for n in last(each) if each.lines[n].get("from") == 1)
    given_share = getattr(each.decoded(each.lines[at]), field)
    other = bytes([given_share[0] ^ 1]) + given_share[1:] if isinstance(given_share, bytes) else (given_share + 1) % 97
    found = finding([*each.lines[:at], changed(each, each.lines[at], **{field: other}), *each.lines[at + 1 :]])
    answers = [n for n in last(each) if "from" in each.lines[n]]
    assert (found.line, found.rule, found.code) == (answers[2 if name == "secagg" else 3] + 1, "TRC-10", "bad_share")
    assert 1 in found.blamed
    assert found.clauses == (("SAG-28",) if name == "secagg" else found.clauses)


@pytest.mark.requirement("TRC-10")
def test_the_second_of_two_equal_keys_is_found() -> None:
    each = run("secagg")
    first, second = (each.decoded(each.lines[at]) for at in (1, 2))
    line = changed(each, each.lines[2], sealing=first.sealing)  # type: ignore[attr-defined]
    assert second.sender == 1
    found = finding([*each.lines[:2], line, *each.lines[3:]])
    assert (found.line, found.rule, found.code, found.party) == (3, "TRC-10", "inconsistent_sets", 1)
    assert found.blamed == (0, 1)
    assert "SAG-35" in found.clauses


@pytest.mark.requirement("TRC-10")
def test_an_earlier_finding_comes_first() -> None:
    """A masked input that is only refused when the phase ends is found before the bytes that nobody can read."""
    at, lines = with_lines(run("secagg"), lambda message: {"neighbours": message.neighbours[1:]}, MaskedInput)
    lines[at + 1] = {**lines[at + 1], "message": "00"}
    assert (finding(lines).line, finding(lines).rule) == (at + 1, "TRC-10")


@pytest.mark.requirement("TRC-06", "SEA-01")
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_payload_of_another_length_is_found(name: str) -> None:
    each = run(name)
    at = next(n for n in places(each.lines, "from") if hasattr(each.decoded(each.lines[n]), "payload"))
    payload = getattr(each.decoded(each.lines[at]), "payload")  # noqa: B009
    line = changed(each, each.lines[at], payload=payload[:-28])
    found = finding([*each.lines[:at], line, *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.clauses) == (at + 1, "TRC-06", ("SEA-01",))


# ----------------------------------------------------------------------------------- late, closed, again


@pytest.mark.requirement("TRC-12")
@fewer(3)
@given(recorded(COMPLETE, most=0), st.data())
def test_a_late_message_is_no_finding_and_does_not_count(each: Recorded, data: st.DataObject) -> None:
    """User 1 answers after the server went on."""
    phase = data.draw(st.sampled_from(each.phases))
    without = run(each.name, {phase: [1]}, b"1")
    whole = run(each.name, {}, b"1")
    at = 1 + next(n for n, line in enumerate(without.lines) if "closed" in line and line["phase"] == phase)
    late = [line for line in whole.lines if line.get("from") == 1 and line["phase"] == phase]
    put = data.draw(st.integers(at, len(without.lines)))
    found = only([*without.lines[:put], *late, *without.lines[put:]])
    assert (found.finding, found.complete) == (None, True)
    assert found.late == list(range(put + 1, put + 1 + len(late)))


@pytest.mark.requirement("TRC-12", "TRC-10")
def test_a_late_message_that_no_user_sends_is_found() -> None:
    without, whole = run("secagg", {"masked_input": [1]}), run("secagg")
    late = next(line for line in whole.lines if line.get("from") == 1 and line["phase"] == "masked_input")
    found = finding([*without.lines, changed(whole, late, neighbours=(0,))])
    assert (found.line, found.rule, found.party) == (len(without.lines) + 1, "TRC-10", 1)


@pytest.mark.requirement("TRC-07")
@fewer(3)
@given(recorded(), st.data())
def test_an_end_of_a_phase_that_is_wrong_is_found(each: Recorded, data: st.DataObject) -> None:
    ends = places(each.lines, "closed")
    if not ends:
        return
    at = data.draw(st.sampled_from(ends))
    line = dict(each.lines[at])
    came = sorted(
        {each.lines[n]["from"] for n in places(each.lines, "from") if each.lines[n]["phase"] == line["phase"]}
    )
    line |= data.draw(
        st.sampled_from(
            [
                {"phase": next(phase for phase in each.phases if phase != line["phase"])},
                {"closed": came[:1] or [PARAMETERS[each.name].N]},
                {"closed": [PARAMETERS[each.name].N]},
            ]
        )
    )
    found = finding([*each.lines[:at], line, *each.lines[at + 1 :]])
    assert (found.line, found.rule, found.party) == (at + 1, "TRC-07", SERVER)


@pytest.mark.requirement("TRC-07")
def test_a_phase_that_ends_twice_is_found() -> None:
    each = run("secagg")
    found = finding([*each.lines, each.lines[-1]])
    assert (found.line, found.rule, found.code) == (len(each.lines) + 1, "TRC-07", "wrong_phase")


@pytest.mark.requirement("TRC-13", "SES-01")
def test_a_round_that_begins_again_is_found() -> None:
    each = run("secagg")
    first, second = checked([*each.lines, *each.lines])
    assert first.finding is None
    assert second.finding is not None
    assert (second.finding.line, second.finding.rule) == (len(each.lines) + 1, "TRC-13")
    assert second.finding.clauses == ("SES-01",)
    other = [{**each.lines[0], "session": bytes(16).hex()}]
    third = [{**each.lines[0], "round": str(NUMBER + 1)}]
    found = checked([*each.lines, *other, *third])
    assert [one.finding for one in found] == [None, None, None]
    assert found[0].head.session == SESSION


def test_the_checker_names_clauses_that_are_there() -> None:
    """Each step that the server takes names clauses of the text, from which those of a finding are taken."""
    for name in PARAMETERS:
        found = only(run(name).lines)
        for step in found.protocol.table:
            if step.role is Role.SERVER:
                assert set(found._clauses(step)) <= set(resources.clauses())
                assert found._clauses(step)


def test_bytes_are_compared_and_not_only_fields() -> None:
    each = run("secagg")
    assert all(encode(each.decoded(line)).hex() == line["message"] for line in each.lines if "message" in line)


@pytest.mark.requirement("TRC-14")
@fewer(2)
@given(recorded(), st.data())
def test_lines_in_any_order_with_any_bytes_are_judged(each: Recorded, data: st.DataObject) -> None:
    """Nothing in a trace ends the checker, and a finding is a line of the trace, with clauses of the text."""
    lines = [dict(line) for line in each.lines]
    for _ in range(data.draw(st.integers(1, 4))):
        at, other = (data.draw(st.integers(1, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["exchange", "bytes", "remove", "repeat", "end"])):
            case "exchange":
                lines[at], lines[other] = lines[other], lines[at]
            case "remove" if len(lines) > 3:
                del lines[at]
            case "repeat":
                lines.insert(other, dict(lines[at]))
            case "bytes" if "message" in lines[at]:
                octets = bytearray.fromhex(lines[at]["message"])
                for place in data.draw(st.lists(st.integers(0, max(0, len(octets) - 1)), max_size=3)):
                    octets[place : place + 1] = data.draw(st.binary(max_size=2))
                lines[at]["message"] = octets.hex()
            case "end" if "message" in lines[at]:
                member = "from" if "from" in lines[at] else "to"
                lines[at][member] = data.draw(st.sampled_from([-1, 0, 1, 2, 7, 2**31]))
            case _:
                pass
    found = only(lines).finding
    if found is not None:
        assert 1 <= found.line <= len(lines)
        assert {found.rule, *found.clauses} <= set(resources.clauses())
        assert found.party in found.blamed
        assert found.what
    learned(lines)


@pytest.mark.requirement("TRC-02", "ERR-02")
@pytest.mark.parametrize("protocol", ["secagg", "basa", ""])
def test_a_head_made_by_hand_holds_a_protocol_and_its_parameters(protocol: str) -> None:
    with pytest.raises(rounds.BadLine, match=r"^line 0: "):
        rounds.Round(Head(protocol, {}, {}, bytes(16), 1))


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("number", [-1, 2**32])
def test_the_round_of_a_head_made_by_hand_is_named_as_in_the_head(number: int) -> None:
    (head,) = entries(run("secagg").lines[:1])
    assert isinstance(head, Head)
    with pytest.raises(rounds.BadLine, match=rf"^line 1: round = {number}: must be an integer in \[0, 4294967295\]$"):
        rounds.Round(replace(head, round=number))


@pytest.mark.requirement("TRC-02", "ERR-02")
def test_entries_without_a_head_are_refused() -> None:
    with pytest.raises(rounds.BadLine, match=r"^line 1: a trace begins with a head$"):
        list(rounds.check([Closed(1, "x", ())]))


@pytest.mark.requirement("ERR-02")
def test_what_is_no_entry_is_refused() -> None:
    other: Any = None
    for wrong in ([other], [*entries(run("secagg").lines[:1]), other]):
        with pytest.raises(ParameterError, match=r"^entry = 'NoneType': must be of the class Sent or Closed$"):
            list(rounds.check(wrong))
