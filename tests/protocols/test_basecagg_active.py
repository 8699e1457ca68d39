"""BASecAgg's active profile: what is signed, what is refused, and that nobody answers for two buffers of one update."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import fields as fields_of
from secagg_spec.crypto.keys import public_key, sha256
from secagg_spec.crypto.sealing import OVERHEAD, Context, binding
from secagg_spec.crypto.signatures import sign, signed_fields, verify
from secagg_spec.errors import (
    BadSignature,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    WrongPhase,
)
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg.active import (
    PRESETS,
    TABLE,
    BufferQuorum,
    Parameters,
    SignedBuffer,
    ballot_of,
    proposal_of,
    run_schedule,
    sealing_context,
    with_signatures,
)
from secagg_spec.protocols.basecagg.round import BufferedSet, Entry
from secagg_spec.protocols.basecagg.runs import Recover, Start, Turn, Upload, draw_randomness
from secagg_spec.protocols.codec import Message, decode, encode
from secagg_spec.protocols.lightsecagg.active import roster_of_users
from secagg_spec.protocols.steps import SERVER, Role
from tests.protocols.buffered import KEYS, Scene, advanced, sessions
from tests.protocols.test_basecagg import FATES, PAGE, budgeted, check_costs, enough, killed, schedules
from tests.strategies import fewer, integers_of, snapshot, vector
from tests.test_text import FIELD_TYPES, code, own_fields, rows

TINY, DEFAULT = PRESETS["tiny"], PRESETS["default"]
SESSION, USERS = bytes(16), range(5)
SECTION = PAGE.split("\n## 11. The active profile")[1]
ROSTER = roster_of_users(5, {user: KEYS[user] for user in USERS})
VERIFICATION = ROSTER.verification


@cache
def announced() -> Scene:
    """A scene at tiny whose buffer of users 0, 1 and 2 is announced; it is not to be changed."""
    scene = Scene(TINY)
    scene.fill()
    return scene


def fresh() -> Scene:
    """A copy of that scene."""
    old = announced().network
    network = replace(old, states=dict(old.states), transcript=list(old.transcript))
    network.waiting = {party: list(box) for party, box in old.waiting.items()}
    scene = Scene(TINY, network=network)
    scene.updates = dict(announced().updates)
    return scene


def received(now: int, entries: Sequence[Entry], user: int) -> BufferedSet:
    """An announcement to a user."""
    columns = [vector([getattr(entry, name) for entry in entries]) for name in ("stamp", "weight")]
    return BufferedSet(SESSION, now, SERVER, user, tuple(e.user for e in entries), columns[0], columns[1])


def signature(user: int, now: int, entries: Sequence[Entry], signing: int | None = None) -> bytes:
    """What a user signs, from the text: every field by hand."""
    names = [
        "q",
        "N",
        "D",
        "U",
        "T",
        "d",
        "K",
        "c_l",
        "c_g",
        "tau_max",
        "kind",
        "numerator",
        "denominator",
        "start",
        "W",
    ]
    numbers = dict(zip(names, (19, 5, 1, 3, 1, 3, 3, 1, 3, 2, 1, 1, 1, 0, 4), strict=True))
    listed = fields_of(*(part for user in USERS for part in (user, public_key(KEYS[user].sealing))))
    bound = sha256(fields_of(*(part for name, n in numbers.items() for part in (name, str(n))), "keys", sha256(listed)))
    context = Context("basecagg-active", bound, SESSION, now, 775)
    content = [
        b"".join(getattr(e, name).to_bytes(4, "little") for e in entries) for name in ("user", "stamp", "weight")
    ]
    private = KEYS[user if signing is None else signing].signing
    return sign(private, signed_fields(context, "buffered-set", user, content))


def quorum(user: int, now: int, entries: Sequence[Entry], signers: Sequence[int]) -> BufferQuorum:
    """A quorum for a user."""
    together = b"".join(signature(signer, now, entries) for signer in signers)
    return BufferQuorum(SESSION, now, SERVER, user, tuple(signers), together)


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.requirement("BSA-37")
def test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user() -> None:
    base = replace(basecagg.PRESETS["tiny"], c_g=1, tau_max=0)
    for N, D, U, T, W in product(range(3, 8), range(4), range(2, 5), range(1, 4), range(9)):
        try:
            semi = replace(base, N=N, D=D, U=U, T=T, K=T + 2)
        except ParameterError:
            continue
        if 2 * W > N + T and U <= W <= N - D:
            assert with_signatures(semi, W).W == W
        else:
            with pytest.raises(ParameterError, match="W"):
                with_signatures(semi, W)


@pytest.mark.requirement("BSA-38", "BSA-45")
def test_a_user_signs_exactly_the_buffer_that_it_accepted() -> None:
    scene = fresh()
    entries = scene.server.entries
    for user in USERS:
        (message,) = scene.take("confirm", user).sent
        assert isinstance(message, SignedBuffer)
        assert (message.round, message.sender, message.receiver) == (0, user, SERVER)
        assert message.signature == signature(user, 0, entries)


@pytest.mark.requirement("BSA-38", "BSA-41", "BSA-45")
@pytest.mark.parametrize("field", ["session", "round", "user", "stamp", "weight", "signer", "profile", "W", "q"])
def test_a_signature_counts_for_nothing_else(field: str) -> None:
    entries = announced().server.entries
    right = signature(0, 0, entries)
    ballot = ballot_of(TINY, SESSION, 0, ROSTER)
    others: dict[str, tuple[Any, Sequence[Entry], int]] = {
        "session": (ballot_of(TINY, bytes(15) + b"\1", 0, ROSTER), entries, 0),
        "round": (ballot_of(TINY, SESSION, 1, ROSTER), entries, 0),
        "user": (ballot, (*entries[:2], replace(entries[2], user=3)), 0),
        "stamp": (ballot, (*entries[:2], replace(entries[2], stamp=1)), 0),
        "weight": (ballot, (*entries[:2], replace(entries[2], weight=2)), 0),
        "signer": (ballot, entries, 1),
        "profile": (replace(ballot, context=replace(ballot.context, protocol="basecagg")), entries, 0),
        "W": (ballot_of(replace(TINY, D=0, W=5), SESSION, 0, ROSTER), entries, 0),
        "q": (ballot_of(replace(TINY, q=23), SESSION, 0, ROSTER), entries, 0),
    }
    ballot_, entries_, signer = others[field]
    with pytest.raises(BadSignature):
        check(ballot_, entries_, signer, right)
    check(ballot, entries, 0, right)


def check(ballot: Any, entries: Sequence[Entry], user: int, given_: bytes) -> None:
    """Verify a signature with the fields of the reference."""
    content = proposal_of(TINY, entries).content()
    verify(VERIFICATION.keys[user], signed_fields(ballot.context, ballot.purpose, user, content), given_)


@pytest.mark.requirement("BSA-45")
def test_seals_are_bound_to_the_profile_and_to_W() -> None:
    sealing, session = ROSTER.sealing, SESSION
    contexts = [sealing_context(TINY, session, sealing), sealing_context(replace(TINY, D=0, W=5), session, sealing)]
    contexts += [sealing_context(replace(TINY, D=0), session, sealing), basecagg.sealing_context(TINY, session)]
    contexts += [basecagg.sealing_context(basecagg.PRESETS["tiny"], SESSION)]
    assert [context.protocol for context in contexts] == ["basecagg-active"] * 3 + ["basecagg"] * 2
    assert len({binding(context, 0, 1, bytes(32), bytes(32)) for context in contexts}) == 5
    names = list(TINY.numbers())
    assert names == [*basecagg.PRESETS["tiny"].numbers(), "W"]


def begun(fresh: Sequence[int] = ()) -> Scene:
    """The session of `announced`, begun anew with the same signing keys; some users have other sealing keys."""
    keys = {user: replace(KEYS[user], sealing=bytes([user + 201]) * 32) if user in fresh else KEYS[user]
            for user in USERS}  # fmt: skip
    scene = Scene(TINY, network=basecagg_active.open_session(TINY, keys=keys, session=bytes(16), round=0))
    scene.fill()
    return scene


FRESH = [(0,), (3,), (1, 4), tuple(USERS)]


@pytest.mark.requirement("BSA-47", "BSA-43", "BSA-44", "BSA-41")
@pytest.mark.parametrize("fresh", FRESH)
def test_signatures_of_an_attempt_are_worth_nothing_in_the_next(fresh: Sequence[int]) -> None:
    first, second = begun(), begun(fresh)
    for scene in (first, second):
        for user in USERS:
            scene.take("confirm", user)
    old: dict[int, Any] = {message.sender: message for message in first.mail("confirm", SERVER)}
    new: dict[int, Any] = {message.sender: message for message in second.mail("confirm", SERVER)}
    for some_old in ((1,), tuple(USERS)):
        mixed = [(old if user in some_old else new)[user] for user in USERS]
        with pytest.raises(BadSignature) as failed:
            basecagg_active.server_confirm.take(second.network.states[SERVER], mixed, randomness={})
        assert failed.value.blamed == {some_old[0]}
        together = b"".join(message.signature for message in mixed)
        shown = BufferQuorum(SESSION, 0, SERVER, 0, tuple(USERS), together)
        with pytest.raises(BadSignature) as failed:
            basecagg_active.user_recover.take(second.network.states[0], (shown,), randomness={})
        assert failed.value.blamed == {SERVER}
    together = b"".join(new[user].signature for user in USERS)
    shown = BufferQuorum(SESSION, 0, SERVER, 0, tuple(USERS), together)
    assert basecagg_active.user_recover.take(second.network.states[0], (shown,), randomness={})[1]


@pytest.mark.requirement("BSA-47", "SEA-02")
@pytest.mark.parametrize("fresh", FRESH)
def test_payloads_of_an_attempt_do_not_open_in_the_next(fresh: Sequence[int]) -> None:
    first, second = begun(), begun(fresh)
    for user, other in permutations(USERS, 2):
        one, two = (scene.network.states[user].base.channel for scene in (first, second))
        back, again = (scene.network.states[other].base.channel for scene in (first, second))
        payload = one.close(7, user, other, b"a share")
        assert back.open(7, user, other, payload) == b"a share"
        with pytest.raises(DecryptionFailed):
            again.open(7, user, other, payload)
        with pytest.raises(DecryptionFailed):
            back.open(7, user, other, two.close(7, user, other, b"a share"))


# --------------------------------------------------------------------------------------------------------- confirm

OFFERS: tuple[tuple[int, tuple[Entry, ...]], ...] = tuple(
    (now, tuple(Entry(user, 0, weight) for user in users))
    for now, weight, users in (
        (0, 3, (0, 1, 2)), (0, 3, (0, 1, 3)), (1, 1, (0, 1, 2)), (1, 2, (0, 1, 2)), (1, 1, (2, 3, 4)),
        (2, 1, (0, 3, 4)), (2, 1, (0, 1, 2)), (1, 2, (1, 2, 3)),
    )
)  # fmt: skip
"""Buffers that a server may tell a user that holds the shares of all under stamp 0."""


@cache
def holding() -> dict[int, Any]:
    """The users at tiny when all hold the shares of all under stamp 0."""
    scene = Scene(TINY)
    scene.start(*USERS)
    for user in USERS:
        scene.take("abandon", user)
    return scene.network.states


@pytest.mark.requirement("BSA-39", "BSA-28")
@given(st.lists(st.integers(0, len(OFFERS) - 1), min_size=1, max_size=6))
def test_a_user_signs_once_in_a_round_and_once_for_an_update(offered: list[int]) -> None:
    state, last, dropped = holding()[4], -1, set[int]()
    for at in offered:
        now, entries = OFFERS[at]
        inbox, users = [received(now, entries, 4)], {entry.user for entry in entries}
        if now <= last or users & dropped:
            with pytest.raises(Replay if now <= last else InconsistentSets) as caught:
                basecagg_active.user_confirm.take(state, inbox, randomness={})
            assert not caught.value.blamed
            continue
        state, (message,) = basecagg_active.user_confirm.take(state, inbox, randomness={})
        assert message.signature == signature(4, now, entries)  # type: ignore[attr-defined]
        assert state.pending is not None
        assert state.pending.answer.round == now
        last, dropped = now, dropped | users
        assert set(state.base.held) == set(USERS) - dropped


@pytest.mark.requirement("BSA-39")
def test_a_buffer_that_cannot_be_right_is_not_signed() -> None:
    scene = fresh()
    message: Any = scene.mail("confirm", 4)[0]
    for change in (
        {"weights": vector([1, 0, 0])}, {"weights": vector([3, 3, 2])}, {"users": (0, 1, 1)}, {"users": (0, 1, 9)},
        {"users": (0, 1), "stamps": vector([0, 0]), "weights": vector([3, 3])}, {"stamps": vector([0, 0, 1])},
    ):  # fmt: skip
        scene.refused("confirm", 4, InconsistentSets, [replace(message, **change)], [SERVER])
    scene.refused("confirm", 4, WrongPhase, [])
    scene.refused("confirm", 4, WrongPhase, [quorum(4, 0, scene.server.entries, (0, 1, 2, 3))])


@pytest.mark.requirement("BSA-40", "BSA-42")
@pytest.mark.parametrize("name", ["tiny", "default"])
def test_the_server_goes_on_with_exactly_W_signatures(name: str) -> None:
    scene, p = Scene(PRESETS[name]), PRESETS[name]
    scene.refused("confirm", SERVER, WrongPhase, [], [])
    scene.fill()
    scene.refused("recover", SERVER, WrongPhase, [], [])
    for user in reversed(range(p.N)):
        signed = len(scene.mail("confirm", SERVER))
        if signed < p.W:
            scene.refused("confirm", SERVER, TooFewSurvivors, blamed=[])
        scene.take("confirm", user)
    messages = scene.mail("confirm", SERVER)
    event = scene.take("confirm", SERVER)
    assert [message.receiver for message in event.sent] == list(range(p.N))
    together = b"".join(m.signature for m in sorted(messages, key=_sender) if isinstance(m, SignedBuffer))
    for message in event.sent:
        assert isinstance(message, BufferQuorum)
        assert (message.signers, message.signatures) == (tuple(range(p.N)), together)
    scene.refused("confirm", SERVER, WrongPhase, [], [])


def _sender(message: Message) -> int:
    return message.sender


@pytest.mark.requirement("BSA-40", "BSA-42")
def test_only_signers_hear_of_the_quorum() -> None:
    scene = fresh()
    for user in (4, 2, 0, 1):
        scene.take("confirm", user)
    sent = scene.take("confirm", SERVER).sent
    assert [message.receiver for message in sent] == [0, 1, 2, 4]
    assert all(isinstance(message, BufferQuorum) and message.signers == (0, 1, 2, 4) for message in sent)


@pytest.mark.requirement("BSA-41")
@pytest.mark.parametrize("wrong", ["bit", "other signer", "other weights", "other round", "short", "long", "empty"])
def test_a_wrong_signature_is_its_senders_fault_at_the_server(wrong: str) -> None:
    scene = fresh()
    for user in USERS:
        scene.take("confirm", user)
    inbox: list[Any] = list(scene.mail("confirm", SERVER))
    entries, right = scene.server.entries, inbox[2].signature
    spoiled = {
        "bit": right[:5] + bytes([right[5] ^ 1]) + right[6:],
        "other signer": signature(2, 0, entries, signing=3),
        "other weights": signature(2, 0, [replace(e, weight=2) for e in entries]),
        "other round": signature(2, 1, entries),
        "short": right[:-1],
        "long": right + b"\0",
        "empty": b"",
    }[wrong]
    inbox[2] = replace(inbox[2], signature=spoiled)
    scene.refused("confirm", SERVER, BadSignature, inbox, [2])


# --------------------------------------------------------------------------------------------------------- recover


@cache
def confirmed() -> Any:
    """User 4, who signed the buffer of users 0, 1 and 2."""
    return basecagg_active.user_confirm.take(holding()[4], [received(*OFFERS[0], 4)], randomness={})[0]


@pytest.mark.requirement("BSA-43", "BSA-44", "BSA-50")
@given(
    st.sets(st.sampled_from(USERS), min_size=4).map(sorted)
    | st.permutations(USERS).map(lambda order: order[1:])
    | st.permutations(USERS)
    | st.lists(st.sampled_from((*USERS, 5, 6, SERVER)), max_size=6)
)
def test_a_share_is_released_exactly_after_W_signatures_of_users(signers: list[int]) -> None:
    state, (now, entries) = confirmed(), OFFERS[0]
    together = b"".join(signature(user % 10, now, entries) for user in signers)
    inbox = [BufferQuorum(SESSION, now, SERVER, 4, tuple(signers), together)]
    distinct = len(set(signers)) == len(signers) and set(signers) <= set(USERS)
    if distinct and signers != sorted(signers):
        with pytest.raises(Malformed) as disorder:
            basecagg_active.user_recover.take(state, inbox, randomness={})
        assert disorder.value.blamed == {SERVER}
        return
    if distinct and len(signers) >= 4:
        after, (answer,) = basecagg_active.user_recover.take(state, inbox, randomness={})
        assert after.pending is None
        assert answer is state.pending.answer
        with pytest.raises(Replay):
            basecagg_active.user_recover.take(after, inbox, randomness={})
        return
    with pytest.raises(TooFewSurvivors if distinct else InconsistentSets) as caught:
        basecagg_active.user_recover.take(state, inbox, randomness={})
    assert caught.value.blamed == (frozenset() if distinct else {SERVER})


@pytest.mark.requirement("BSA-43", "BSA-44")
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("wrong", ["bit", "other buffer", "other round", "other signer"])
def test_a_quorum_counts_exactly_for_the_buffer_that_was_signed(at: int, wrong: str) -> None:
    state, (now, entries) = confirmed(), OFFERS[0]
    parts = [signature(user, now, entries) for user in range(4)]
    parts[at] = {
        "bit": bytes([parts[at][0] ^ 1]) + parts[at][1:],
        "other buffer": signature(at, now, OFFERS[1][1]),
        "other round": signature(at, 1, entries),
        "other signer": signature(at, now, entries, signing=4),
    }[wrong]
    inbox = [BufferQuorum(SESSION, now, SERVER, 4, (0, 1, 2, 3), b"".join(parts))]
    with pytest.raises(BadSignature) as caught:
        basecagg_active.user_recover.take(state, inbox, randomness={})
    assert caught.value.blamed == {SERVER}
    for size in (-1, 1):
        together = b"".join(signature(user, now, entries) for user in range(4))
        cut = together[:size] if size < 0 else together + b"\0"
        with pytest.raises(Malformed):
            basecagg_active.user_recover.take(state, [replace(inbox[0], signatures=cut)], randomness={})


@pytest.mark.requirement("BSA-43", "BSA-39")
def test_a_quorum_is_for_the_buffer_that_was_signed_last() -> None:
    state, first, second = holding()[4], OFFERS[0], (1, tuple(Entry(user, 1, 3) for user in (0, 1, 2)))
    with pytest.raises(WrongPhase):
        basecagg_active.user_recover.take(state, [quorum(4, 0, first[1], (0, 1, 2, 3))], randomness={})
    with pytest.raises(WrongPhase):
        basecagg_active.user_recover.take(state, [], randomness={})
    state, _ = basecagg_active.user_confirm.take(state, [received(*first, 4)], randomness={})
    held = {user: basecagg.Held(1, vector([user, 1])) for user in (0, 1, 2)}
    state = replace(state, base=replace(state.base, held=held))
    state, _ = basecagg_active.user_confirm.take(state, [received(*second, 4)], randomness={})
    with pytest.raises(WrongPhase):
        basecagg_active.user_recover.take(state, [quorum(4, 0, first[1], (0, 1, 2, 3))], randomness={})
    _, (answer,) = basecagg_active.user_recover.take(state, [quorum(4, 1, second[1], (0, 1, 2, 3))], randomness={})
    assert integers_of(answer.share) == [9, 9]  # type: ignore[attr-defined]


@pytest.mark.requirement("BSA-46")
def test_only_signers_may_answer() -> None:
    scene = fresh()
    for user in range(4):
        scene.take("confirm", user)
    scene.take("confirm", SERVER)
    for user in range(4):
        scene.take("recover", user)
    answers: list[Any] = list(scene.mail("recover", SERVER))
    scene.refused("recover", SERVER, InconsistentSets, [*answers, replace(answers[0], sender=4)], [4])
    entries = scene.server.entries
    scene.take("recover", SERVER)
    assert integers_of(scene.server.recovered.sum) == scene.plain_sum(entries)
    assert not scene.network.states[SERVER].signers


@pytest.mark.requirement("BSA-46")
def test_an_answer_outside_a_recovery_is_out_of_phase_and_blames_no_signer() -> None:
    scene = fresh()
    for user in range(4):
        scene.take("confirm", user)
    before = scene.network.states[SERVER]
    scene.take("confirm", SERVER)
    for user in range(4):
        scene.take("recover", user)
    answers = list(scene.mail("recover", SERVER))
    scene.take("recover", SERVER)
    again = [replace(answer, round=1) for answer in answers]
    for state, inbox in ((before, answers), (scene.network.states[SERVER], again)):
        with pytest.raises(WrongPhase, match="recovers nothing") as caught:
            basecagg_active.server_recover.take(state, inbox, randomness={})
        assert not caught.value.blamed


# ------------------------------------------------------------------------------------------- a server that deviates


class LyingServer:
    """A server, and user 0, that tell users of buffers and show them signatures as they like."""

    def __init__(self) -> None:
        self.states = dict(holding())
        self.seen: dict[tuple[int, int], bytes] = {(0, at): signature(0, *offer) for at, offer in enumerate(OFFERS)}
        self.released: set[tuple[int, int]] = set()

    def tell(self, user: int, at: int) -> None:
        """Tell a user of a buffer, and keep what it signs."""
        try:
            self.states[user], (message,) = basecagg_active.user_confirm.take(
                self.states[user], [received(*OFFERS[at], user)], randomness={}
            )
        except ProtocolError:
            return
        self.seen[user, at] = message.signature  # type: ignore[attr-defined]

    def show(self, user: int, at: int, quorum_: Sequence[int], claimed: Sequence[tuple[int, int]]) -> None:
        """Show a user a quorum for a buffer, made of signatures that were seen, for this buffer or another one."""
        together = b"".join(self.seen.get(entry, bytes(64)) for entry in claimed)
        message = BufferQuorum(SESSION, OFFERS[at][0], SERVER, user, tuple(quorum_), together)
        last = self.states[user].pending
        try:
            self.states[user], _ = basecagg_active.user_recover.take(self.states[user], [message], randomness={})
        except ProtocolError:
            return
        signed = (last.answer.round, last.proposal.content())
        [meant] = [i for i, (now, e) in enumerate(OFFERS) if (now, proposal_of(TINY, e).content()) == signed]
        self.released.add((user, meant))

    def everything(self) -> None:
        """Show every user every quorum that there is."""
        for user, at in product(USERS[1:], range(len(OFFERS))):
            valid = [j for j in USERS if (j, at) in self.seen]
            self.show(user, at, valid, [(j, at) for j in valid])
            self.show(user, at, (valid * 4)[:4], [(j, at) for j in (valid * 4)[:4]])
            self.show(user, at, USERS, [(j, at) for j in USERS])

    def buffers(self) -> set[int]:
        """For which buffers honest users answered."""
        return {at for _, at in self.released}


def disjoint(buffers: set[int]) -> bool:
    """Whether no two of some buffers hold one update."""
    users = [{entry.user for entry in OFFERS[at][1]} for at in buffers]
    return all(not a & b for a, b in combinations(users, 2))


@pytest.mark.requirement("BSA-37", "BSA-39", "BSA-43", "BSA-44", "BSA-28")
@given(st.data())
def test_whatever_a_server_tells_and_shows_no_update_is_in_two_answered_buffers(data: st.DataObject) -> None:
    server, user, at = LyingServer(), st.sampled_from(USERS[1:]), st.integers(0, len(OFFERS) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        for one, offer in data.draw(st.lists(st.tuples(user, at), min_size=2, max_size=6)):
            server.tell(one, offer)
        for one, offer in data.draw(st.lists(st.tuples(user, at), max_size=3)):
            claimed = data.draw(st.lists(st.tuples(st.sampled_from(USERS), at), max_size=5))
            server.show(one, offer, [j for j, _ in claimed], claimed)
        server.everything()
    assert disjoint(server.buffers())


def test_a_server_that_tells_the_truth_is_answered() -> None:
    server = LyingServer()
    for user in USERS[1:]:
        server.tell(user, 0)
    server.everything()
    assert server.released == {(user, 0) for user in USERS[1:]}


@pytest.mark.slow
@pytest.mark.requirement("BSA-37", "BSA-39")
@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (2, 3), (0, 5), (2, 6)])
def test_no_split_of_the_users_gives_two_answered_buffers(first: int, second: int) -> None:
    for size in range(5):
        for some in combinations(USERS[1:], size):
            for again in (False, True):
                server = LyingServer()
                for user in USERS[1:]:
                    server.tell(user, first if user in some else second)
                server.everything()
                for user in USERS[1:] if again else ():
                    server.tell(user, second if user in some else first)
                server.everything()
                assert disjoint(server.buffers())


# -------------------------------------------------------------------------------------------------- whole schedules


@pytest.mark.requirement("BSA-34", "BSA-40")
@pytest.mark.parametrize("late", [(), (1,), (1, 3)])
def test_a_buffer_is_recovered_exactly_when_W_users_sign(late: tuple[int, ...]) -> None:
    scene = fresh()
    for user in USERS:
        if user not in late:
            scene.take("confirm", user)
    if len(late) > 1:
        scene.refused("confirm", SERVER, TooFewSurvivors, blamed=[])
        return
    scene.take("confirm", SERVER)
    for user in set(USERS) - set(late):
        scene.take("recover", user)
    entries = scene.server.entries
    scene.take("recover", SERVER)
    assert integers_of(scene.server.recovered.sum) == scene.plain_sum(entries)
    assert enough(FATES[:1] * 5)


@pytest.mark.requirement("BSA-29", "BSA-35", "BSA-45")
@fewer(4)
@given(st.data())
def test_schedules_give_the_weighted_sum_of_every_buffer_also_from_a_restored_server(data: st.DataObject) -> None:
    semi = data.draw(sessions().filter(_can_sign))
    p = with_signatures(semi, W=max((semi.N + semi.T) // 2 + 1, semi.U))
    turns = [
        Recover(tuple(range(p.N))) if isinstance(turn, Recover) else turn for turn in data.draw(schedules(p, buffers=2))
    ]
    updates = budgeted(p, sum(isinstance(turn, Upload) for turn in turns), 3)
    keys = {user: KEYS[user] for user in range(p.N)}
    randomness = draw_randomness(p, SeededSource(b"s", "active"), turns)
    plain = run_schedule(p, updates, turns, randomness=randomness, keys=keys, session=bytes(16), round=0)
    queue = iter(updates)
    waiting: dict[int, Any] = {}
    for buffer in plain.buffers:
        while len(waiting) < p.K:
            turn = turns.pop(0)
            if isinstance(turn, Upload):
                waiting[turn.user] = next(queue)
        columns = zip(*([e.weight * int(v) for v in waiting[e.user]] for e in buffer.entries), strict=True)
        assert integers_of(buffer.sum) == [sum(column) % p.q for column in columns]
        waiting = {}


def _can_sign(p: basecagg.Parameters) -> bool:
    return (p.N + p.T) // 2 + 1 <= p.N - p.D


@pytest.mark.requirement("BSA-35")
def test_a_server_that_is_killed_and_restored_at_every_step_goes_on() -> None:
    turns: list[Turn] = [*map(Start, range(3)), *map(Upload, range(3)), Recover((0, 1, 2, 3))]
    turns += [*map(Start, (1, 2, 4)), *map(Upload, (4, 2, 1)), Recover((1, 2, 3, 4))]
    randomness = draw_randomness(TINY, SeededSource(b"s", "restored"), turns)
    keys = {user: KEYS[user] for user in USERS}
    plain = run_schedule(
        TINY, budgeted(TINY, 6, 1), turns, randomness=randomness, keys=keys, session=bytes(16), round=0
    )
    back = restoring(plain)
    restored_table = tuple(s.taken_by(back(s.take)) if s.role is Role.SERVER else s for s in TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secagg_spec.protocols.basecagg.active.TABLE", restored_table)
        again = run_schedule(
            TINY, budgeted(TINY, 6, 1), turns, randomness=randomness, keys=keys, session=bytes(16), round=0
        )
    sent = [[encode(m) for e in result.transcript for m in e.sent] for result in (plain, again)]
    assert sent[0] == sent[1]
    assert snapshot([*plain.buffers]) == snapshot([*again.buffers])
    assert len(plain.buffers) == 2


def restoring(result: Any) -> Any:
    """What makes a step of a server store its state after it, and come back before the next."""
    roster = next(e.state.roster for e in result.transcript if e.party == SERVER)

    def restored(state: Any) -> Any:
        return basecagg_active.restore(json.loads(json.dumps(basecagg_active.store(state))), roster)

    return lambda run: killed(run, restored)


@pytest.mark.requirement("BSA-35")
def test_spoiled_states_are_refused() -> None:
    scene = fresh()
    for user in USERS:
        scene.take("confirm", user)
    scene.take("confirm", SERVER)
    stored = basecagg_active.store(scene.network.states[SERVER])
    back = basecagg_active.restore(stored, ROSTER)
    assert snapshot(back) == snapshot(scene.network.states[SERVER])
    semi = {name: value for name, value in stored["base"]["parameters"].items() if name != "W"}
    spoiled: tuple[dict[str, Any], ...] = (
        {}, {"base": stored["base"]}, {**stored, "signers": [0, 0, 1, 2]}, {**stored, "signers": [0, 1, 2]},
        {**stored, "signers": [0, 1, 2, 5]}, {**stored, "signers": stored["signers"][::-1]},
        {**stored, "signers": tuple(stored["signers"])}, {**stored, "signers": None}, {**stored, "base": None},
        {**stored, "base": {**stored["base"], "parameters": semi}},
        {**stored, "base": {**stored["base"], "entries": []}},
    )  # fmt: skip
    for bad in spoiled:
        with pytest.raises(ParameterError):
            basecagg_active.restore(bad, ROSTER)
    with pytest.raises(LengthMismatch):
        basecagg_active.restore(stored, roster_of_users(4, {user: KEYS[user] for user in range(4)}))


# ------------------------------------------------------------------------------------------------------- the text


@pytest.mark.requirement("MSG-01", "BSA-42")
def test_the_tables_of_the_page_are_those_of_the_reference() -> None:
    stated = [(code(a)[0], b, code(c), code(d)) for a, b, c, d in rows(SECTION, "phase", "role")]
    own = [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
        if step.phase in ("confirm", "recover")
    ]
    assert stated == own[:3]
    before = {(step.phase, step.role): step for step in basecagg.TABLE}
    for step in TABLE:
        if (step.phase, step.role) in before and (step.phase, step.role) != ("recover", Role.USER):
            same = before[step.phase, step.role]
            assert (step.receives, step.sends, step.randomness) == (same.receives, same.sends, same.randomness)
    kinds: tuple[type[Message], ...] = (SignedBuffer, BufferQuorum)
    for (name, number, _, described), kind in zip(rows(SECTION, "message", "type"), kinds, strict=True):
        assert (code(name)[0], int(number)) == (kind.__name__, kind.TYPE)
        pairs = code(described)
        assert own_fields(kind) == {a: FIELD_TYPES[b] for a, b in zip(pairs[::2], pairs[1::2], strict=True)}
    for column, preset in enumerate(PRESETS, start=2):
        assert {row[0]: int(row[column]) for row in rows(SECTION, "symbol", "meaning", *PRESETS)} == {
            "W": PRESETS[preset].W
        }
        semi = basecagg.PRESETS[preset]
        assert all(getattr(semi, f.name) == getattr(PRESETS[preset], f.name) for f in fields(semi))


@pytest.mark.requirement("MSG-01", "BSA-42")
@pytest.mark.parametrize("name", PRESETS)
def test_the_costs_of_the_text_are_those_of_a_session(name: str) -> None:
    scene = Scene(PRESETS[name])
    scene.fill()
    scene.recover()
    check_costs(scene, OVERHEAD, PRESETS[name].N)
    assert {(e.step.phase, e.party == SERVER) for e in scene.network.transcript} >= {("confirm", True)}


def test_every_clause_of_this_profile_has_a_mutant() -> None:
    ours = {name for name in resources.clauses() if name.startswith("BSA") and name >= "BSA-37"}
    assert ours <= {clause for mutant in mutants.load().values() for clause in mutant.clauses}


@pytest.mark.requirement("MSG-01", "MSG-02")
def test_messages_survive_their_bytes() -> None:
    scene = fresh()
    scene.recover()
    numbers = set()
    for event in scene.network.transcript:
        for message in event.sent:
            assert encode(decode(type(message), encode(message))) == encode(message)
            numbers.add(message.TYPE)
    assert sorted(numbers) == list(range(769, 777))


@pytest.mark.requirement("BSA-37")
def test_keys_of_another_user_are_refused() -> None:
    keys = {user: KEYS[user] for user in USERS}
    roster = roster_of_users(5, keys)
    with pytest.raises(ParameterError, match="keys"):
        basecagg_active.user_start(TINY, SESSION, 0, 0, KEYS[1], roster)
    with pytest.raises(LengthMismatch):
        basecagg_active.server_start(TINY, SESSION, 0, roster_of_users(4, {user: KEYS[user] for user in range(4)}))
    assert isinstance(TINY, Parameters)


@pytest.mark.requirement("BSA-12", "BSA-35")
def test_the_server_of_this_profile_has_a_round_and_a_phase() -> None:
    scene = Scene(TINY)
    assert (scene.network.states[SERVER].phase, scene.network.states[SERVER].round) == ("filling", 0)
    assert advanced(scene.network.states[SERVER]).round == 1
    scene.fill()
    assert scene.network.states[SERVER].phase == "confirming"
    scene.answer(USERS)
    assert scene.network.states[SERVER].phase == "recovering"
    scene.take("recover", SERVER)
    assert (scene.network.states[SERVER].phase, scene.network.states[SERVER].round) == ("filling", 1)
