"""The network, the schedule and the checks that every protocol shares, on a protocol of one question and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
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
    Endpoint,
    Inbox,
    Network,
    Outbox,
    PartyState,
    ProfileState,
    Randomness,
    Role,
    Step,
    Table,
    accept,
    check_ascending,
    check_dropouts,
    require_phase,
    row,
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


@dataclass(frozen=True)
class Counted(PartyState):
    """What a party has counted, and the step that it is ready for."""

    party: int
    count: int
    phases: ClassVar = ("greet", "listen")
    phase: str = "greet"

    @property
    def endpoint(self) -> Endpoint:
        """In the only session."""
        return Endpoint(SESSION, 0, self.party)


@row("greet", Role.USER, sends=(Hello,), randomness=("word", "again"))
def user_greet(state: Counted, word: UintArray, again: UintArray) -> tuple[Counted, Outbox]:
    """Send one number."""
    text = bytes([int(word[0]), int(again[0])])
    return replace(state, count=state.count + 1, phase="listen"), (Hello(*state.endpoint.header(SERVER), text),)


@row("greet", Role.SERVER, receives=(Hello,), sends=(Echo,), senders=lambda server: range(3))
def server_echo(state: Counted, inbox: Sequence[Hello]) -> tuple[Counted, Outbox]:
    """Answer everybody; refuse the number 13."""
    if any(message.text[0] == 13 for message in inbox):
        raise WrongPhase("13")
    echoes = tuple(Echo(*state.endpoint.header(message.sender), b"x") for message in inbox)
    return replace(state, count=len(inbox), phase="listen"), echoes


@row("listen", Role.USER, receives=(Echo,), one=True)
def user_listen(state: Counted, echo: Echo) -> tuple[Counted, Outbox]:
    """Keep what was heard."""
    return replace(state, count=100 + len(echo.text), phase="done"), ()


TABLE: Table = (user_greet, server_echo, user_listen)


def network(users: int = 3) -> Network:
    """A network whose users have their number as count."""
    return Network(TABLE, {SERVER: Counted(SERVER, 0), **{user: Counted(user, user) for user in range(users)}})


def words(users: int = 3, value: int = 7) -> dict[int, Randomness]:
    """Two sampled values for each user."""
    return {user: {"word": vector([value]), "again": vector([1])} for user in range(users)}


# ----------------------------------------------------------------------------------------------------- the network


@pytest.mark.requirement("ERR-01")
def test_a_run_takes_every_row_in_turn() -> None:
    run = network()
    run_synchronous(run, {}, words())
    assert {party: state.count for party, state in run.states.items()} == {SERVER: 3, 0: 101, 1: 101, 2: 101}
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
    run.take(TABLE[0], 0, words(value=13)[0])
    before = snapshot([run.states, run.waiting, len(run.transcript)])
    with pytest.raises(WrongPhase):
        run.take(TABLE[1], SERVER)
    with pytest.raises(ParameterError):
        run.take(TABLE[0], 0, {})
    assert snapshot([run.states, run.waiting, len(run.transcript)]) == before


@pytest.mark.requirement("ERR-02")
def test_a_party_is_an_integer_of_any_type_but_no_truth_value() -> None:
    run = network(2)
    assert type(run.take(TABLE[0], np.int64(1), words()[1]).party) is int  # type: ignore[arg-type]
    for wrong in (False, np.bool_(False), 0.0, np.timedelta64(0, "s")):
        with pytest.raises(UnknownUser, match="party"):
            run.take(TABLE[0], wrong, words()[0])  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-02")
def test_mail_for_other_rows_stays() -> None:
    run = network(1)
    run.states[0] = replace(run.states[0], phase="listen")
    run.waiting[0] = [Hello(SESSION, 0, 0, 0, b""), Echo(SESSION, 0, SERVER, 0, b"")]
    run.take(TABLE[2], 0)
    assert [type(message) for message in run.waiting[0]] == [Hello]
    assert run.states[0] == Counted(0, 100, phase="done")


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
@pytest.mark.parametrize("values", [{}, {"word": vector([1])}, {"word": vector([1]), "more": vector([2])}])
def test_a_run_refuses_missing_and_unknown_sampled_values(values: Randomness) -> None:
    run = network()
    with pytest.raises(ParameterError, match="randomness"):
        run_synchronous(run, {}, {**words(), 1: values})


# --------------------------------------------------------------------------------------------------- taking a step


GREETED = {user: Hello(SESSION, 0, user, SERVER, b"\7\1") for user in range(3)}
HEARD = Echo(SESSION, 0, SERVER, 1, b"x")


@pytest.mark.requirement("RND-04")
@given(st.permutations(["word", "again"]))
def test_a_body_takes_its_sampled_values_in_the_order_of_the_row(order: list[str]) -> None:
    sampled = {"word": vector([4]), "again": vector([5])}
    _, (hello,) = user_greet.take(Counted(1, 0), (), randomness={name: sampled[name] for name in order})
    assert isinstance(hello, Hello)
    assert hello.text == b"\4\5"
    assert (hello.sender, hello.receiver, hello.session, hello.round) == (1, SERVER, SESSION, 0)


@pytest.mark.requirement("RND-04", "ERR-01")
@pytest.mark.parametrize("step", TABLE, ids=lambda step: step.name)
@pytest.mark.parametrize("values", [{"word": vector([1])}, {**words()[0], "more": 1}, {"other": 1}])
def test_no_row_takes_other_sampled_values(step: Step[Any], values: Randomness) -> None:
    with pytest.raises(ParameterError, match="randomness"):
        step.take(Counted(1, 0, phase=step.phase), (), randomness=values)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(("step", "phase"), [(user_greet, "listen"), (user_greet, "done"), (user_listen, "done")])
def test_no_row_is_taken_twice(step: Step[Any], phase: str) -> None:
    sampled = words()[1] if step.randomness else {}
    with pytest.raises(Replay, match=step.phase):
        step.take(Counted(1, 0, phase=phase), (), randomness=sampled)


@pytest.mark.requirement("ERR-02")
def test_no_row_is_taken_too_early() -> None:
    with pytest.raises(WrongPhase, match="listen"):
        user_listen.take(Counted(1, 0), (HEARD,), randomness={})


@pytest.mark.requirement("MSG-03", "MSG-04")
@pytest.mark.parametrize(
    ("inbox", "error"),
    [
        ((), WrongPhase),
        ((HEARD, HEARD), Replay),
        ((replace(HEARD, sender=2),), InconsistentSets),
        ((replace(HEARD, receiver=2),), Malformed),
        ((replace(HEARD, round=1),), WrongPhase),
        ((replace(HEARD, session=b"other session id"),), WrongPhase),
        ((Hello(SESSION, 0, SERVER, 1, b""),), WrongPhase),
    ],
)
def test_a_row_of_one_message_takes_exactly_that(inbox: Inbox, error: type[Exception]) -> None:
    user = Counted(1, 0, phase="listen")
    with pytest.raises(error):
        user_listen.take(user, inbox, randomness={})
    assert user_listen.take(user, (HEARD,), randomness={})[0] == Counted(1, 101, phase="done")


@pytest.mark.requirement("MSG-03")
@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_row_of_one_message_takes_not_one_of_several(count: int) -> None:
    first: Step[Counted] = replace(server_echo, one=True, body=lambda state, hello: (state, (hello,)))
    inbox = tuple(GREETED.values())
    with pytest.raises(WrongPhase, match=f"one Hello is needed, and {count} messages"):
        first.take(Counted(SERVER, 0), inbox[:count], randomness={})
    assert first.take(Counted(SERVER, 0), inbox[1:2], randomness={})[1] == inbox[1:2]


@pytest.mark.requirement("ERR-02")
def test_a_row_that_receives_nothing_is_not_of_one_message() -> None:
    with pytest.raises(ParameterError, match="one"):
        replace(user_greet, one=True)


@pytest.mark.requirement("MSG-03")
@given(st.lists(st.integers(0, 5), unique=True))
def test_a_row_says_who_may_send(senders: list[int]) -> None:
    inbox = [Hello(SESSION, 0, sender, SERVER, b"\7\1") for sender in senders]
    if set(senders) <= {0, 1, 2}:
        state, echoes = server_echo.take(Counted(SERVER, 0), inbox, randomness={})
        assert (state.count, [echo.receiver for echo in echoes]) == (len(senders), senders)
    else:
        with pytest.raises(InconsistentSets):
            server_echo.take(Counted(SERVER, 0), inbox, randomness={})


@pytest.mark.requirement("MSG-03")
def test_a_row_that_receives_nothing_refuses_every_message() -> None:
    with pytest.raises(WrongPhase):
        user_greet.take(Counted(1, 0), (HEARD,), randomness=words()[1])


@dataclass(frozen=True)
class Outer(ProfileState):
    """The state of another profile, which begins later."""

    base: Counted
    late: bool = False
    phases: ClassVar = ("wait", "greet", "listen")

    @property
    def phase(self) -> str:
        """That of the base, once it began."""
        return self.base.phase if self.late else "wait"


@pytest.mark.requirement("ERR-01", "MSG-03")
def test_a_row_on_a_base_has_the_phases_of_its_own_profile_and_the_senders_of_the_base() -> None:
    step: Step[Outer] = server_echo.on_base()
    assert (step.name, step.phase, step.receives, step.sends) == ("server_echo", "greet", (Hello,), (Echo,))
    late = Outer(Counted(SERVER, 0), late=True)
    with pytest.raises(WrongPhase, match="wait"):
        step.take(replace(late, late=False), tuple(GREETED.values()), randomness={})
    with pytest.raises(InconsistentSets):
        step.take(late, (replace(GREETED[0], sender=3),), randomness={})
    after, echoes = step.take(late, tuple(GREETED.values()), randomness={})
    plain, expected = server_echo.take(late.base, tuple(GREETED.values()), randomness={})
    assert after == replace(late, base=plain)
    assert [encode(echo) for echo in echoes] == [encode(echo) for echo in expected]
    with pytest.raises(Replay):
        step.take(after, (), randomness={})


@pytest.mark.requirement("MSG-03")
def test_a_row_on_a_base_may_receive_from_fewer() -> None:
    step: Step[Outer] = server_echo.on_base(senders=lambda server: (1,))
    late = Outer(Counted(SERVER, 0), late=True)
    assert step.take(late, (GREETED[1],), randomness={})[0].base.count == 1
    with pytest.raises(InconsistentSets):
        step.take(late, (GREETED[0],), randomness={})


@pytest.mark.requirement("ERR-01")
def test_a_row_that_is_taken_otherwise_keeps_what_it_says() -> None:
    seen: list[int] = []

    def take(state: Counted, inbox: Inbox, *, randomness: Randomness) -> tuple[Counted, Outbox]:
        seen.append(len(inbox))
        return server_echo.take(state, inbox, randomness=randomness)

    step = server_echo.taken_by(take)
    assert step.take(Counted(SERVER, 0), (GREETED[2],), randomness={})[0].count == 1
    assert seen == [1]
    rows = [(each.phase, each.role, each.receives, each.sends, each.name) for each in (step, server_echo)]
    assert rows[0] == rows[1]


# -------------------------------------------------------------------------------------------------------- the checks


def inbox_of(*senders: int) -> list[Message]:
    """One message from each sender to user 9."""
    return [Hello(SESSION, 5, sender, 9, b"") for sender in senders]


def judge(inbox: Inbox) -> None:
    """What user 9 says of an inbox in which 1, 2 and 3 may speak."""
    accept(inbox, (Hello,), Endpoint(SESSION, 5, 9), (1, 2, 3))


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
