"""The network, the schedule and the checks that every protocol shares, on a protocol of one question and answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import (
    InconsistentSets,
    Malformed,
    ParameterError,
    ProtocolError,
    Replay,
    UnknownUser,
    WrongPhase,
)
from secagg_spec.protocols.codec import Message, Opaque, encode
from secagg_spec.protocols.steps import (
    SERVER,
    Inbox,
    Network,
    Outbox,
    Randomness,
    Role,
    Step,
    accept,
    check_ascending,
    check_dropouts,
    require_phase,
    run_synchronous,
    sizes,
    take_randomness,
)
from tests.strategies import snapshot, vector

SESSION = bytes(16)


@dataclass(frozen=True, eq=False)
class Hello(Message):
    """What users send."""

    TYPE: ClassVar[int] = 1
    text: Opaque


@dataclass(frozen=True, eq=False)
class Echo(Message):
    """What the server answers."""

    TYPE: ClassVar[int] = 2
    text: Opaque


def user_greet(state: int, inbox: Inbox, *, randomness: Randomness) -> tuple[int, Outbox]:
    """Send one number."""
    (word,) = take_randomness(randomness, ("word",))
    return state + 1, (Hello(SESSION, 0, state, SERVER, bytes([int(word[0])])),)


def server_echo(state: int, inbox: Inbox, *, randomness: Randomness) -> tuple[int, Outbox]:
    """Answer everybody; refuse the number 13."""
    if any(message.text == bytes([13]) for message in inbox if isinstance(message, Hello)):
        raise WrongPhase("13")
    return len(inbox), tuple(Echo(SESSION, 0, SERVER, m.sender, b"x") for m in inbox)


def user_listen(state: int, inbox: Inbox, *, randomness: Randomness) -> tuple[int, Outbox]:
    """Count what was heard."""
    return 100 + len(inbox), ()


TABLE = (
    Step("greet", Role.USER, user_greet, sends=(Hello,), randomness=("word",)),
    Step("greet", Role.SERVER, server_echo, receives=(Hello,), sends=(Echo,)),
    Step("listen", Role.USER, user_listen, receives=(Echo,)),
)


def network(users: int = 3) -> Network:
    """A network whose users have their number as state."""
    return Network(TABLE, {SERVER: 0, **{user: user for user in range(users)}})


def words(users: int = 3, value: int = 7) -> dict[int, Randomness]:
    """One sampled value for each user."""
    return {user: {"word": vector([value])} for user in range(users)}


# ----------------------------------------------------------------------------------------------------- the network


@pytest.mark.requirement("ERR-01")
def test_a_run_takes_every_row_in_turn() -> None:
    run = network()
    run_synchronous(run, {}, words())
    assert run.states == {SERVER: 3, 0: 101, 1: 101, 2: 101}
    order = [(event.step.phase, event.party) for event in run.transcript]
    assert order == [
        *(("greet", user) for user in (0, 1, 2)),
        ("greet", SERVER),
        *(("listen", user) for user in (0, 1, 2)),
    ]


@pytest.mark.requirement("RND-01")
@given(st.dictionaries(st.integers(0, 2), st.sampled_from(["greet", "listen"])))
def test_a_user_takes_no_step_from_its_drop_on(fate: dict[int, str]) -> None:
    run = network()
    run_synchronous(run, {p: [u for u in fate if fate[u] == p] for p in ("greet", "listen")}, words())
    taken = {(event.step.phase, event.party) for event in run.transcript if event.party != SERVER}
    expected = {("greet", u) for u in range(3) if fate.get(u) != "greet"}
    assert taken == expected | {("listen", u) for u in range(3) if u not in fate}


@pytest.mark.requirement("ERR-01")
def test_a_refused_step_leaves_the_network_as_it_was() -> None:
    run = network(1)
    run.take(TABLE[0], 0, {"word": vector([13])})
    before = snapshot([run.states, run.waiting, len(run.transcript)])
    with pytest.raises(WrongPhase):
        run.take(TABLE[1], SERVER)
    with pytest.raises(ParameterError):
        run.take(TABLE[0], 0, {})
    assert snapshot([run.states, run.waiting, len(run.transcript)]) == before


@pytest.mark.requirement("ERR-02")
def test_mail_for_other_rows_stays() -> None:
    run = network(1)
    run.waiting[0] = [Hello(SESSION, 0, 0, 0, b""), Echo(SESSION, 0, SERVER, 0, b"")]
    run.take(TABLE[2], 0)
    assert [type(message) for message in run.waiting[0]] == [Hello]
    assert run.states[0] == 101


@pytest.mark.requirement("MSG-01")
def test_sizes_are_those_of_the_bytes() -> None:
    sent = [Hello(SESSION, 0, 0, SERVER, bytes(n)) for n in range(4)]
    assert sizes(sent) == sum(len(encode(message)) for message in sent) == 4 * 34 + 6


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("dropouts", [{"nap": [0]}, {"greet": [0, 0]}, {"greet": [1], "listen": [1]}])
def test_schedules_that_cannot_be_are_refused(dropouts: dict[str, list[int]]) -> None:
    with pytest.raises(ParameterError, match="dropouts"):
        check_dropouts(TABLE, range(3), dropouts)
    run = network()
    with pytest.raises(ParameterError, match="dropouts"):
        run_synchronous(run, dropouts, words())
    assert not run.transcript


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("stranger", [-1, 3, SERVER])
def test_schedules_that_name_strangers_are_refused(stranger: int) -> None:
    with pytest.raises(UnknownUser):
        check_dropouts(TABLE, range(3), {"greet": [stranger]})


@pytest.mark.requirement("RND-04")
@pytest.mark.parametrize("values", [{}, {"word": 1, "more": 2}, {"other": 1}])
def test_sampled_values_are_named_exactly(values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="randomness"):
        take_randomness(values, ("word",))


@pytest.mark.requirement("RND-04")
def test_sampled_values_come_in_the_order_asked_for() -> None:
    first, second = take_randomness({"b": vector([2]), "a": vector([1])}, ("a", "b"))
    assert (first.tolist(), second.tolist()) == ([1], [2])
    assert not take_randomness({}, ())


@pytest.mark.requirement("RND-04")
@pytest.mark.parametrize("values", [{}, {"word": vector([1]), "more": vector([2])}])
def test_a_run_refuses_missing_and_unknown_sampled_values(values: Randomness) -> None:
    run = network()
    with pytest.raises(ParameterError, match="randomness"):
        run_synchronous(run, {}, {**words(), 1: values})


# -------------------------------------------------------------------------------------------------------- the checks


def inbox_of(*senders: int) -> list[Message]:
    """One message from each sender to user 9."""
    return [Hello(SESSION, 5, sender, 9, b"") for sender in senders]


def judge(inbox: Inbox) -> None:
    """What user 9 says of an inbox in which 1, 2 and 3 may speak."""
    accept(inbox, (Hello,), session=SESSION, round=5, receiver=9, senders=(1, 2, 3))


@pytest.mark.requirement("MSG-03", "MSG-04")
@given(st.lists(st.sampled_from((1, 2, 3)), unique=True))
def test_one_message_from_each_of_some_senders_is_accepted(senders: list[int]) -> None:
    judge(inbox_of(*senders))


@pytest.mark.requirement("MSG-03")
@given(st.permutations((1, 2, 3)), st.integers(0, 2), st.data())
def test_a_message_from_elsewhere_is_refused(senders: list[int], at: int, data: st.DataObject) -> None:
    changes: dict[str, tuple[Any, type[ProtocolError]]] = {
        "session": (bytes(15) + b"\1", WrongPhase),
        "round": (data.draw(st.sampled_from((4, 6, 0))), WrongPhase),
        "receiver": (data.draw(st.sampled_from((8, SERVER))), Malformed),
        "sender": (data.draw(st.sampled_from((0, 4, 9, SERVER))), InconsistentSets),
    }
    name = data.draw(st.sampled_from(sorted(changes)))
    value, error = changes[name]
    inbox = inbox_of(*senders)
    inbox[at] = replace(inbox[at], **{name: value})
    with pytest.raises(error) as caught:
        judge(inbox)
    assert caught.value.blamed == {inbox[at].sender}


@pytest.mark.requirement("MSG-03")
def test_a_message_of_another_type_is_refused() -> None:
    with pytest.raises(WrongPhase) as caught:
        judge([*inbox_of(1), Echo(SESSION, 5, 2, 9, b"")])
    assert caught.value.blamed == {2}


@pytest.mark.requirement("MSG-04")
@given(st.permutations((1, 2, 3)), st.integers(0, 2))
def test_a_second_message_is_refused(senders: list[int], at: int) -> None:
    with pytest.raises(Replay) as caught:
        judge(inbox_of(*senders, senders[at]))
    assert caught.value.blamed == {senders[at]}


@pytest.mark.requirement("LSA-04", "LSA-12")
@pytest.mark.parametrize(("actual", "expected"), [(a, e) for a in range(4) for e in range(3)])
def test_steps_come_in_order_and_once(actual: int, expected: int) -> None:
    phases = ("one", "two", "three")
    state = (*phases, "done")[actual]
    if actual == expected:
        require_phase(phases, state, phases[expected])
        return
    with pytest.raises(Replay if actual > expected else WrongPhase) as caught:
        require_phase(phases, state, phases[expected])
    assert caught.value.blamed == frozenset()


@pytest.mark.requirement("SAG-32", "LSA-32", "LSA-33")
@pytest.mark.parametrize("users", [users for size in range(4) for users in product(range(3), repeat=size)], ids=str)
def test_users_are_refused_exactly_when_one_is_behind_a_larger_one(users: tuple[int, ...]) -> None:
    """A user that is named twice in a row is not refused here, but under another clause."""
    if list(users) == sorted(users):
        check_ascending("the users", users, (SERVER,))
        return
    with pytest.raises(Malformed, match=r"^the users .* must be in ascending order$") as caught:
        check_ascending("the users", users, (SERVER,))
    assert caught.value.blamed == {SERVER}
