"""BASecAgg: what users and the server refuse, what is recovered, and what it costs."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, is_prime
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights, floor_weight, realised_weight
from secagg_spec.crypto.channels import PlainStampedChannel
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.sealing import OVERHEAD, Context
from secagg_spec.errors import (
    BadShare,
    DecryptionFailed,
    DuplicateUser,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    NonCanonical,
    OutOfRange,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    UnknownUser,
    WrongPhase,
)
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.basecagg.round import (
    PRESETS,
    TABLE,
    BufferedSet,
    Entry,
    Held,
    ModelRequest,
    ModelStamp,
    Parameters,
    StampedShare,
    StampedUpdate,
    WeightedShare,
    combine_shares,
    encode_update,
    mask_update,
    recover,
    sealing_context,
    user_trained,
    weigh,
)
from secagg_spec.protocols.basecagg.runs import (
    Abandon,
    Play,
    Recover,
    Start,
    Turn,
    Upload,
    draw_randomness,
    open_session,
    run_schedule,
    sealed_channels,
    supplies,
)
from secagg_spec.protocols.buffers import average, check_levels, check_update
from secagg_spec.protocols.codec import Message, encode, vector_bytes
from secagg_spec.protocols.steps import SERVER, Role, sizes
from tests.protocols.buffered import Scene, advanced, aged, altered, sessions, signed
from tests.protocols.test_lightsecagg import evaluated
from tests.strategies import arrays, elements, fewer, integers_of, primes, pseudorandom, snapshot, subsets, vector
from tests.test_text import FIELD_TYPES, code, own_fields, page, rows

TINY, DEFAULT = PRESETS["tiny"], PRESETS["default"]
SESSION = bytes(16)
PAGE = page("basecagg.md")
draws = st.integers(0, 2**53 - 1).map(lambda numerator: numerator * 2.0**-53)


# ------------------------------------------------------------------------------------------------------ parameters


def taken(**changed: Any) -> bool:
    """Whether tiny is taken with some numbers changed."""
    try:
        replace(TINY, **changed)
    except ParameterError:
        return False
    return True


@pytest.mark.requirement("BSA-01")
@pytest.mark.parametrize("q", [18, 19, 31])
def test_parameters_are_taken_exactly_inside_the_bounds(q: int) -> None:
    for N, D, U, T, K in product(range(2, 8), range(-1, 3), range(5), range(-1, 4), range(7)):
        allowed = T >= 1 and U > T and D >= 0 and N - D >= U and T + 2 <= K <= N and is_prime(q) and (q - 1) // 2 >= K
        assert taken(q=q, N=N, D=D, U=U, T=T, K=K, c_g=1, tau_max=0) == allowed
    assert not taken(q=5, c_g=1, tau_max=0)
    assert taken(q=7, c_g=1, tau_max=0)
    assert not taken(q=2**32 + 15)
    assert [taken(d=d) for d in (-1, 0, 1)] == [False, False, True]
    constant = Staleness.constant()
    assert [taken(tau_max=t, staleness=constant) for t in (-1, 0, 2**31 - 1, 2**31)] == [False, True, True, False]


@pytest.mark.requirement("BSA-02")
@pytest.mark.parametrize("s", [Staleness.polynomial(1), Staleness.hinge(2, 1)])
def test_levels_are_taken_exactly_when_no_weight_vanishes_and_one_unit_fits(s: Staleness) -> None:
    for c_g, tau, q in product(range(-1, 10), range(6), (19, 23, 37, 53)):
        old = Fraction(1, 1 + tau) if s.kind == "polynomial" else Fraction(1, max(2 * (tau - 1), 0) + 1)
        assert taken(q=q, c_g=c_g, tau_max=tau, staleness=s) == (c_g >= 1 and c_g * old >= 1 and 6 * c_g <= q - 1)


@pytest.mark.requirement("BSA-02")
def test_levels_are_bounded_by_what_binary64_holds_and_the_quantiser_takes() -> None:
    big = {"q": 2**32 - 5, "c_g": 64}
    assert taken(**big, c_l=2**32)
    assert not taken(**big, c_l=2**32 + 1)
    assert [taken(**big, c_l=c) for c in (-1, 0, 1)] == [False, False, True]
    wide = {"q": 2**32 - 5, "c_g": 700000, "staleness": Staleness.constant()}
    assert taken(**wide, c_l=2**53 // (3 * 700000))
    assert not taken(**wide, c_l=2**53 // (3 * 700000) + 1)
    assert not taken(c_g=2**32 + 1)
    assert not taken(staleness=None)
    assert not taken(staleness=Staleness.polynomial(2), c_g=3)


@pytest.mark.requirement("BSA-02")
def test_the_sweep_of_the_paper_needs_a_larger_level() -> None:
    p = replace(PRESETS["paper"], staleness=Staleness.constant())
    for c_g, fits in ((64, False), (120, False), (121, True)):
        if fits:
            assert replace(p, staleness=Staleness.polynomial(2), c_g=c_g).budget > 0
        else:
            with pytest.raises(ParameterError, match="c_g"):
                replace(p, staleness=Staleness.polynomial(2), c_g=c_g)


@pytest.mark.requirement("BSA-02", "BAA-02")
@pytest.mark.parametrize("modulus", [18, 19, 2**32 - 1, 2**32])
def test_the_largest_level_that_a_modulus_carries_is_named(modulus: int) -> None:
    most = max(level for level in range(modulus // 2 - 2, modulus // 2 + 2) if 2 * level < modulus)
    for K in (1, most):
        check_levels("R", modulus, K, 1, most // K, 0, Staleness.constant())
        with pytest.raises(ParameterError, match=rf"^K \* c_g = .*: must be at most \(R - 1\) // 2 = {most}$"):
            check_levels("R", modulus, K, 1, most // K + 1, 0, Staleness.constant())
    wrong: tuple[Any, ...] = (0, -1, True, 1.0)
    for none in wrong:
        with pytest.raises(ParameterError, match=f"^K = {none}: must be an integer in "):
            check_levels("R", modulus, none, 1, 1, 0, Staleness.constant())


@pytest.mark.parametrize("users", [range(4), range(6), (0, 1, 2, 3, 5), ()])
def test_channels_of_other_users_than_those_of_the_roster_are_refused(users: Sequence[int]) -> None:
    with pytest.raises(ParameterError, match=r"^channels = .[0-6] entries.: must be given for exactly the users"):
        open_session(TINY, session=SESSION, round=0, channels={user: PlainStampedChannel() for user in users})


@pytest.mark.requirement("BSA-01")
@pytest.mark.parametrize("user", [-2, -1, 5, True])
def test_a_user_that_is_not_on_the_roster_does_not_start(user: int) -> None:
    with pytest.raises(ParameterError, match=rf"^user = {user}: must be an integer in \[0, 4\]$"):
        basecagg.user_start(TINY, SESSION, 0, user, PlainStampedChannel())


@pytest.mark.requirement("BSA-03")
def test_shares_are_bound_to_every_number_in_the_order_of_the_text() -> None:
    p = replace(DEFAULT, staleness=Staleness.hinge("3/2", 7))
    numbers = [("q", p.q), ("N", 10), ("D", 2), ("U", 7), ("T", 3), ("d", 16), ("K", 5), ("c_l", 65536), ("c_g", 64)]
    numbers += [("tau_max", 10), ("kind", 2), ("numerator", 3), ("denominator", 2), ("start", 7)]
    expected = Context("basecagg", hash_parameters(dict(numbers)), SESSION, 5, 771)
    assert sealing_context(p, SESSION, 5) == expected
    kinds = [Staleness.constant(), Staleness.polynomial("1/2"), Staleness.hinge(1, 2)]
    assert [replace(p, staleness=s).numbers()["kind"] for s in kinds] == [0, 1, 2]


def sealed_scene(parameters: Parameters, **changed: Any) -> Scene:
    """A session whose channels are sealed; `changed` is what user 4 takes the parameters to be."""
    privates = {user: bytes([user + 1]) * 32 for user in range(parameters.N)}
    links = sealed_channels(sealing_context(parameters, SESSION), privates)
    other = sealed_channels(sealing_context(replace(parameters, **changed), SESSION), privates)
    scene = Scene(parameters)
    for user in range(parameters.N):
        link = other[user] if user == 4 else links[user]
        scene.network.states[user] = replace(scene.network.states[user], channel=link)
    return scene


@pytest.mark.requirement("BSA-03", "SEA-02")
@pytest.mark.parametrize(
    "changed",
    [{}, {"q": 23}, {"N": 6}, {"D": 0}, {"U": 2}, {"U": 4, "T": 2, "K": 4, "q": 29}, {"d": 4}, {"K": 4, "q": 29},
     {"c_l": 2}, {"c_g": 4, "q": 29}, {"tau_max": 1}, {"staleness": Staleness.polynomial("1/2")}],
)  # fmt: skip
def test_shares_open_only_under_the_same_numbers(changed: dict[str, Any]) -> None:
    scene = sealed_scene(TINY, **changed)
    scene.start(0, holders=[1, 2, 3])
    if not changed:
        scene.take("hold", 4)
        return
    with pytest.raises(DecryptionFailed) as caught:
        scene.take("hold", 4)
    assert caught.value.blamed == {0, SERVER}
    assert not scene.user(4).held


@pytest.mark.requirement("BSA-03", "SEA-03", "KEY-02")
def test_every_stamp_has_keys_of_its_own() -> None:
    scene = sealed_scene(TINY)
    scene.start(0)
    scene.upload(0)
    scene.network.states[SERVER] = replace(advanced(scene.network.states[SERVER]), buffer={})
    scene.stamp(0)
    first, second = (m for m in scene.mail("share", SERVER)[:2] if isinstance(m, StampedShare))
    old = next(m for e in scene.network.transcript for m in e.sent if isinstance(m, StampedShare) and m.receiver == 1)
    with pytest.raises(DecryptionFailed):
        scene.take("hold", 1, [replace(old, round=1)])
    assert first.payload != second.payload
    state = replace(scene.network.states[0], phase="asked", stamp=0)
    again = ModelStamp(SESSION, 1, SERVER, 0)
    with pytest.raises(Replay):
        basecagg.user_share.take(state, [again], randomness=scene.sampled(scene.step("share", 0)))


@pytest.mark.requirement("SEA-03", "BSA-03", "BSA-08")
def test_nothing_is_sealed_under_an_older_stamp_or_twice_under_one() -> None:
    privates = {user: bytes([user + 1]) * 32 for user in range(5)}
    channel = sealed_channels(sealing_context(TINY, SESSION), privates)[0]
    channel.close(3, 0, 1, b"x")
    channel.close(3, 0, 2, b"x")
    for stamp, receiver in ((3, 1), (2, 1), (0, 3)):
        with pytest.raises(Replay):
            channel.close(stamp, 0, receiver, b"y")
    channel.close(4, 0, 1, b"y")


# -------------------------------------------------------------------------------------------------- a user's update


@pytest.mark.requirement("BSA-04")
@given(st.data())
def test_the_masked_update_is_the_update_plus_the_mask(data: st.DataObject) -> None:
    q, d = data.draw(primes(above=2)), data.draw(st.integers(1, 5))
    update, mask = data.draw(arrays(q, d)), data.draw(arrays(q, d))
    expected = [(x + z) % q for x, z in zip(integers_of(update), integers_of(mask), strict=True)]
    assert integers_of(mask_update(PrimeField(q), 1, update, mask)) == expected


@pytest.mark.requirement("BSA-04", "BSA-36")
def test_a_user_uploads_its_update_under_its_mask() -> None:
    scene = Scene(TINY)
    scene.start(0)
    mask = scene.user(0).mask
    update = scene.train(0)
    (message,) = scene.take("upload", 0).sent
    assert isinstance(message, StampedUpdate)
    assert (message.round, message.sender, message.receiver) == (0, 0, SERVER)
    assert integers_of(message.masked) == [(int(x) + int(z)) % 19 for x, z in zip(update, mask, strict=True)]
    assert scene.user(0).mask is None
    assert scene.user(0).update is None


@pytest.mark.requirement("BSA-05", "MOD-06", "MOD-07")
@given(st.integers(0, 2), st.sampled_from((19, 20, 2**32, 2**64 - 1)))
def test_an_update_or_mask_that_does_not_fit_is_refused(at: int, bad: int) -> None:
    scene, spoiled = Scene(TINY), vector([1, 1, 1])
    spoiled[at] = bad
    for phase, party in (("request", 0), ("request", SERVER)):
        scene.take(phase, party)
    asked, inbox = scene.user(0), scene.mail("share", 0)
    scene.take("share", 0)
    one = vector([1, 1, 1])
    for value, error in ((spoiled, NonCanonical), (vector([1, 1]), LengthMismatch), (vector([1] * 4), LengthMismatch)):
        with pytest.raises(error):
            basecagg.user_trained(scene.user(0), value)
        with pytest.raises(error):
            basecagg.user_share.take(asked, inbox, randomness={"mask": value, "noise": vector([[1, 2]])})
        for update, mask in ((value, one), (one, value)):
            with pytest.raises(error):
                mask_update(TINY.field, 1, update, mask)


@pytest.mark.requirement("BSA-06")
@given(sessions(), st.data())
def test_an_update_is_taken_exactly_inside_the_budget(p: Parameters, data: st.DataObject) -> None:
    scene, limit = Scene(p), (p.q - 1) // 2
    scene.start(0)
    near = st.sampled_from((p.budget, p.budget + 1, -p.budget, -p.budget - 1)) | st.integers(-limit, limit)
    values = data.draw(st.lists(near.filter(lambda v: abs(v) <= limit), min_size=p.d, max_size=p.d))
    update = p.field.encode_signed(np.array(values, dtype=np.int64))
    if all(abs(value) * p.K * p.c_g <= limit for value in values):
        assert integers_of(scene.train(0, update)) == integers_of(update)
        mask_update(p.field, p.K * p.c_g, update, update)
        return
    with pytest.raises(OutOfRange, match="update"):
        scene.train(0, update)
    with pytest.raises(OutOfRange, match="update"):
        mask_update(p.field, p.K * p.c_g, update, update)


@pytest.mark.requirement("BSA-07", "BSA-08")
def test_a_user_uploads_once_under_a_stamp() -> None:
    scene = Scene(TINY)
    scene.refused("upload", 0, WrongPhase, blamed=[])
    scene.start(0)
    scene.refused("upload", 0, WrongPhase, blamed=[])
    scene.refused("request", 0, WrongPhase, blamed=[])
    scene.upload(0)
    scene.refused("upload", 0, WrongPhase, blamed=[])
    scene.refused("abandon", 0, WrongPhase, blamed=[])
    with pytest.raises(WrongPhase):
        scene.train(0)
    scene.take("request", 0)
    scene.refused("upload", 0, WrongPhase)
    scene.refused("share", 0, Replay, [ModelStamp(SESSION, 0, SERVER, 0)], [SERVER])
    scene.refused("share", 0, WrongPhase, [])


@pytest.mark.requirement("BSA-07", "BSA-08")
def test_an_abandoned_training_is_gone() -> None:
    scene = Scene(TINY)
    scene.start(0)
    scene.train(0)
    scene.take("abandon", 0)
    assert (scene.user(0).mask, scene.user(0).update, scene.user(0).phase) == (None, None, "idle")
    scene.refused("upload", 0, WrongPhase)
    scene.refused("share", 0, WrongPhase, [ModelStamp(SESSION, 1, SERVER, 0)])


@pytest.mark.requirement("BSA-08")
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_stamps_are_taken_exactly_when_they_are_newer(stamps: list[int]) -> None:
    scene, newest = Scene(TINY), -1
    for stamp in stamps:
        scene.take("request", 0)
        inbox = [ModelStamp(SESSION, stamp, SERVER, 0)]
        if stamp > newest:
            sent = scene.take("share", 0, inbox).sent
            assert [(m.round, m.receiver) for m in sent] == [(stamp, user) for user in range(1, 5)]
            assert scene.user(0).held[0].stamp == stamp
            scene.take("abandon", 0)
            newest = stamp
        else:
            scene.refused("share", 0, Replay, inbox, [SERVER])
    asked = scene.take("request", 0).sent
    assert [m.round for m in asked] == [newest]


# ------------------------------------------------------------------------------------------------ shares of others


def share_of(sender: int, stamp: int, receiver: int = 0, values: Sequence[int] = (1, 2)) -> StampedShare:
    """A share on the plain channel."""
    return StampedShare(SESSION, stamp, sender, receiver, vector_bytes(vector(values)))


@pytest.mark.requirement("BSA-09", "BSA-10")
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=12))
def test_a_share_is_kept_exactly_when_it_is_newer_than_all_of_its_sender(arriving: list[tuple[int, int]]) -> None:
    scene, seen = Scene(TINY), dict[int, int]()
    for at, (sender, stamp) in enumerate(arriving):
        inbox = [share_of(sender, stamp, values=(at, 0))]
        if stamp > seen.get(sender, -1):
            scene.take("hold", 0, inbox)
            seen[sender] = stamp
            assert integers_of(scene.user(0).held[sender].share) == [at, 0]
        else:
            scene.refused("hold", 0, Replay, inbox, [sender, SERVER])
        assert {user: held.stamp for user, held in scene.user(0).held.items()} == seen


@pytest.mark.requirement("BSA-09", "BSA-28")
def test_a_share_does_not_come_back_after_it_was_used() -> None:
    scene = Scene(TINY)
    scene.fill()
    old = next(m for e in scene.network.transcript for m in e.received if isinstance(m, StampedShare))
    scene.take("recover", old.receiver)
    assert old.sender not in scene.user(old.receiver).held
    scene.refused("hold", old.receiver, Replay, [old], [old.sender, SERVER])


@pytest.mark.requirement("BSA-10", "MSG-04")
def test_one_step_takes_one_share_of_a_sender() -> None:
    scene = Scene(TINY)
    scene.refused("hold", 0, Replay, [share_of(1, 0), share_of(1, 1)], [1])
    scene.take("hold", 0, [share_of(1, 0), share_of(2, 5)])


# --------------------------------------------------------------------------------------------- what the server takes


@pytest.mark.requirement("BSA-11", "BSA-12")
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), max_size=10))
def test_a_request_is_granted_exactly_when_the_stamp_is_new(asked: list[tuple[int, int, bool]]) -> None:
    scene, given_out, now = Scene(TINY), dict[int, int](), 0
    for user, knows, later in asked:
        if later:
            scene.network.states[SERVER] = advanced(scene.network.states[SERVER])
            now += 1
        inbox = [ModelRequest(SESSION, knows, user, SERVER)]
        if knows > now or given_out.get(user) == now:
            scene.refused("request", SERVER, WrongPhase, inbox, [user])
            continue
        (message,) = scene.take("request", SERVER, inbox).sent
        assert (type(message), message.round, message.receiver) == (ModelStamp, now, user)
        given_out[user] = now


@pytest.mark.requirement("BSA-11", "BSA-12")
def test_a_request_is_refused_while_the_update_waits() -> None:
    scene = Scene(TINY)
    scene.start(0, 1, 2)
    scene.upload(0, 1)
    scene.network.states[SERVER] = advanced(scene.network.states[SERVER])
    inbox = [ModelRequest(SESSION, 0, user, SERVER) for user in (2, 0)]
    scene.refused("request", SERVER, WrongPhase, inbox, [0])
    sent = scene.take("request", SERVER, [ModelRequest(SESSION, 0, user, SERVER) for user in (4, 2, 3)]).sent
    assert [(m.round, m.receiver) for m in sent] == [(1, 2), (1, 3), (1, 4)]


@pytest.mark.requirement("BSA-11")
def test_the_server_gives_out_stamps_while_it_recovers() -> None:
    scene = Scene(TINY)
    scene.fill()
    scene.refused("request", SERVER, WrongPhase, [ModelRequest(SESSION, 0, 0, SERVER)], [0])
    scene.take("request", 4)
    (message,) = scene.take("request", SERVER).sent
    assert message.round == 0
    scene.take("share", 4)
    scene.take("share", SERVER)
    scene.recover(range(4))
    assert scene.server.round == 1


@pytest.mark.requirement("BSA-13")
@given(st.just({1, 2, 3, 4}) | st.sets(st.integers(1, 4)), st.sampled_from((0, 0, 1, 2)), st.binary(max_size=5))
def test_shares_are_relayed_exactly_when_there_is_one_for_each_other(to: set[int], stamp: int, payload: bytes) -> None:
    scene = Scene(TINY)
    for step, party in (("request", 0), ("request", SERVER)):
        scene.take(step, party)
    scene.network.states[SERVER] = advanced(scene.network.states[SERVER])
    scene.take("request", 1)
    scene.take("request", SERVER)
    inbox = [StampedShare(SESSION, stamp, 0, user, payload) for user in sorted(to, reverse=True)]
    if to == {1, 2, 3, 4} and stamp == 0:
        sent = scene.take("share", SERVER, inbox).sent
        assert sorted(map(encode, sent)) == sorted(map(encode, inbox))
        scene.refused("share", SERVER, Replay, inbox, [0])
    elif to:
        scene.refused("share", SERVER, InconsistentSets, inbox, [0])
        others = [StampedShare(SESSION, 1, 1, user, payload) for user in (0, 2, 3, 4)]
        scene.refused("share", SERVER, InconsistentSets, [*others, *inbox], [0])
        assert len(scene.take("share", SERVER, others).sent) == 4


@pytest.mark.requirement("BSA-13")
def test_shares_of_users_without_a_stamp_and_of_two_stamps_are_not_relayed() -> None:
    scene = Scene(TINY)
    scene.refused("share", SERVER, InconsistentSets, [share_of(1, 0, user) for user in (0, 2, 3, 4)], [1])
    scene.stamp(0)
    inbox = list(scene.mail("share", SERVER))
    scene.refused("share", SERVER, InconsistentSets, [*inbox[:3], replace(inbox[3], round=1)], [0])
    scene.refused("share", SERVER, Replay, [*inbox[:3], inbox[0]], [0])


@pytest.mark.requirement("BSA-13")
def test_of_two_users_with_wrong_shares_the_same_one_is_blamed_in_whatever_order_they_come() -> None:
    wrong = [share_of(user, 1, other) for user in (1, 3) for other in range(5) if other != user]
    for inbox in (wrong, wrong[::-1], [*wrong[4:], *wrong[:4]]):
        scene = Scene(TINY)
        scene.stamp(1)
        scene.stamp(3)
        scene.refused("share", SERVER, InconsistentSets, inbox, [1])


@pytest.mark.requirement("BSA-14", "BSA-15", "BSA-16")
def test_an_update_is_taken_under_the_newest_stamp_once_and_after_its_shares() -> None:
    scene, inbox = Scene(TINY), [update_of(0, 0)]
    scene.refused("upload", SERVER, WrongPhase, inbox, [0])
    scene.stamp(0)
    scene.refused("upload", SERVER, WrongPhase, inbox, [0])
    scene.take("share", SERVER)
    scene.refused("upload", SERVER, WrongPhase, [update_of(0, 1)], [0])
    scene.take("upload", SERVER, inbox)
    scene.refused("upload", SERVER, Replay, inbox, [0])
    scene.refused("upload", SERVER, Replay, [update_of(0, 0, (3, 3, 3))], [0])
    scene.network.states[SERVER] = replace(advanced(scene.network.states[SERVER]), buffer={})
    scene.refused("upload", SERVER, Replay, inbox, [0])
    scene.take("request", SERVER, [ModelRequest(SESSION, 0, 0, SERVER)])
    scene.refused("upload", SERVER, WrongPhase, inbox, [0])


def update_of(user: int, stamp: int, values: Sequence[int] = (1, 2, 3)) -> StampedUpdate:
    """A masked update."""
    return StampedUpdate(SESSION, stamp, user, SERVER, vector(values))


@pytest.mark.requirement("BSA-16")
@pytest.mark.parametrize("age", range(5))
def test_an_update_is_taken_exactly_up_to_the_largest_staleness(age: int) -> None:
    scene = Scene(TINY)
    scene.start(0, 1)
    for _ in range(age):
        scene.network.states[SERVER] = advanced(scene.network.states[SERVER])
    if age <= 2:
        scene.take("upload", SERVER, [update_of(0, 0)])
    else:
        scene.refused("upload", SERVER, WrongPhase, [update_of(0, 0)], [0])


@pytest.mark.requirement("BSA-17", "BSA-20")
def test_a_buffer_has_room_for_K_updates_and_is_closed_with_K() -> None:
    scene = Scene(TINY)
    scene.start(*range(5))
    for size in range(3):
        scene.refused("close", SERVER, WrongPhase, blamed=[])
        scene.refused("upload", SERVER, WrongPhase, [update_of(u, 0) for u in range(size, 5)][: 4 - size], [])
        scene.take("upload", SERVER, [update_of(size, 0)])
    scene.refused("upload", SERVER, WrongPhase, [update_of(3, 0)], [])
    scene.take("close", SERVER)
    scene.refused("close", SERVER, WrongPhase, blamed=[])
    scene.refused("upload", SERVER, WrongPhase, [update_of(3, 0)], [])
    scene.refused("upload", SERVER, WrongPhase, [], [])


@pytest.mark.requirement("BSA-20")
def test_the_last_round_has_no_buffer() -> None:
    for first in (2**32 - 2, 2**32 - 1):
        scene = Scene(TINY, round=first)
        scene.start(0, 1, 2)
        scene.upload(0, 1, 2)
        if first == 2**32 - 1:
            scene.refused("close", SERVER, WrongPhase, blamed=[])
            continue
        entries = scene.close()
        assert integers_of(scene.recover().sum) == scene.plain_sum(entries)


# --------------------------------------------------------------------------------------------- weighed and announced


@pytest.mark.requirement("BSA-18", "BSA-19")
@given(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.lists(draws, min_size=3, max_size=3))
def test_each_update_is_weighed_with_a_draw_of_its_own(ages: list[int], rounding: list[float]) -> None:
    scene = aged(TINY, ages)
    now = scene.server.round
    step = scene.step("close", SERVER)
    event = scene.network.take(step, SERVER, {"rounding": np.array(rounding)})
    weights = [realised_weight(TINY.staleness, 3, age, draw) for age, draw in zip(ages, rounding, strict=True)]
    assert [entry.weight for entry in scene.server.entries] == weights
    assert tuple(weights) == weigh(TINY, now, [now - age for age in ages], rounding)
    assert [message.receiver for message in event.sent] == list(range(5))
    for message in event.sent:
        assert isinstance(message, BufferedSet)
        assert (message.round, message.users, message.sender) == (now, (0, 1, 2), SERVER)
        assert integers_of(message.stamps) == [now - age for age in ages]
        assert integers_of(message.weights) == weights


@pytest.mark.requirement("BSA-18", "RND-04")
@pytest.mark.parametrize("rounding", [[0.0] * 2, [0.0] * 4, [0.5, 1.0, 0.0], [-0.1, 0.5, 0.5], [2.0**-54, 0.5, 0.5]])
def test_draws_that_are_none_are_refused(rounding: list[float]) -> None:
    scene = Scene(TINY)
    scene.start(0, 1, 2)
    scene.upload(0, 1, 2)
    with pytest.raises(ParameterError, match="rounding"):
        scene.network.take(scene.step("close", SERVER), SERVER, {"rounding": np.array(rounding)})
    assert not scene.server.entries


@pytest.mark.requirement("BSA-19")
def test_users_are_announced_in_ascending_order_whoever_came_first() -> None:
    scene = Scene(TINY)
    scene.start(4, 1, 3)
    scene.upload(3, 4, 1)
    assert [entry.user for entry in scene.close()] == [1, 3, 4]
    assert integers_of(scene.recover().sum) == scene.plain_sum(scene.server.recovered.entries)


# ------------------------------------------------------------------------------------------------- a user's questions


def right_buffer(p: Parameters, now: int, entries: Sequence[Entry], stamps_held: dict[int, int]) -> bool:
    """Whether a user may answer, in the words of BSA-21 to BSA-25."""
    users = [entry.user for entry in entries]
    return (
        len(entries) == p.K
        and all(user in range(p.N) for user in users)
        and users == sorted(set(users))
        and all(0 <= now - entry.stamp <= p.tau_max for entry in entries)
        and all(entry.weight in admissible_weights(p.staleness, p.c_g, now - entry.stamp) for entry in entries)
        and sum(entry.weight != 0 for entry in entries) >= p.T + 2
        and all(stamps_held.get(entry.user) == entry.stamp for entry in entries)
    )


@st.composite
def buffers(draw: st.DrawFn) -> tuple[int, list[Entry], dict[int, int]]:
    """A round, the entries of a buffer near a right one at tiny, and the stamps of the shares that are held."""
    now = draw(st.integers(0, 5))
    users = draw(st.permutations(range(5)))[:3]
    entries = []
    for user in sorted(users):
        stamp = now - draw(st.integers(0, min(now, 2)))
        weight = draw(st.sampled_from(admissible_weights(TINY.staleness, 3, now - stamp)))
        entries.append(Entry(user, stamp, weight))
    held = {entry.user: entry.stamp for entry in entries} | {user: 0 for user in range(5) if user not in users}
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(entries) - 1))
        name, values = draw(
            st.sampled_from(
                (("user", (0, 1, 2, 3, 4, 5, SERVER)), ("stamp", (0, 1, now, now + 1, now - 3, now - 4)),
                 ("weight", (0, 1, 2, 3, 4, 20)))
            )
        )  # fmt: skip
        entries[at] = replace(entries[at], **{name: max(draw(st.sampled_from(values)), 0)})
    for change in draw(st.lists(st.sampled_from(("drop", "double", "swap", "lose", "age")), max_size=1)):
        match change:
            case "drop":
                entries = entries[:-1]
            case "double":
                entries = [*entries, entries[-1]]
            case "swap":
                entries = [entries[1], entries[0], *entries[2:]]
            case "lose":
                held.pop(entries[0].user, None)
            case "age":
                held[entries[-1].user] = entries[-1].stamp + 1
    return now, entries, held


@pytest.mark.requirement("BSA-21", "BSA-22", "BSA-23", "BSA-24", "BSA-25", "BSA-27")
@given(buffers())
def test_a_buffer_is_answered_exactly_when_it_can_be_right(case: tuple[int, list[Entry], dict[int, int]]) -> None:
    now, entries, stamps = case
    scene = Scene(TINY)
    held = {user: Held(stamp, vector([user + 1, stamp + 7])) for user, stamp in stamps.items()}
    scene.network.states[0] = replace(scene.user(0), held=held)
    columns = [vector([getattr(entry, name) for entry in entries]) for name in ("stamp", "weight")]
    message = BufferedSet(SESSION, now, SERVER, 0, tuple(entry.user for entry in entries), *columns)
    if right_buffer(TINY, now, entries, stamps):
        (answer,) = scene.take("recover", 0, [message]).sent
        assert isinstance(answer, WeightedShare)
        expected = [sum(e.weight * part(e) for e in entries) % 19 for part in (_first, _second)]
        assert integers_of(answer.share) == expected
        assert integers_of(combine_shares(TINY, now, entries, held)) == expected
        assert set(scene.user(0).held) == set(stamps) - {entry.user for entry in entries}
        return
    everything = {entry.user: entry.stamp for entry in entries}
    blamed = [] if right_buffer(TINY, now, entries, everything) else [SERVER]
    scene.refused("recover", 0, InconsistentSets, [message], blamed)
    with pytest.raises(InconsistentSets):
        combine_shares(TINY, now, entries, held)


def _first(entry: Entry) -> int:
    return entry.user + 1


def _second(entry: Entry) -> int:
    return entry.stamp + 7


ROOMY = replace(TINY, N=6, K=4, q=29)
WRONG_BUFFERS: dict[str, tuple[Entry, ...]] = {
    "one short": tuple(Entry(user, 3, 3) for user in (0, 1, 2)),
    "one more": tuple(Entry(user, 3, 3) for user in (0, 1, 2, 3, 4)),
    "outside": tuple(Entry(user, 3, 3) for user in (0, 1, 2, 6)),
    "twice": tuple(Entry(user, 3, 3) for user in (0, 1, 1, 2)),
    "descending": tuple(Entry(user, 3, 3) for user in (0, 2, 1, 3)),
    "future": tuple(Entry(user, 3 + (user == 2), 3) for user in (0, 1, 2, 3)),
    "old": (*(Entry(user, 3, 3) for user in (0, 1, 2)), Entry(3, 0, 1)),
    "heavy": (*(Entry(user, 3, 3) for user in (0, 1, 2)), Entry(3, 2, 3)),
    "light": (*(Entry(user, 3, 3) for user in (0, 1, 2)), Entry(3, 2, 0)),
}


@pytest.mark.requirement("BSA-21", "BSA-22", "BSA-23", "BSA-24")
@pytest.mark.parametrize("name", WRONG_BUFFERS)
def test_a_buffer_that_cannot_be_right_is_the_servers_fault_also_where_all_shares_are_held(name: str) -> None:
    right = (*(Entry(user, 3, 3) for user in (0, 1, 2)), Entry(3, 2, 2))
    for entries in (right, WRONG_BUFFERS[name]):
        held = {entry.user: Held(entry.stamp, vector([1, 2])) for entry in entries}
        if entries is right:
            assert integers_of(combine_shares(ROOMY, 3, entries, held)) == [11, 22]
            continue
        with pytest.raises(InconsistentSets) as caught:
            combine_shares(ROOMY, 3, entries, held)
        assert caught.value.blamed == {SERVER}


@pytest.mark.requirement("BSA-25")
@pytest.mark.parametrize("other", [0, 1, 4])
def test_a_share_under_another_stamp_is_none(other: int) -> None:
    entries = tuple(Entry(user, 3, 3) for user in (0, 1, 2, 3))
    held = {user: Held(other if user == 2 else 3, vector([1, 2])) for user in range(6)}
    with pytest.raises(InconsistentSets) as caught:
        combine_shares(ROOMY, 3, entries, held)
    assert not caught.value.blamed


@pytest.mark.requirement("BSA-23", "BSA-24")
@pytest.mark.parametrize("weights", [(1, 0, 0), (3, 0, 0), (3, 3, 0), (0, 0, 0), (3, 3, 2), (3, 3, 4), (3, 3, 3 + 19)])
def test_weights_that_single_out_an_update_are_refused(weights: tuple[int, ...]) -> None:
    scene = Scene(TINY)
    scene.fill()
    message: Any = scene.mail("recover", 4)[0]
    scene.refused("recover", 4, InconsistentSets, [replace(message, weights=vector(weights))], [SERVER])


@pytest.mark.requirement("BSA-21")
@pytest.mark.parametrize(
    ("name", "value"), [("stamps", [0, 0]), ("weights", [3] * 4), ("users", (0, 1)), ("users", ())]
)
def test_a_buffer_has_one_entry_for_each_user(name: str, value: Any) -> None:
    scene = Scene(TINY)
    scene.fill()
    message: Any = scene.mail("recover", 4)[0]
    spoiled = replace(message, **{name: value if name == "users" else vector(value)})
    scene.refused("recover", 4, InconsistentSets, [spoiled], [SERVER])


@pytest.mark.requirement("BSA-26")
@given(st.integers(0, 4), st.integers(0, 6), st.none() | st.integers(0, 4))
def test_a_buffer_is_answered_exactly_when_its_round_can_be_the_next(stamp: int, now: int, last: int | None) -> None:
    scene = Scene(TINY)
    held = {user: Held(max(now - 1, 0), vector([1, 2])) for user in range(5)}
    scene.network.states[0] = replace(scene.user(0), held=held, stamp=stamp, answered=last, known=9)
    stamps = vector([max(now - 1, 0)] * 3)
    weight = admissible_weights(TINY.staleness, 3, min(now, 1))[0]
    message = BufferedSet(SESSION, now, SERVER, 0, (1, 2, 3), stamps, vector([weight] * 3))
    if now < stamp:
        scene.refused("recover", 0, WrongPhase, [message], [])
    elif last is not None and now <= last:
        scene.refused("recover", 0, Replay, [message], [])
    else:
        scene.take("recover", 0, [message])
        assert scene.user(0).answered == now
        scene.refused("recover", 0, Replay if now >= stamp else WrongPhase, [message], [])


@pytest.mark.requirement("BSA-26", "BSA-12")
def test_a_user_knows_of_its_stamps_and_of_the_buffers_that_it_answered() -> None:
    scene = Scene(TINY, round=7)
    assert scene.take("request", 4).sent[0].round == 7
    scene.network.waiting[SERVER] = []
    scene.fill()
    scene.recover(range(4))
    assert [scene.user(user).known for user in range(5)] == [7] * 5
    scene.start(0, 1, 3)
    scene.upload(0, 1, 3)
    scene.close()
    scene.recover(range(4))
    assert [scene.user(user).known for user in range(5)] == [8, 8, 8, 8, 7]


@pytest.mark.requirement("BSA-27", "BSA-28")
@given(sessions(), st.data())
def test_an_answer_is_the_weighted_sum_of_the_shares_and_uses_each_once(p: Parameters, data: st.DataObject) -> None:
    users = sorted(data.draw(st.permutations(range(p.N)))[: p.K])
    ages = [data.draw(st.integers(0, p.tau_max)) for _ in users]
    now = max(ages)
    shares = data.draw(arrays(p.q, p.K, p.share_length))
    entries = [
        Entry(user, now - age, data.draw(st.sampled_from(admissible_weights(p.staleness, p.c_g, age))))
        for user, age in zip(users, ages, strict=True)
    ]
    held = {entry.user: Held(entry.stamp, row) for entry, row in zip(entries, shares, strict=True)}
    expected = [
        sum(entry.weight * int(row[k]) for entry, row in zip(entries, shares, strict=True)) % p.q
        for k in range(p.share_length)
    ]
    assert integers_of(combine_shares(p, now, entries, held)) == expected


@pytest.mark.requirement("BSA-28", "BSA-25", "BSA-26")
def test_no_share_is_given_for_two_buffers() -> None:
    scene = Scene(TINY)
    scene.fill()
    message: Any = scene.mail("recover", 4)[0]
    scene.take("recover", 4)
    scene.refused("recover", 4, Replay, [message], [])
    later = replace(message, round=1, weights=vector([1, 1, 1]))
    scene.refused("recover", 4, InconsistentSets, [later], [])
    other = replace(later, users=(2, 3, 4), stamps=vector([0, 0, 0]))
    scene.refused("recover", 4, InconsistentSets, [other], [])


# ------------------------------------------------------------------------------------------------------------ the end


@pytest.mark.requirement("BSA-29", "BSA-33", "BSA-04", "BSA-27")
@given(sessions(), st.integers(1, 9), st.data())
def test_the_weighted_sum_is_recovered_whatever_the_stamps(p: Parameters, seed: int, data: st.DataObject) -> None:
    ages = data.draw(st.lists(st.integers(0, p.tau_max), min_size=p.K, max_size=p.K))
    scene = aged(p, ages, seed)
    entries = scene.close()
    result = scene.recover(data.draw(st.permutations(range(p.N)))[: data.draw(st.integers(p.U, p.N))])
    assert integers_of(result.sum) == scene.plain_sum(entries)
    total = p.c_l * sum(entry.weight for entry in entries)
    assert integers_of(result.average) == [float(Fraction(v, total)) for v in scene.signed_sum(entries)]
    assert [scene.server.round, result.round] == [max(ages) + 1, max(ages)]
    assert not scene.server.buffer
    assert result.entries == entries


@pytest.mark.requirement("BSA-29", "BSA-30")
@pytest.mark.parametrize("name", ["tiny", "default"])
def test_every_set_of_U_or_more_answers_recovers(name: str) -> None:
    scene, p = aged(PRESETS[name], [at % 3 for at in range(PRESETS[name].K)]), PRESETS[name]
    entries = scene.close()
    for user in range(p.N):
        scene.take("recover", user)
    state, answers = scene.server, scene.mail("recover", SERVER)
    for chosen in subsets(range(p.N), at_least=p.U - 1):
        inbox = [answers[user] for user in chosen]
        if len(chosen) >= p.U:
            after, _ = basecagg.server_recover.take(state, inbox, randomness={})
            assert integers_of(after.recovered.sum if after.recovered else None) == scene.plain_sum(entries)
        elif sum(chosen) % 7 == 0:
            scene.refused("recover", SERVER, TooFewSurvivors, inbox, [])


@pytest.mark.requirement("BSA-30")
@pytest.mark.parametrize("early", range(4))
def test_answers_that_come_later_are_enough_with_those_before(early: int) -> None:
    scene = Scene(TINY)
    entries = scene.fill()
    for user in range(early):
        scene.take("recover", user)
    if early < 3:
        scene.refused("recover", SERVER, TooFewSurvivors, blamed=[])
    for user in range(early, 3):
        scene.take("recover", user)
    scene.take("recover", SERVER)
    assert integers_of(scene.server.recovered.sum) == scene.plain_sum(entries)
    scene.refused("recover", SERVER, WrongPhase, [], [])


@pytest.mark.requirement("BSA-31")
def test_every_altered_answer_is_detected_and_all_who_answered_are_blamed() -> None:
    scene = Scene(TINY)
    entries = scene.fill()
    for user in range(5):
        scene.take("recover", user)
    answers = scene.mail("recover", SERVER)
    for chosen in subsets(range(5), at_least=4):
        for liar, at, delta in product(chosen, range(2), (1, 9, 18)):
            inbox = [altered(answers[u], 19, at, delta) if u == liar else answers[u] for u in chosen]
            with pytest.raises(BadShare) as caught:
                basecagg.server_recover.take(scene.server, inbox, randomness={})
            assert caught.value.blamed == set(chosen)
    wrong, _ = basecagg.server_recover.take(scene.server, [altered(answers[0], 19), *answers[1:3]], randomness={})
    assert wrong.recovered is not None
    assert integers_of(wrong.recovered.sum) != scene.plain_sum(entries)


@pytest.mark.requirement("BSA-32", "BSA-33")
@given(st.integers(1, 4), st.sampled_from((1, 7, 2**20)))
def test_weights_that_are_all_0_are_refused(n: int, level: int) -> None:
    field, weights = TINY.field, np.zeros(n, dtype=np.uint64)
    with pytest.raises(ParameterError, match="weights"):
        recover(TINY.code, weights, [vector([1, 2, 3])] * n, [0, 1, 2], vector([[1, 2]] * 3))
    with pytest.raises(ParameterError, match="weights"):
        average(field, level, weights, vector([1, 2, 3]))


@pytest.mark.requirement("BSA-33", "QNT-06")
@given(primes(above=2), st.data())
def test_the_average_is_rounded_once(q: int, data: st.DataObject) -> None:
    total = data.draw(st.lists(elements(q), min_size=1, max_size=4))
    weights = data.draw(st.lists(elements(q), min_size=1, max_size=3).filter(any))
    level = data.draw(st.sampled_from((1, 3, 10, 65536, 2**32)))
    divisor = level * sum(weights)
    if divisor > 2**53:
        with pytest.raises(ParameterError, match=r"level \* sum"):
            average(PrimeField(q), level, vector(weights), vector(total))
        return
    expected = [float(Fraction(signed(value, q), divisor)) for value in total]
    assert integers_of(average(PrimeField(q), level, vector(weights), vector(total))) == expected


@pytest.mark.requirement("BSA-33")
def test_the_average_is_not_divided_twice() -> None:
    total, field = vector(range(1, 2000)), PrimeField(2**32 - 5)
    expected = [v / (49 * 11) for v in range(1, 2000)]
    assert expected != [v / 49 / 11 for v in range(1, 2000)]
    assert integers_of(average(field, 49, vector([5, 6]), total)) == expected


@pytest.mark.requirement("BSA-36")
@given(sessions(), st.data())
def test_an_update_of_real_numbers_is_the_quantisers(p: Parameters, data: st.DataObject) -> None:
    bound = (p.budget + 1.5) / p.c_l
    x = np.array(data.draw(st.lists(st.floats(-bound, bound), min_size=p.d, max_size=p.d)))
    rounding = np.array(data.draw(st.lists(draws, min_size=p.d, max_size=p.d)))
    try:
        expected = quantize(x, level=p.c_l, ring=p.field, weight=p.K * p.c_g, rounding=rounding)
    except OutOfRange:
        with pytest.raises(OutOfRange):
            encode_update(p, x, rounding)
        assert np.abs(x).max() * p.c_l > p.budget
        return
    update = encode_update(p, x, rounding)
    assert integers_of(update) == integers_of(expected)
    assert integers_of(check_update(p.field, p.total_weight, update)) == integers_of(expected)


@pytest.mark.requirement("BSA-36", "BSA-33", "BSA-06")
@fewer(4)
@given(st.data(), st.integers(1, 9))
def test_the_average_is_that_of_the_real_updates_up_to_one_unit(data: st.DataObject, seed: int) -> None:
    p = replace(DEFAULT, d=2)
    ages = data.draw(st.lists(st.integers(0, p.tau_max), min_size=p.K, max_size=p.K))
    limit = p.budget / p.c_l
    numbers = st.sampled_from((limit, -limit, 0.0)) | st.floats(-limit, limit)
    real = np.array(data.draw(st.lists(numbers, min_size=p.K * 2, max_size=p.K * 2))).reshape(p.K, 2)
    scene = aged(p, ages, seed, make=lambda p, seed: Quantised(p, seed, real))
    entries = scene.close()
    weights = np.array([entry.weight for entry in entries], dtype=np.float64)
    mean = (weights[:, None] * real).sum(axis=0) / weights.sum()
    assert np.abs(scene.recover().average - mean).max() <= (1 + 1e-9) / p.c_l


class Quantised(Scene):
    """A scene whose users quantise rows of real numbers, in the order of their uploads."""

    def __init__(self, parameters: Parameters, seed: int, real: Any) -> None:
        super().__init__(parameters, seed)
        self.real = list(real)

    def drawn_update(self) -> Any:
        """The next row, quantised."""
        rounding: Any = pseudorandom(self.seed + len(self.real), 2**53, self.parameters.d) * 2.0**-53
        return encode_update(self.parameters, self.real.pop(0), rounding)


@pytest.mark.requirement("BSA-19", "BSA-31", "BSA-23")
@given(st.integers(1, 50), st.data())
def test_users_that_round_for_themselves_never_recover(seed: int, data: st.DataObject) -> None:
    p = DEFAULT
    ages = data.draw(st.lists(st.sampled_from((0, 2, 4, 5, 6)), min_size=5, max_size=5).filter(any))
    scene = aged(p, ages, seed)
    entries = scene.close()
    now, answers = scene.server.round, []
    choices = []
    for user in range(data.draw(st.integers(p.U, p.N))):
        own = [data.draw(st.sampled_from(admissible_weights(p.staleness, 64, now - e.stamp))) for e in entries]
        announced = scene.mail("recover", user)[0]
        answers += scene.take("recover", user, [replace(announced, weights=vector(own))]).sent
        choices.append(tuple(own))
    if len(set(choices)) == 1:
        return
    if len(answers) > p.U:
        scene.refused("recover", SERVER, BadShare, answers, range(len(answers)))
        return
    after, _ = basecagg.server_recover.take(scene.server, answers, randomness={})
    assert after.recovered is not None
    weights = [[Entry(e.user, e.stamp, w) for e, w in zip(entries, own, strict=True)] for own in set(choices)]
    assert integers_of(after.recovered.sum) not in [scene.plain_sum(entries), *map(scene.plain_sum, weights)]


# -------------------------------------------------------------------------------------------------- whole schedules

FATES = ("stays", "unanswered", "unheld", "unsent")


@pytest.mark.slow
@pytest.mark.requirement("BSA-34", "BSA-29", "BSA-30")
def test_every_schedule_of_one_buffer_at_tiny_succeeds_exactly_when_enough_are_left() -> None:
    started, successes = Scene(TINY), 0
    started.start(*range(5), holders=())
    for user in range(5):
        started.train(user)
    for fates in product(FATES, repeat=5):
        scene = Scene(TINY, network=replace(started.network, states=dict(started.network.states), transcript=[]))
        scene.network.waiting = {party: list(box) for party, box in started.network.waiting.items()}
        successes += attempt(scene, fates)
    assert successes == sum(enough(fates) for fates in product(FATES, repeat=5)) > 0


def enough(fates: Sequence[str]) -> bool:
    """Whether K updates come, and U users answer that hold all shares of the buffer."""
    return sum(fate != "unsent" for fate in fates) >= 3 and sum(fate in ("stays", "unsent") for fate in fates) >= 3


def attempt(scene: Scene, fates: Sequence[str]) -> bool:
    """Play one buffer: whoever is `unheld` misses the shares of the first update that is taken."""
    taken = [user for user, fate in enumerate(fates) if fate != "unsent"][:3]
    for user in taken:
        scene.updates[user, 0] = scene.user(user).update
        scene.take("upload", user)
        scene.take("upload", SERVER)
    if len(taken) < 3:
        with pytest.raises(WrongPhase):
            scene.take("close", SERVER)
        return False
    for user, fate in enumerate(fates):
        missed = {user_ for user_ in taken if user_ != user and fate == "unheld"}
        scene.take("hold", user, [m for m in scene.mail("hold", user) if m.sender not in sorted(missed)[:1]])
    entries = scene.close()
    for user, fate in enumerate(fates):
        if fate == "unheld":
            with pytest.raises(InconsistentSets):
                scene.take("recover", user)
        elif fate != "unanswered":
            scene.take("recover", user)
    if not enough(fates):
        with pytest.raises(TooFewSurvivors):
            scene.take("recover", SERVER)
        return False
    scene.take("recover", SERVER)
    assert integers_of(scene.server.recovered.sum) == scene.plain_sum(entries)
    return True


@st.composite
def schedules(draw: st.DrawFn, p: Parameters, buffers: int = 3) -> list[Turn]:
    """Turns that honest parties can take, with updates of every age up to tau_max."""
    turns: list[Turn] = []
    stamps, training, waiting = dict[int, int](), set[int](), set[int]()
    for now in range(buffers):
        while len(waiting) < p.K:
            fresh = [u for u in range(p.N) if u not in training | waiting and stamps.get(u) != now]
            ready = [u for u in sorted(training) if now - stamps[u] <= p.tau_max]
            old = [u for u in sorted(training) if now - stamps[u] > p.tau_max]
            moves: list[Turn] = [*map(Start, fresh), *map(Upload, ready)]
            moves = list(map(Abandon, old)) or moves
            if not moves:
                return turns
            turn = draw(st.sampled_from(moves))
            turns.append(turn)
            assert not isinstance(turn, Recover)
            match turn:
                case Start(user):
                    stamps[user] = now
                    training.add(user)
                case Upload(user):
                    waiting.add(user)
                    training.discard(user)
                case Abandon(user):
                    training.discard(user)
        count = draw(st.integers(p.U, p.N))
        turns.append(Recover(tuple(draw(st.permutations(range(p.N)))[:count])))
        waiting = set()
    return turns


def budgeted(p: Parameters, count: int, seed: int) -> list[Any]:
    """Updates that buffers carry."""
    rows = pseudorandom(seed, 2 * p.budget + 1, count, p.d).astype(np.int64) - p.budget
    return [p.field.encode_signed(row) for row in rows]


@pytest.mark.requirement("BSA-29", "BSA-34", "BSA-08", "BSA-12", "BSA-16")
@given(sessions(), st.booleans(), st.data())
def test_schedules_give_the_weighted_sum_of_every_buffer(p: Parameters, sealed: bool, data: st.DataObject) -> None:
    turns = data.draw(schedules(p))
    updates = budgeted(p, sum(isinstance(turn, Upload) for turn in turns), 3)
    privates = {user: bytes([user + 1]) * 32 for user in range(p.N)}
    channels = sealed_channels(sealing_context(p, SESSION), privates) if sealed else None
    randomness = draw_randomness(p, SeededSource(b"s", "schedule"), turns)
    result = run_schedule(p, updates, turns, randomness=randomness, round=2, channels=channels, session=bytes(16))
    expected, waiting, queue = [], {}, iter(updates)
    for turn in turns:
        if isinstance(turn, Upload):
            waiting[turn.user] = next(queue)
        if isinstance(turn, Recover):
            expected.append(waiting)
            waiting = {}
    assert [buffer.round for buffer in result.buffers] == [2 + at for at in range(len(expected))]
    for buffer, updates_of in zip(result.buffers, expected, strict=True):
        assert [entry.user for entry in buffer.entries] == sorted(updates_of)
        columns = [[e.weight * int(v) for v in updates_of[e.user]] for e in buffer.entries]
        assert integers_of(buffer.sum) == [sum(column) % p.q for column in zip(*columns, strict=True)]


@pytest.mark.slow
@pytest.mark.requirement("BSA-35")
@given(sessions(), st.data())
def test_a_server_that_is_killed_and_restored_at_every_step_goes_on(p: Parameters, data: st.DataObject) -> None:
    turns = data.draw(schedules(p))
    updates = budgeted(p, sum(isinstance(turn, Upload) for turn in turns), 4)
    randomness = draw_randomness(p, SeededSource(b"s", "killed"), turns)
    plain = run_schedule(p, updates, turns, randomness=randomness, session=bytes(16), round=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "secagg_spec.protocols.basecagg.round.TABLE",
            tuple(step.taken_by(killed(step.take)) if step.role is Role.SERVER else step for step in TABLE),
        )
        restored = run_schedule(p, updates, turns, randomness=randomness, session=bytes(16), round=0)
    assert [encode(m) for e in restored.transcript for m in e.sent] == [
        encode(m) for e in plain.transcript for m in e.sent
    ]
    assert snapshot([*restored.buffers]) == snapshot([*plain.buffers])


def stored_and_restored(state: Any) -> Any:
    """A state by way of JSON."""
    return basecagg_store.restore(json.loads(json.dumps(basecagg_store.store(state))))


def killed(step: Callable[..., Any], restored: Callable[[Any], Any] = stored_and_restored) -> Callable[..., Any]:
    """A step of a server that is restored before it and after it."""

    def run(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = step(restored(state), inbox, randomness=randomness)
        return restored(after), outbox

    return run


@pytest.mark.requirement("BSA-35")
def test_a_stored_state_comes_back_as_it_was_and_spoiled_ones_are_refused() -> None:
    scene = Scene(TINY)
    scene.fill()
    for last in (False, True):
        if last:
            scene.recover()
            scene.start(0)
        stored = json.loads(json.dumps(basecagg_store.store(scene.server)))
        assert snapshot(basecagg_store.restore(stored)) == snapshot(scene.server)
        for name in stored:
            with pytest.raises(ParameterError):
                basecagg_store.restore({key: value for key, value in stored.items() if key != name})
            wrong: tuple[Any, ...] = (None, "zz", [1], {"9": {}}, {"0": "00"}, -1)
            for bad in wrong:
                if not (bad is None and name == "recovered"):
                    with pytest.raises(ParameterError):
                        basecagg_store.restore({**stored, name: bad})


def test_a_recovered_buffer_that_users_refuse_is_not_restored() -> None:
    scene = Scene(TINY)
    scene.fill()
    scene.recover()
    stored = json.loads(json.dumps(basecagg_store.store(scene.server)))
    first, *others = stored["recovered"]["entries"]
    late = {**first, "stamp": stored["recovered"]["round"] + 1}
    for entries in ([first] * (1 + len(others)), [late, *others], others, [*others, first], []):
        with pytest.raises(ParameterError):
            basecagg_store.restore({**stored, "recovered": {**stored["recovered"], "entries": entries}})


def test_a_schedule_is_refused_where_a_party_refuses() -> None:
    randomness = draw_randomness(TINY, SeededSource(b"s", "t"), [Start(0), Start(0), Recover(())])
    for turns, error in (
        ([Start(0), Start(0)], WrongPhase),
        ([Upload(0)], WrongPhase),
        ([Abandon(0)], WrongPhase),
        ([Recover((0, 1, 2))], WrongPhase),
        ([Start(9)], ParameterError),
        ([Start(0), Upload(0), Start(1), Upload(1)], ParameterError),
        (["start"], ParameterError),
    ):
        with pytest.raises(error):
            run_schedule(TINY, budgeted(TINY, 1, 1), turns, randomness=randomness, session=bytes(16), round=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        *((kind(user), UnknownUser) for kind in (Start, Upload, Abandon) for user in (-1, TINY.N, SERVER)),
        (Recover((0, TINY.N)), UnknownUser),
        (Recover((-1, 0)), UnknownUser),
        (Recover((0, SERVER)), UnknownUser),
        (Recover((1, 0, 1)), DuplicateUser),
        (Start("0"), ParameterError),  # type: ignore[arg-type]
    ],
)
def test_a_turn_of_nobody_or_of_one_user_twice_is_refused_before_anything_happens(
    turn: Turn, error: type[Exception]
) -> None:
    """The numbers are looked at before a user is: a turn that is refused has drawn nothing, and taken no step."""
    turns: list[Turn] = [*map(Start, range(TINY.K)), *map(Upload, range(TINY.K)), Recover(tuple(range(TINY.N)))]
    randomness = draw_randomness(TINY, SeededSource(b"s", "nobody"), turns)
    network = open_session(TINY, session=bytes(16), round=0)
    play = Play(network, supplies(TINY, budgeted(TINY, TINY.K, 1), randomness), user_trained)
    for right in turns[:-1]:
        play.take(right)
    before, taken = snapshot(network.states), len(network.transcript)
    with pytest.raises(error, match="schedule"):
        play.take(turn)
    assert (snapshot(network.states), len(network.transcript)) == (before, taken)
    play.take(turns[-1])
    assert len(play.buffers) == 1


@pytest.mark.requirement("BSA-29")
@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_work(name: str) -> None:
    p = PRESETS[name]
    turns: list[Turn] = [*map(Start, range(p.K)), *map(Upload, range(p.K)), Recover(tuple(range(p.D, p.N)))]
    result = run_schedule(
        p,
        budgeted(p, p.K, 5),
        turns,
        randomness=draw_randomness(p, SeededSource(b"s", "presets"), turns),
        session=bytes(16),
        round=0,
    )
    rows_ = [[e.weight * int(v) for v in budgeted(p, p.K, 5)[e.user]] for e in result.buffers[0].entries]
    assert integers_of(result.buffers[0].sum) == [sum(column) % p.q for column in zip(*rows_, strict=True)]


@pytest.mark.requirement("BSA-29", "MOD-03")
def test_extreme_updates_and_masks_sum_exactly() -> None:
    p = replace(DEFAULT, d=2)
    for sign in (1, -1):
        scene = Extreme(p)
        scene.fill_extreme(sign)
        assert integers_of(scene.recover().sum) == scene.plain_sum(scene.server.recovered.entries)


class Extreme(Scene):
    """A scene of largest values."""

    def sampled(self, step: Any) -> Any:
        """The largest elements."""
        return {name: np.full_like(v, self.parameters.q - 1) if name != "rounding" else v
                for name, v in super().sampled(step).items()}  # fmt: skip

    def fill_extreme(self, sign: int) -> None:
        """A buffer of updates at the end of the budget."""
        users = range(self.parameters.K)
        self.start(*users)
        for user in users:
            update = self.train(user, self.parameters.field.encode_signed(np.full(2, sign * self.parameters.budget)))
            self.take("upload", user)
            self.take("upload", SERVER)
            self.updates[user, 0] = update
        self.close()


# -------------------------------------------------------------------------------------------- messages of elsewhere


@pytest.mark.requirement("MSG-03", "MSG-04", "BSA-12", "BSA-13", "BSA-25")
@pytest.mark.parametrize("phase", ["request", "share", "upload", "recover", "hold", "user share", "user recover"])
def test_messages_from_elsewhere_are_refused(phase: str) -> None:
    party = 4 if phase in ("hold", "user share", "user recover") else SERVER
    phase = phase.removeprefix("user ")
    scene = Scene(TINY)
    waiting_for(scene, phase, party)
    inbox = list(scene.mail(phase, party))
    assert inbox
    first = inbox[0]
    changes: list[tuple[dict[str, Any], type[ProtocolError] | tuple[type[ProtocolError], ...]]] = [
        ({"session": bytes(15) + b"\1"}, WrongPhase),
        ({"receiver": 7}, Malformed),
        ({"sender": 9}, (InconsistentSets, Malformed)),
    ]
    if phase == "recover" and party == SERVER:
        changes.append(({"round": 1}, WrongPhase))
    for change, error in changes:
        with pytest.raises(error):
            scene.take(phase, party, [replace(first, **change), *inbox[1:]])
    scene.refused(phase, party, Replay, [*inbox, first])
    scene.refused(phase, party, WrongPhase, [SignedNothing(SESSION, 0, 0, party)])
    scene.take(phase, party)


class SignedNothing(Message):
    """A message that no step takes."""

    TYPE = 999


def waiting_for(scene: Scene, phase: str, party: int) -> None:
    """Bring a scene to where mail waits for a step."""
    if phase == "recover":
        scene.fill([0, 1, 4])
        for user in range(5) if party == SERVER else ():
            scene.take("recover", user)
    elif phase == "upload":
        scene.start(4)
        scene.train(4)
        scene.take("upload", 4)
    elif phase == "hold":
        scene.start(0, holders=())
    else:
        for step, who in (("request", 4), ("request", SERVER), ("share", 4))[: 1 + 2 * (phase == "share")]:
            if (step, who) != (phase, party):
                scene.take(step, who)


BAD_VECTORS: tuple[list[int], ...] = ([], [1], [1, 2, 3, 4], [19, 0], [0, 2**32 - 1], [1, 2, 19])


@pytest.mark.requirement("BSA-05", "MOD-06", "MOD-07", "MSG-02", "ERR-01")
@pytest.mark.parametrize("values", BAD_VECTORS)
def test_a_vector_that_does_not_fit_is_its_senders_fault(values: list[int]) -> None:
    scene = Scene(TINY)
    scene.start(0, 1, 2, holders=())
    inbox: list[Any] = list(scene.mail("hold", 4))
    scene.refused("hold", 4, Malformed, [inbox[0], replace(inbox[1], payload=vector_bytes(vector(values)))], [1])
    scene.refused("hold", 4, Malformed, [inbox[0], replace(inbox[1], payload=b"\2")], [1])
    scene.refused("upload", SERVER, Malformed, [update_of(0, 0), update_of(1, 0, values)], [1])
    scene = Scene(TINY)
    scene.fill()
    for user in range(5):
        scene.take("recover", user)
    answers: list[Any] = list(scene.mail("recover", SERVER))
    scene.refused("recover", SERVER, Malformed, [*answers[:4], replace(answers[4], share=vector(values))], [4])


@pytest.mark.requirement("ERR-01", "ERR-02", "RND-01")
def test_states_and_what_is_sent_are_read_only_and_determined() -> None:
    def whole() -> Scene:
        scene = Scene(DEFAULT)
        scene.fill()
        scene.recover()
        return scene

    scene = whole()
    for event in scene.network.transcript:
        parts = [event.state, *event.sent, *getattr(event.state, "held", {}).values()]
        parts += [event.state.recovered] if getattr(event.state, "recovered", None) else []
        values = [getattr(part, entry.name) for part in parts for entry in fields(part)]
        values += list(getattr(event.state, "buffer", {}).values())
        assert all(not value.flags.writeable for value in values if isinstance(value, np.ndarray))
    sent = [[encode(m) for e in s.network.transcript for m in e.sent] for s in (scene, whole())]
    assert sent[0] == sent[1]


# ------------------------------------------------------------------------------------------------------- the text


def section(number: int) -> str:
    """A section of the page."""
    return PAGE.split(f"\n## {number}. ")[1].split("\n## ")[0]


@pytest.mark.requirement("BSA-01")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    for column, name in enumerate(PRESETS, start=2):
        stated = {row[0]: row[column] for row in rows(PAGE, "symbol", "meaning", *PRESETS)}
        assert stated.pop("s") == "polynomial, 1"
        assert PRESETS[name].staleness == Staleness.polynomial(1)
        assert {key: int(value) for key, value in stated.items()} == {
            entry.name: getattr(PRESETS[name], entry.name) for entry in fields(Parameters) if entry.name != "staleness"
        }


@pytest.mark.requirement("MSG-01", "BSA-03")
def test_the_tables_of_the_page_are_those_of_the_reference() -> None:
    stated = [(code(a)[0], b, code(c), code(d)) for a, b, c, d in rows(PAGE, "phase", "role")]
    assert stated == [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
    ]
    kinds: list[type[Message]] = [ModelRequest, ModelStamp, StampedShare, StampedUpdate, BufferedSet, WeightedShare]
    for (name, number, _, described), kind in zip(rows(PAGE, "message", "type", "`round`"), kinds, strict=True):
        assert (code(name)[0], int(number)) == (kind.__name__, kind.TYPE)
        named = re.findall(r"`(\w+)` \(`(\w+)`\)", described)
        assert own_fields(kind) == {field: FIELD_TYPES[of] for field, of in named}


@pytest.mark.requirement("RND-01", "RND-04", "BSA-18")
def test_the_table_of_sampled_values_is_that_of_the_steps() -> None:
    stated = {(code(name)[0], *by.replace("`", "").split(", in ")) for name, by, *_ in rows(section(8), "name")}
    assert stated == {
        (name, f"{'a' if step.role is Role.USER else 'the'} {step.role.value}", step.phase)
        for step in TABLE
        for name in step.randomness
    }


def cost_table() -> dict[tuple[str, str], tuple[str, str]]:
    """The formulas for messages and bytes of the page, by role and phase."""
    table = rows(section(7), "who", "phase") + rows(section(7).split("phase `confirm`")[1], "who", "phase")
    return {(who, phase): (code(messages)[0], code(size)[0]) for who, phase, messages, size in table}


def check_costs(scene: Scene, overhead: int, signers: int = 0) -> None:
    """Hold every step of a scene against the table of costs."""
    p, table = scene.parameters, cost_table()
    names = {"N": p.N, "d": p.d, "L": p.share_length, "H": 30, "C": overhead, "K": p.K, "S": signers}
    seen = set()
    for event in scene.network.transcript:
        key = (event.step.role.value, event.step.phase)
        messages, size = table.get(key, ("0", "0"))
        assert len(event.sent) == evaluated(messages, names), key
        assert sizes(event.sent) == evaluated(size, names), key
        seen.add(key)
    assert set(table) <= seen | {("user", "confirm"), ("server", "confirm")}


@pytest.mark.requirement("MSG-01", "BSA-13", "BSA-19")
@given(sessions(), st.booleans())
def test_the_costs_of_the_text_are_those_of_a_session(p: Parameters, sealed: bool) -> None:
    scene = sealed_scene(p) if sealed else Scene(p)
    scene.fill()
    scene.recover()
    check_costs(scene, OVERHEAD if sealed else 0)
    assert all(len(scene.user(user).held) <= p.N for user in range(p.N))


@pytest.mark.requirement("BSA-10")
def test_what_a_user_stores_is_what_the_text_says() -> None:
    scene, most = Scene(TINY), defaultdict[int, int](int)
    for _ in range(4):
        scene.start(0, 1, 2, 3, 4)
        scene.upload(0, 1, 2)
        for user in range(5):
            shares = [held.share.size for held in scene.user(user).held.values()]
            most[user] = max(most[user], sum(shares))
        scene.take("abandon", 3)
        scene.take("abandon", 4)
        scene.close()
        scene.recover()
    assert set(most.values()) == {TINY.N * TINY.share_length}


def test_the_budget_of_the_text() -> None:
    paper = PRESETS["paper"]
    assert (paper.budget, paper.share_length, floor_weight(paper.staleness, 64, 10)) == (3355443, 17, 5)


@pytest.mark.requirement("BSA-29")
def test_weighted_sums_are_exact_for_weights_of_every_size() -> None:
    field = PrimeField(2**32 - 5)
    for n, top in ((1, 2**32 - 6), (3, 2**32 - 6), (10, 64), (2, 2**31)):
        weights, vectors = np.full(n, top, dtype=np.uint64), np.full((n, 4), field.modulus - 1, dtype=np.uint64)
        expected = [n * top * (field.modulus - 1) % field.modulus] * 4
        assert integers_of(field.weighted_sum(weights, vectors)) == expected
        assert integers_of(field.weighted_sum(weights, list(vectors))) == expected
    long = pseudorandom(5, field.modulus, 3, 2**16 + 3)
    plain = field.matmul(vector([[7, 8, 9]]), long)[0]
    assert np.array_equal(field.weighted_sum(vector([7, 8, 9]), long), plain)
    for bad in ([], [vector([1])] * 2, [vector([1, 2]), vector([1]), vector([1, 2])]):
        with pytest.raises(LengthMismatch):
            field.weighted_sum(vector([1, 2, 3]), bad)
