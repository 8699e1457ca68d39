"""What coalitions learn from epochs of BASA: every end of an epoch, rules that are weaker, and mutants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy import basa as model
from secagg_spec.privacy.basa import (
    ACCEPTED,
    FATES,
    GONE,
    LATE,
    PAPER,
    RULES,
    SETTLE,
    VOID,
    WEAKER,
    Epoch,
    Holder,
    Situation,
    Timeouts,
    exactly,
    learned,
    recovers,
    together,
)
from secagg_spec.privacy.probe import NotAffine
from secagg_spec.privacy.views import Space
from secagg_spec.protocols.basa import cores
from secagg_spec.protocols.basa.cores import PRESETS, Masks
from tests.privacy.enumeration import codes, entropy, every_vector
from tests.quick import QUICK, some

TINY = PRESETS["tiny"]
RING = TINY.ring
FIELD = PrimeField()


def happened(*fates: str, positions: int | None = None, closed: bool = True) -> Situation:
    """One user at each position, and what became of it."""
    holders = tuple(Holder(position, fate) for position, fate in enumerate(fates))
    return Situation(len(fates) if positions is None else positions, holders, closed)


def again(*positions: tuple[str, ...]) -> Situation:
    """The users of each position, one after another."""
    holders = tuple(Holder(position, fate) for position, fates in enumerate(positions) for fate in fates)
    return Situation(len(positions), holders)


def beyond(rule: Timeouts, situation: Situation, *coalition: int, ring: Ring = RING) -> tuple[str, ...]:
    """What is learned beyond what may be known, without the number of the element."""
    functionals = Epoch(ring, rule, situation).decide(coalition).functionals
    return tuple(text.replace("[0]", "") for text in functionals)


# ------------------------------------------------------------------------------------------------------- settle


@pytest.mark.requirement("BAA-12", "BAA-16", "BAA-20", "BAA-26")
def test_settled_epochs_tell_exactly_the_sum_over_the_honest_accepted_updates() -> None:
    """Every fate of four positions, every coalition, modulo 16."""
    cases = 0
    for situation in some(9, model.every_pattern(TINY.positions)):
        epoch = Epoch(RING, SETTLE, situation)
        for coalition in model.every_coalition(range(4)):
            assert exactly(epoch.view(coalition), epoch.allowed(coalition))
            cases += 1
    assert QUICK or cases == 3**4 * 2**4


@pytest.mark.requirement("BAA-20", "BAA-21", "BAA-41")
def test_recover_returns_the_sum_from_released_keys_and_without_them_the_server_has_nothing() -> None:
    for situation in model.every_pattern(4):
        if situation.accepted:
            assert recovers(Epoch(RING, SETTLE, situation))
            abandoned = Epoch(RING, SETTLE, replace(situation, closed=False))
            assert abandoned.decide(()).leak == 1
            assert not recovers(abandoned)


@pytest.mark.requirement("BAA-20")
def test_before_the_close_no_coalition_learns_anything_of_honest_updates() -> None:
    for situation in some(3, model.every_pattern(4)):
        epoch = Epoch(RING, SETTLE, replace(situation, closed=False))
        assert all(epoch.decide(coalition).leak == 1 for coalition in model.every_coalition(range(4)))


@pytest.mark.slow
@pytest.mark.requirement("BAA-20", "BAA-26")
def test_six_positions() -> None:
    """Every fate of six positions; coalitions of up to two users modulo 16, two primes besides for the first few."""
    for situation in some(20, list(model.every_pattern(6))[::5]):
        epochs = [Epoch(ring, SETTLE, situation) for ring in (RING, FIELD)]
        for size in range(2):
            for coalition in combinations(range(6), size):
                assert all(exactly(epoch.view(coalition), epoch.allowed(coalition)) for epoch in epochs[: 2 - size])


@pytest.mark.slow
@given(st.data())
def test_drawn_epochs_tell_the_weighted_sum(data: st.DataObject) -> None:
    ring = data.draw(st.sampled_from([Ring(8), Ring(9), Ring(16), Ring(2**32), FIELD]))
    fates = data.draw(st.lists(st.sampled_from(FATES), min_size=2, max_size=7))
    never = data.draw(st.integers(0, 2))
    situation = happened(*fates, positions=len(fates) + never)
    coalition = data.draw(st.sets(st.integers(0, len(fates) - 1)))
    weights = [data.draw(st.integers(1, 3)) for _ in fates]
    epoch = Epoch(ring, SETTLE, situation, weights=weights)
    assert exactly(epoch.view(coalition), epoch.allowed(coalition))
    if situation.accepted:
        assert recovers(epoch)


def test_a_larger_coalition_learns_no_more_but_the_sum_can_be_one_update() -> None:
    """T + 1 users of T + 2 accepted ones are left with the third; T users never, since two honest ones are left."""
    for situation in model.every_settled(TINY.K, TINY.positions, TINY.T + 2):
        if situation.closed:
            epoch = Epoch(RING, SETTLE, situation)
            for coalition in model.every_coalition(situation.users):
                assert epoch.decide(coalition).private
                if len(coalition) <= TINY.T:
                    assert len(epoch.contributors(coalition)) >= 2
            pair = situation.accepted[:2]
            (left,) = epoch.contributors(pair)
            assert epoch.view(pair).decide(epoch.total([left])).withheld == 1


def test_all_ends_of_an_epoch_at_tiny() -> None:
    ends = list(model.every_settled(3, 4, 3))
    assert len(ends) == len({situation.holders for situation in ends}) == 79
    assert sum(situation.closed for situation in ends) == 7
    assert all((len(situation.accepted) == 3) == situation.closed for situation in ends)


# ---------------------------------------------------------------------------------------- against counting all cases


def counted(rule: Timeouts, situation: Situation, R: int) -> float:
    """The information in the masked updates about all updates given their sum, with every mask and update counted.

    Nobody colludes; masks whose keys are released are set to 0, which tells as much as to know them.
    """
    epoch = Epoch(Ring(R), rule, situation)
    view = epoch.view(())
    known = {symbol for symbol, seen in zip(epoch.space.symbols, view.known(), strict=True) if seen}
    free = [symbol for symbol in epoch.space.symbols if symbol not in known]
    values = every_vector(R, len(free))
    column = dict(zip(free, values, strict=True))
    rows = []
    for forms in epoch.masked.values():
        terms = [(epoch.space.symbols[n], int(c)) for n, c in zip(forms.symbols, forms.matrix[0], strict=True)]
        parts = [column[symbol] * np.uint64(c) for symbol, c in terms if symbol in column]
        rows.append(np.sum(parts, axis=0) % np.uint64(R))
    secrets = [column[epoch.space.symbols[int(form.symbols[0])]] for form in epoch.updates.values()]
    total = np.sum([secrets[u] for u in situation.accepted], axis=0) % np.uint64(R)
    x, seen, given = codes(R, secrets), codes(R, rows), codes(R, [total])
    return entropy(x, given) + entropy(seen, given) - entropy(x, seen, given) - entropy(given)


@pytest.mark.parametrize(
    ("rule", "situation", "bits"),
    [
        (SETTLE, happened(ACCEPTED, ACCEPTED, LATE), 0.0),
        (SETTLE, happened(ACCEPTED, LATE, ACCEPTED), 0.0),
        (SETTLE, happened(LATE, ACCEPTED, ACCEPTED), 0.0),
        (WEAKER["bare"], happened(ACCEPTED, ACCEPTED, LATE), 2.0),
        (WEAKER["both-skipped"], happened(ACCEPTED, ACCEPTED, LATE), 2.0),
        (PAPER, again((ACCEPTED,), (LATE, ACCEPTED)), 2.0),
        (PAPER, again((LATE, ACCEPTED), (ACCEPTED,)), 0.0),
    ],
)
def test_verdicts_are_those_of_counting(rule: Timeouts, situation: Situation, bits: float) -> None:
    """Modulo 4, every update and every unknown mask."""
    assert counted(rule, situation, 4) == pytest.approx(bits, abs=1e-9)
    assert Epoch(Ring(4), rule, situation).decide(()).bits == bits


# -------------------------------------------------------------------------------------------------------- the paper


def test_a_colluder_that_left_with_the_last_key_sees_the_last_honest_update() -> None:
    """The example of the text: K = 3, position 2; with the sum it has x_0 + x_1 and x_3."""
    situation = again((ACCEPTED,), (ACCEPTED,), (GONE, ACCEPTED))
    epoch = Epoch(RING, PAPER, situation)
    assert beyond(PAPER, situation, 2) == ("x_3",)
    assert exactly(epoch.view((2,)), [epoch.total([0, 1]), epoch.total([3])])
    assert beyond(PAPER, situation) == ()
    earlier = again((ACCEPTED,), (GONE, ACCEPTED), (ACCEPTED,))
    assert beyond(PAPER, earlier, 1) == ()
    assert beyond(PAPER, earlier, 1, 3) == ("x_0",)
    for rule in (SETTLE, VOID):
        fates = [GONE if user == 2 else ACCEPTED for user in range(4)]
        found, _ = model.arrivals(rule, 3, 4 if rule is SETTLE else 3, 3, dict(enumerate(fates)))
        assert beyond(rule, found, 2) == ()


def test_a_late_upload_for_a_position_that_was_given_again_shows_a_difference_to_the_server_alone() -> None:
    assert beyond(PAPER, again((ACCEPTED,), (ACCEPTED,), (LATE, ACCEPTED))) == ("x_2 - x_3",)
    assert beyond(PAPER, again((ACCEPTED,), (LATE, ACCEPTED), (ACCEPTED,))) == ()
    assert beyond(PAPER, again((ACCEPTED,), (LATE, ACCEPTED), (ACCEPTED,)), 3) == ("x_1 - x_2",)
    assert beyond(SETTLE, happened(ACCEPTED, ACCEPTED, LATE, ACCEPTED)) == ()


@pytest.mark.parametrize("K", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_what_the_rule_of_the_paper_tells_is_what_the_last_unknown_key_says(K: int) -> None:
    for ring, situation in product((RING, FIELD), some(3, model.every_repeat(K))):
        epoch = Epoch(ring, PAPER, situation)
        for coalition in model.every_coalition(situation.users):
            assert exactly(epoch.view(coalition), learned(epoch, coalition))


def test_an_upload_without_accepted_ones_before_it_is_learned_at_the_last_unknown_key() -> None:
    """Also where positions are skipped: only those after the first accepted honest upload leave masks in a sum."""
    for situation in model.every_pattern(3):
        epoch = Epoch(RING, VOID, situation)
        for coalition in model.every_coalition(situation.users):
            assert exactly(epoch.view(coalition), learned(epoch, coalition))
    alone = Epoch(RING, VOID, happened(LATE, GONE, ACCEPTED))
    assert alone.view(()).decide().functionals == ("x_2[0]",)


@pytest.mark.slow
def test_four_positions_of_the_paper() -> None:
    for situation in some(9, model.every_repeat(4)):
        epoch = Epoch(RING, PAPER, situation)
        for size in range(3):
            for coalition in combinations(situation.users, size):
                assert exactly(epoch.view(coalition), learned(epoch, coalition))


def test_without_timeouts_every_prefix_tells_nothing_until_no_honest_user_is_to_come() -> None:
    for K in range(2, 6):
        for k in range(K + 1):
            epoch = Epoch(RING, PAPER, next(model.every_repeat(K, [()])).until(k))
            for coalition in model.every_coalition(range(K)):
                honest = epoch.honest(coalition, range(k))
                to_come = epoch.honest(coalition, range(k, K))
                received = [epoch.total(honest)] if honest and not to_come else []
                assert exactly(epoch.view(coalition), received)


# ------------------------------------------------------------------------------------------------------------- void


@pytest.mark.slow
@pytest.mark.requirement("BAA-17", "BAA-21")
def test_of_a_void_epoch_one_sum_is_learned_at_most() -> None:
    for K in range(2, 6):
        for situation in model.every_stop(K):
            epoch = Epoch(RING, VOID, situation)
            for coalition in model.every_coalition(situation.users):
                assert exactly(epoch.view(coalition), epoch.allowed(coalition))
                assert exactly(epoch.view(coalition), learned(epoch, coalition))


@pytest.mark.requirement("BAA-27")
def test_updates_of_a_void_epoch_that_are_uploaded_again_show_differences() -> None:
    first, second = happened(ACCEPTED, ACCEPTED, LATE, closed=False), happened(ACCEPTED, ACCEPTED, ACCEPTED)
    for name, found in (("x", ("x_2[0] - x_3[0]",)), ("z", ())):
        space = Space(RING)
        before = Epoch(RING, VOID, first, space=space)
        after = Epoch(RING, VOID, second, people=(0, 1, 3), number=1, space=space, name=name)
        sums = [before.total(range(3)), after.total(range(3))]
        assert exactly(together([before, after], ()), sums)
        alone = together([before, after], ()).decide(after.total(range(3)))
        assert alone.functionals == (found or ("x_0[0] + x_1[0] + x_2[0]",))
        single = together([before, after], (3,)).decide(after.total([0, 1]))
        assert (single.functionals == ("x_2[0]",)) == (name == "x")


# ------------------------------------------------------------------------------------------- rules that are weaker


@pytest.mark.requirement("BAA-12", "BAA-16", "BAA-20")
@pytest.mark.parametrize(
    ("rule", "situation", "coalition", "found"),
    [
        ("again", again((ACCEPTED,), (ACCEPTED,), (LATE, ACCEPTED)), (), ("x_2 - x_3",)),
        ("again", again((ACCEPTED,), (ACCEPTED,), (GONE, ACCEPTED)), (2,), ("x_3",)),
        ("bare", happened(ACCEPTED, ACCEPTED, LATE), (), ("x_2",)),
        ("bare", happened(ACCEPTED, ACCEPTED, LATE, ACCEPTED), (3,), ("x_2",)),
        ("both-skipped", happened(ACCEPTED, ACCEPTED, LATE), (), ("x_2",)),
        ("both-accepted", happened(ACCEPTED, ACCEPTED, ACCEPTED), (), ("x_0", "x_1")),
    ],
)
def test_no_part_of_the_repair_can_be_left_out(
    rule: str, situation: Situation, coalition: tuple[int, ...], found: tuple[str, ...]
) -> None:
    assert beyond(WEAKER[rule], situation, *coalition) == found
    if len({position for position, _ in situation.holders}) == len(situation.holders):
        assert beyond(SETTLE, situation, *coalition) == ()


@pytest.mark.requirement("BAA-13", "BAA-31")
def test_a_user_without_the_boxes_of_accepted_positions_is_bare() -> None:
    """Its mask was to be the pairs with those before; its self key is released."""
    whole = happened(ACCEPTED, ACCEPTED, ACCEPTED)
    epoch = Epoch(RING, SETTLE, replace(whole, offered={2: ()}))
    assert exactly(epoch.view(()), [epoch.total([2])])
    epoch = Epoch(RING, SETTLE, replace(whole, offered={1: (), 2: (1,)}))
    assert exactly(epoch.view(()), [epoch.total([1, 2])])


@pytest.mark.requirement("BAA-10")
def test_one_user_at_all_positions_but_one_has_the_last_update() -> None:
    epoch = Epoch(RING, SETTLE, happened(ACCEPTED, ACCEPTED, ACCEPTED), people=(0, 0, 1))
    assert exactly(epoch.view((0,)), [epoch.total([2])])


def test_fewer_released_keys_give_no_sum() -> None:
    for accepted, others in (((), ("pair",)), (("self",), ())):
        epoch = Epoch(RING, replace(SETTLE, accepted=accepted, others=others), happened(ACCEPTED, ACCEPTED, GONE))
        assert not recovers(epoch)
        assert epoch.decide(()).leak == 1


# -------------------------------------------------------------------------------------------------------- planted


def no_masks_before(ring: Ring, weighted: Any, masks: Masks) -> Any:
    return ring.signed_sum(weighted, cores.plus(masks.after), cores.plus([] if masks.own is None else [masks.own]))


def no_own_mask(ring: Ring, weighted: Any, masks: Masks) -> Any:
    return ring.signed_sum(weighted, cores.plus(masks.after), cores.minus(masks.before))


def masks_for_the_next_only(ring: Ring, weighted: Any, masks: Masks) -> Any:
    own = [] if masks.own is None else [masks.own]
    return ring.signed_sum(weighted, cores.plus(list(masks.after)[:1]), cores.plus(own), cores.minus(masks.before))


@pytest.mark.requirement("BAA-26")
@pytest.mark.parametrize("planted", [no_masks_before, no_own_mask, masks_for_the_next_only])
def test_a_planted_bug_in_the_core_is_seen(planted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "add_masks", planted)
    cases = [
        exactly(epoch.view(coalition), epoch.allowed(coalition))
        for situation in model.every_pattern(3)
        for epoch in [Epoch(RING, SETTLE, situation)]
        for coalition in model.every_coalition(range(3))
    ]
    assert not all(cases)


def test_a_core_that_is_not_affine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "add_masks", lambda ring, weighted, masks: ring.multiply(weighted, weighted))
    with pytest.raises(NotAffine, match="add_masks"):
        Epoch(RING, SETTLE, happened(ACCEPTED, ACCEPTED))


def test_a_recovery_that_leaves_masks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cores.recover
    monkeypatch.setattr(cores, "recover", lambda p, masked, own, skipped: real(p, masked, own, []))
    assert not recovers(Epoch(RING, SETTLE, happened(ACCEPTED, ACCEPTED, GONE)))
    assert recovers(Epoch(RING, SETTLE, happened(ACCEPTED, ACCEPTED)))


@pytest.mark.requirement("ERR-02")
def test_a_ring_that_is_too_small_to_recover_in_is_named() -> None:
    assert recovers(Epoch(Ring(7), SETTLE, happened(ACCEPTED, ACCEPTED)))
    with pytest.raises(ParameterError, match=r"^ring\.modulus = 5: must be an integer >= 7$"):
        Epoch(Ring(5), SETTLE, happened(ACCEPTED, ACCEPTED)).recovered()


@pytest.mark.requirement("BAA-26")
@given(st.data())
def test_the_core_that_is_probed_is_the_one_that_runs(data: st.DataObject) -> None:
    """A masked update is its form, with the same update, weight and masks."""
    elements = st.integers(0, RING.modulus - 1)
    user, positions = data.draw(st.integers(0, 3)), 4
    situation = happened(*[ACCEPTED] * positions)
    weight = data.draw(st.integers(1, TINY.c_g))
    epoch = Epoch(RING, SETTLE, situation, weights=[weight] * positions)
    forms = epoch.masked[user]
    update = data.draw(st.sampled_from([0, 1, 15]))
    value = {epoch.space.symbols[n]: data.draw(elements) for n in forms.symbols}
    value[epoch.space.symbols[epoch.updates[user].symbols[0]]] = update

    def drawn(*tokens: Any) -> list[Any]:
        return [np.full(2, value[epoch.space.symbols[form.symbols[0]]], dtype=np.uint64) for form in tokens]

    before = drawn(*(epoch.mask(other, user) for other in range(user)))
    after = drawn(*(epoch.mask(user, position) for position in range(user + 1, positions)))
    masks = Masks(before, after, drawn(epoch.self_mask(user))[0])
    masked = cores.mask_update(TINY, np.full(2, update, dtype=np.uint64), weight, masks)
    wanted = sum(int(c) * value[epoch.space.symbols[n]] for n, c in zip(forms.symbols, forms.matrix[0], strict=True))
    assert masked.tolist() == [wanted % RING.modulus] * 2


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("positions", "holders", "said"),
    [
        (2, (Holder(2, ACCEPTED),), "position"),
        (2, (Holder(0, "early"),), "accepted, late, gone"),
        (2, (Holder(1, ACCEPTED), Holder(0, ACCEPTED)), "ascending"),
        (2, (Holder(0, ACCEPTED), Holder(0, ACCEPTED)), "one accepted update"),
    ],
)
def test_nonsense_is_no_situation(positions: int, holders: tuple[Holder, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Situation(positions, holders)


def test_weights_and_people_are_one_for_each_user() -> None:
    with pytest.raises(LengthMismatch, match="weights"):
        Epoch(RING, SETTLE, happened(ACCEPTED, LATE), weights=[1])
    with pytest.raises(LengthMismatch, match="people"):
        Epoch(RING, SETTLE, happened(ACCEPTED, LATE), people=[1, 2, 3])
    unordered: Any = {5, 3}  # it counted as persons 3 and 5
    for name in ("weights", "people"):
        with pytest.raises(ParameterError, match=rf"^{name} = 'set': must be a sequence of integers$"):
            Epoch(RING, SETTLE, happened(ACCEPTED, LATE), **{name: unordered})


def test_users_come_until_the_epoch_ends() -> None:
    found, people = model.arrivals(SETTLE, 3, 4, 3, {1: GONE, 2: None})
    assert people == (0, 1, 3, 4)
    assert found == happened(ACCEPTED, GONE, ACCEPTED, ACCEPTED)
    found, people = model.arrivals(PAPER, 3, 3, 3, {1: LATE})
    assert found == again((ACCEPTED,), (LATE, ACCEPTED), (ACCEPTED,))
    found, people = model.arrivals(VOID, 3, 3, 3, {1: LATE})
    assert (found, people) == (happened(ACCEPTED, LATE, positions=3, closed=False), (0, 1))
    assert set(RULES) == {"settle", "void", "paper"}


def test_an_error_names_the_holders_or_what_was_given_for_users() -> None:
    with pytest.raises(ParameterError, match=r"^holders = \(Holder\("):
        Situation(2, (Holder(1, ACCEPTED), Holder(0, ACCEPTED)))
    for numbers in ([1], (1,)):
        with pytest.raises(LengthMismatch, match=r"^weights = \(1,\): must be 2, one for each user"):
            Epoch(RING, SETTLE, happened(ACCEPTED, LATE), weights=numbers)


@pytest.mark.requirement("BAA-20")
def test_an_epoch_that_ends_with_a_release_has_ended_at_the_close_and_no_earlier() -> None:
    """Without a release the close ends it as well, and before it the last upload of an honest user does."""
    for rule in (SETTLE, VOID, PAPER):
        for fates in ((ACCEPTED, ACCEPTED), (ACCEPTED, GONE)):
            assert Epoch(RING, rule, happened(*fates)).ended(())
            everybody = GONE not in fates
            open_epoch = Epoch(RING, rule, happened(*fates, closed=False))
            assert open_epoch.ended(()) is (everybody and rule is not SETTLE)


@pytest.mark.parametrize("coalition", [(True,), (-1,), (0.0,), "0", 0, None, iter([0])])
def test_what_is_no_coalition_is_refused(coalition: Any) -> None:
    with pytest.raises(ParameterError, match=r"^coalition = .*: must be "):
        model.together([Epoch(RING, SETTLE, next(iter(model.every_pattern(3))))], coalition)
    with pytest.raises(LengthMismatch, match=r"^len\(epochs\) = 0: must be 1 or more$"):
        model.together([], ())


@pytest.mark.parametrize("closed", ["no", 0, None])
def test_whether_an_epoch_was_closed_is_a_truth_value(closed: Any) -> None:
    with pytest.raises(ParameterError, match=r"^closed = .*must be of the class bool$"):
        Situation(2, (Holder(0, ACCEPTED), Holder(1, ACCEPTED)), closed)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda two: Epoch(RING, SETTLE, two, weights=(-1, 1)), r"weights = -1: must be an integer in \[0, "),
        (
            lambda two: Epoch(RING, SETTLE, two, weights=(1, RING.modulus)),
            r"weights = \d+: must be an integer in \[0, ",
        ),
        (lambda two: Epoch(RING, SETTLE, two, people=(0, -1)), "people = -1: must be an integer >= 0$"),
        (
            lambda two: Epoch(RING, SETTLE, two).total((0, 9)),
            r"users = 9: must be one of the users that uploaded, \(0, 1\)",
        ),
        (
            lambda two: model.witness(Epoch(RING, SETTLE, two), {9: 1}),
            r"functional = 9: must be one of the users that uploaded, \(0, 1\)$",
        ),
        (lambda two: model.witness(Epoch(RING, SETTLE, two), {0: -1}), r"functional = -1: must be an integer in \[0, "),
        (lambda two: list(model.audit(RING, SETTLE, [two], -1)), "largest = -1: must be an integer >= 0$"),
        (lambda two: list(model.every_pattern(-1)), r"positions = -1: must be an integer in \[0, 65536\]$"),
        (lambda two: list(model.every_repeat(-1)), r"positions = -1: must be an integer in \[0, 65536\]$"),
        (lambda two: list(model.every_stop(-1)), r"positions = -1: must be an integer in \[0, 65536\]$"),
        (lambda two: list(model.every_settled(2, -1, 2)), r"positions = -1: must be an integer in \[0, 65536\]$"),
        (lambda two: list(model.every_settled(-1, 2, 2)), "K = -1: must be an integer >= 0$"),
        (lambda two: Situation(-1, ()), r"positions = -1: must be an integer in \[0, 65536\]$"),
        (lambda two: next(model.every_pattern(2**16 + 1)), "positions = 65537: must be an integer in "),
        (lambda two: next(model.every_repeat(2**31)), "positions = 2147483648: must be an integer in "),
        (
            lambda two: next(model.every_repeat(2, [("early",)])),
            "extras = 'early': must be one of accepted, late, gone",
        ),
        (lambda two: next(model.every_settled(2, 3, cast(Any, "2"))), "enough = '2': must be an integer >= 0$"),
        (
            lambda two: next(model.every_settled(2, 3, 2, (Holder(1, GONE),))),
            "holders = .*one for each position from 0",
        ),
        (lambda two: model.arrivals(SETTLE, cast(Any, "3"), 4, 3, {}), "K = '3': must be an integer >= 0$"),
        (lambda two: model.arrivals(SETTLE, 3, 4, -1, {}), "enough = -1: must be an integer >= 0$"),
        (lambda two: model.arrivals(SETTLE, 3, 4, 3, {0: "accepte"}), "fates = 'accepte': must be one of accepted, "),
        (lambda two: model.arrivals(SETTLE, 3, 4, 3, {-1: LATE}), "fates = -1: must be an integer >= 0$"),
        (lambda two: list(model.every_coalition(cast(Any, ("0", 1)))), "people = '0': must be an integer >= 0$"),
        (lambda two: two.at(-1), r"user = -1: must be a user in \[0, 2\)$"),
        (lambda two: two.boxes(2), r"user = 2: must be a user in \[0, 2\)$"),
        (lambda two: two.until(-1), r"user = -1: must be an integer in \[0, 2\]$"),
        (lambda two: replace(two, holders=(0, 1)), "holders = 'int': must be of the class Holder$"),
        (lambda two: replace(two, offered=cast(Any, [])), "offered = 'tuple': must be a mapping$"),
        (lambda two: replace(two, offered={2: ()}), r"offered = 2: must be a user in \[0, 2\)$"),
        (lambda two: replace(two, offered={1: (2,)}), r"offered = 2: must be an integer in \[0, 1\]$"),
        (lambda two: Epoch(RING, SETTLE, two, number=-1), "number = -1: must be an integer >= 0$"),
        (lambda two: Epoch(RING, SETTLE, two, name=cast(Any, 5)), "name = 'int': must be of the class str$"),
        (lambda two: Epoch(RING, SETTLE, two, space=Space(Ring(3))), "space = 'one modulo 3': must be one modulo 16$"),
        (lambda two: Epoch(RING, SETTLE, two).honest((), (-1, 0)), r"users = -1: must be a user in \[0, 2\)$"),
        (lambda two: Epoch(RING, SETTLE, two).contributors((True,)), "coalition = True: must be an integer >= 0$"),
        (lambda two: Epoch(RING, SETTLE, two).ended((-1,)), "coalition = -1: must be an integer >= 0$"),
        (lambda two: learned(Epoch(RING, PAPER, two), cast(Any, ("0",))), "coalition = '0': must be an integer >= 0$"),
        (lambda two: Timeouts(cast(Any, 5)), "name = 'int': must be of the class str$"),
        (lambda two: Epoch(RING, SETTLE, two).mask(0, 0), r"position = 0: must be an integer in \[1, 1\]$"),
        (lambda two: Epoch(RING, SETTLE, two).self_mask(-1), r"user = -1: must be a user in \[0, 2\)$"),
        (lambda two: Epoch(RING, SETTLE, two).total(()), r"len\(users\) = 0: must be 1 or more$"),
        (lambda two: Epoch(RING, SETTLE, two).total((0, 0)), "users = 0: must be a user that is named once$"),
        (lambda two: Epoch(RING, SETTLE, two).total(cast(Any, (0.0,))), "users = 'float': must be an integer"),
        (lambda two: recovers(Epoch(RING, SETTLE, happened(LATE))), r"len\(accepted\) = 0: must be 1 or more$"),
        (
            lambda two: learned(Epoch(RING, SETTLE, two), ()),
            "epoch = 'one under the rule settle': must be without self",
        ),
        (
            lambda two: learned(Epoch(RING, PAPER, replace(two, offered={1: ()})), ()),
            "epoch = 'one in which boxes were held back': must be one in which each user gets all boxes$",
        ),
        (lambda two: replace(SETTLE, accepted=("foo",)), "accepted = 'foo': must be one of pair, self$"),
        (lambda two: replace(SETTLE, others=cast(Any, "self")), "others = 'str': must be of the class tuple$"),
        (lambda two: replace(SETTLE, own=cast(Any, 1)), "own = 'int': must be of the class bool$"),
    ],
)
def test_what_is_no_part_of_an_epoch_is_refused(call: Callable[[Situation], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        call(happened(ACCEPTED, LATE))


def test_epochs_of_several_spaces_are_not_seen_together() -> None:
    """Numbers of symbols are those of one space: mixed, they made two unknowns one."""
    first, second = (Epoch(RING, SETTLE, happened(ACCEPTED, ACCEPTED), number=number) for number in (0, 1))
    with pytest.raises(ParameterError, match=r"^epochs = 'of several spaces': must be of one space"):
        together([first, second], ())
    with pytest.raises(ParameterError, match=r"^view = 'of several spaces': must be of one space"):
        second.show(first.view(()))
    three = Epoch(RING, SETTLE, happened(*3 * [ACCEPTED]))
    with pytest.raises(ParameterError, match=r"^allowed = 'forms of another space': must be forms of the space of"):
        exactly(Epoch(RING, PAPER, Situation(0, ())).view(()), [three.total((0, 1, 2))])
    with pytest.raises(ParameterError, match=r"^forms\[0\] = 'int': must be of the class Forms$"):
        exactly(first.view(()), cast(Any, {0, 1}))


def test_numbers_of_numpy_and_lists_make_the_same_epoch() -> None:
    two = happened(ACCEPTED, LATE)
    assert Situation(np.int64(2), [Holder(np.int64(0), ACCEPTED), Holder(1, LATE)]) == two  # type: ignore[arg-type]
    assert [*model.every_settled(2, 2, np.int64(2))] == [*model.every_settled(2, 2, 2)]  # type: ignore[arg-type]
    assert [*model.every_coalition((1, 0, 1))] == [(), (0,), (1,), (0, 1)]


def test_epochs_of_many_positions_are_listed_without_recursion() -> None:
    first = next(model.every_settled(2000, 2000, 3))
    assert first == happened(*2000 * [ACCEPTED])
