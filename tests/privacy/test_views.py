"""Views: symbols, derivations, what follows from which seeds, and small rounds with pairwise masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from math import isclose, lcm, log2
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy.probe import probe
from secagg_spec.privacy.views import (
    Derivation,
    Forms,
    Rule,
    Rules,
    Space,
    View,
    closure,
    decide_together,
    join,
    user_token,
)
from tests.privacy.enumeration import codes, conditional_information, every_vector
from tests.strategies import integers_of, vector

RINGS = pytest.mark.parametrize("ring", [PrimeField(7), Ring(6), Ring(2**32), PrimeField()], ids=repr)
BASE = Derivation(("seed", 0), b"session", "protocol", 0, "mask")
Edge = tuple[int, int]


def adding(ring: Ring, inputs: Forms, *others: Forms, space: Space) -> Forms:
    """The sum of vectors of forms."""
    parts = [inputs, *others]
    size = len(inputs)

    def core(v: UintArray) -> UintArray:
        return ring.sum(v.reshape(len(parts), size))

    return space.apply(probe(ring, core, size * len(parts)), *parts)


# ----------------------------------------------------------------------------------------------- symbols and forms


def test_equal_derivations_are_the_same_symbols() -> None:
    space = Space(PrimeField(7))
    first, again = space.derived(BASE, 2), space.derived(replace(BASE), 3)
    assert first.symbols.tolist() == again.symbols.tolist()[:2]
    assert len(space.symbols) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"seed": ("seed", 1)},
        {"session": b"other"},
        {"protocol": "other"},
        {"round": 1},
        {"purpose": "other"},
        {"segment": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_part_of_a_derivation_separates_symbols(change: Mapping[str, object]) -> None:
    space = Space(PrimeField(7))
    first, second = space.derived(BASE, 2), space.derived(replace(BASE, **change), 2)  # type: ignore[arg-type]
    assert not set(first.symbols.tolist()) & set(second.symbols.tolist())


def test_a_symbol_may_stand_twice_in_one_vector() -> None:
    space = Space(PrimeField(7))
    a, b = space.drawn("a", 0, 1), space.drawn("b", 0, 1)
    forms = join([b, a, b])
    assert integers_of(forms.matrix) == [[0, 1], [1, 0], [0, 1]]
    assert integers_of(join([]).matrix) == []


@given(st.permutations(range(4)), st.lists(st.integers(0, 6), min_size=8, max_size=8))
def test_applying_a_core_to_forms_is_applying_it_to_values(order: list[int], numbers: list[int]) -> None:
    field = PrimeField(7)
    space = Space(field)
    symbols = [space.drawn("a", user, 1) for user in range(4)]
    chosen, matrix = [symbols[i] for i in order], vector(numbers).reshape(2, 4)
    forms = space.apply(probe(field, lambda v: field.matmul(matrix, v.reshape(-1, 1))[:, 0], 4), *chosen)
    values = vector([2, 3, 5, 6])
    by_forms = field.matmul(forms.matrix, values[forms.symbols].reshape(-1, 1))[:, 0]
    assert np.array_equal(by_forms, field.matmul(matrix, values[order].reshape(-1, 1))[:, 0])


@pytest.mark.parametrize("index", [-1, 2, True, 0.0, "0", None])
def test_a_form_that_there_is_not_is_refused(index: Any) -> None:
    forms = Space(PrimeField(7)).secret("x", 0, range(2))
    with pytest.raises(ParameterError, match=r"^index = .*: must be an integer in \[0, 1\]$"):
        forms.row(index)


def test_a_name_is_readable() -> None:
    space = Space(PrimeField(7))
    view = View(space, ())
    view.see(adding(space.ring, space.secret("x", 2, [0]), space.secret("x", 3, [0]), space=space))
    assert view.decide().functionals == ("x_2[0] + x_3[0]",)


# ------------------------------------------------------------------------------------------------------ knowledge


def test_seeds_follow_from_keys_keys_from_shares() -> None:
    shares = tuple(("share", "key 0", holder) for holder in range(4))
    rules = [
        *(Rule(share, (user_token(holder),)) for holder, share in enumerate(shares)),
        Rule("key 0", shares, threshold=3),
        Rule("key 0", (user_token(0),)),
        Rule("key 1", (user_token(1),)),
        Rule("seed 0 1", ("key 0", "key 1")),
    ]
    assert "seed 0 1" in closure([user_token(0)], rules)
    assert "seed 0 1" in closure([user_token(1)], rules)
    assert "seed 0 1" not in closure([user_token(2), user_token(3)], rules)
    assert "seed 0 1" in closure([user_token(2), user_token(3), shares[0]], rules)
    assert "key 1" not in closure([user_token(0), user_token(2), user_token(3)], rules)


def test_a_source_that_is_named_twice_counts_once() -> None:
    assert "key" not in closure(["a"], [Rule("key", ("a", "a"), threshold=2)])


@RINGS
def test_a_masked_value_is_hidden_until_its_seed_is_known(ring: Ring) -> None:
    for reveal in (False, True):
        space = Space(ring)
        view = View(space, (), [Rule(BASE.seed, (user_token(0),))])
        view.see(adding(ring, space.secret("x", 0, [0]), space.derived(BASE, 1), space=space))
        if reveal:
            view.reveal(BASE.seed)
        assert view.decide().index == (ring.modulus if reveal else 1)


@RINGS
def test_known_symbols_are_rows_of_the_view(ring: Ring) -> None:
    """Leaving out the columns of known symbols gives the verdict of the view in which they are rows."""
    for coalition in ((), (0,), (1,), (0, 1), (0, 2)):
        space = Space(ring)
        updates = [space.secret("x", user, [0]) for user in range(3)]
        masks = [space.drawn("mask", user, 1) for user in range(3)]
        seen = [adding(ring, updates[u], masks[u], masks[(u + 1) % 3], space=space) for u in range(3)]
        short, long = View(space, coalition), View(space, ())
        short.see(*seen)
        long.see(*seen, *(updates[user] for user in coalition), *(masks[user] for user in coalition))
        assert short.decide().index == long.decide(*(updates[user] for user in coalition)).index


tokens = st.integers(0, 7)
rules_of_tokens = st.lists(
    st.builds(Rule, tokens, st.lists(tokens, max_size=4).map(tuple), st.integers(1, 3)), max_size=12
)


@example([Rule(at + 1, (at,)) for at in range(7)], frozenset({0}), [frozenset({7})])
@given(rules_of_tokens, st.frozensets(tokens), st.lists(st.frozensets(tokens), max_size=3))
def test_what_is_asked_for_is_known_by_the_closure_of_all_rules(
    rules: list[Rule], revealed: frozenset[int], asked: list[frozenset[int]]
) -> None:
    """Rules may lead in circles."""
    remembered = Rules(rules)
    for some in [*asked, *asked]:
        assert remembered.known(revealed, some) == some & closure(revealed, rules)


# ------------------------------------------------------------------------------------------------- pairwise masks


def pairwise_round(
    ring: Ring, users: int, edges: list[Edge], coalition: tuple[int, ...], *, self_mask: bool = True, rounds: int = 1
) -> View:
    """Masked updates y_i = x_i + b_i +- PRG(seed of each edge), with all self masks revealed after the round."""
    space = Space(ring)
    view = View(space, coalition, [Rule(edge, tuple(map(user_token, edge))) for edge in edges])
    minus = probe(ring, lambda v: ring.subtract(np.zeros(1, dtype=np.uint64), v), 1)
    for number in range(rounds):
        for user in range(users):
            terms = [space.secret(f"x{number}", user, [0])]
            for edge in edges:
                if user in edge:
                    mask = space.derived(Derivation(edge, b"", "toy", number, "pair"), 1)
                    terms.append(mask if user == edge[0] else space.apply(minus, mask))
            if self_mask:
                own = Derivation(("self", user), b"", "toy", number, "self")
                terms.append(space.derived(own, 1))
                view.reveal(own.seed)
            view.see(adding(ring, *terms, space=space))
    return view


def total(view: View, name: str, users: range) -> Forms:
    """The sum of a secret over users."""
    parts = [view.space.secret(name, user, [0]) for user in users]
    return adding(view.space.ring, *parts, space=view.space)


@pytest.mark.slow
@RINGS
def test_pairwise_masks_on_the_complete_graph_leave_the_sum(ring: Ring) -> None:
    edges = list(combinations(range(4), 2))
    for size in range(4):
        for coalition in combinations(range(4), size):
            view = pairwise_round(ring, 4, edges, coalition)
            verdict = view.decide(total(view, "x0", range(4)))
            assert verdict.private
            assert verdict.withheld == 1


@RINGS
def test_on_a_graph_of_two_components_the_sum_of_each_is_learned(ring: Ring) -> None:
    view = pairwise_round(ring, 5, [(0, 1), (1, 2), (3, 4)], ())
    verdict = view.decide(total(view, "x0", range(5)))
    assert verdict.index == ring.modulus
    assert verdict.functionals == ("x0_3[0] + x0_4[0]",)


@RINGS
def test_a_colluder_who_cuts_the_graph_separates_the_sums(ring: Ring) -> None:
    view = pairwise_round(ring, 3, [(0, 1), (1, 2)], (1,))
    assert view.decide(total(view, "x0", range(3))).index == ring.modulus
    whole = pairwise_round(ring, 3, [(0, 1), (1, 2), (0, 2)], (1,))
    assert whole.decide(total(whole, "x0", range(3))).private


@RINGS
def test_a_stream_that_is_used_in_two_rounds_leaks_the_difference(ring: Ring) -> None:
    edges = list(combinations(range(3), 2))
    fresh = pairwise_round(ring, 3, edges, (), rounds=2)
    assert fresh.decide(total(fresh, "x0", range(3)), total(fresh, "x1", range(3))).private

    space = Space(ring)
    view = View(space, ())
    for number in range(2):  # the mutant: the round is not in the derivation
        view.see(adding(ring, space.secret(f"x{number}", 0, [0]), space.derived(BASE, 1), space=space))
    verdict = view.decide()
    assert verdict.index == ring.modulus
    assert verdict.functionals == ("x0_0[0] - x1_0[0]",)


@given(
    st.sampled_from([(2, 6), (4, 6), (6, 9), (5, 10), (4, 9)]), st.lists(st.integers(0, 8), min_size=18, max_size=18)
)
def test_views_of_two_moduli_tell_together_what_counting_says(moduli: tuple[int, int], numbers: list[int]) -> None:
    """Two rows of each view, over two secrets and a mask that both views have, and a sum that may be known."""
    L, first = lcm(*moduli), Space(Ring(moduli[0]))
    cases = every_vector(L, 3)
    tables = np.array(numbers, dtype=np.uint64).reshape(2, 3, 3)
    views, received, known = [], [], []
    for R, table in zip(moduli, tables, strict=True):
        space, rows = Space(Ring(R), first), table % np.uint64(R)
        symbols = join([space.secret("x", 0, range(2)), space.derived(BASE, 1)]).symbols
        views.append((View(space, ()), [Forms(symbols[:2], rows[2:, :2])]))
        views[-1][0].see(Forms(symbols, rows[:2]))
        received += list(rows[:2] @ cases % np.uint64(R))
        known += list(rows[2:, :2] @ cases[:2] % np.uint64(R))
    verdict = decide_together([view for view, _ in views], [may for _, may in views])
    s, v, f = codes(L, cases[:2]), codes(L, received), codes(L, known)
    assert isclose(conditional_information(s, v, f), verdict.bits, abs_tol=1e-9)
    assert isclose(conditional_information(s, f, v), log2(verdict.withheld), abs_tol=1e-9)


def test_functionals_of_several_moduli_are_named_with_their_own() -> None:
    """One mask over a segment modulo 6 and one modulo 9 tells the difference modulo 3."""
    first = Space(Ring(6))
    views = []
    for element, space in enumerate((first, Space(Ring(9), first))):
        views.append(View(space, ()))
        views[-1].see(adding(space.ring, space.secret("x", 0, [element]), space.derived(BASE, 1), space=space))
    verdict = decide_together(views, [(), ()])
    assert (verdict.functionals, verdict.index) == (("x_0[0] - x_0[1] modulo 3",), 3)


@RINGS
def test_one_stream_for_two_segments_leaks_the_difference(ring: Ring) -> None:
    for segments, private in (((0, 1), True), ((0, 0), False)):
        space = Space(ring)
        view = View(space, ())
        for element, segment in enumerate(segments):
            mask = space.derived(replace(BASE, segment=segment), 1)
            view.see(adding(ring, space.secret("x", 0, [element]), mask, space=space))
        assert view.decide().private is private


def test_a_half_mask_modulo_6_is_seen() -> None:
    """A mask that is multiplied by 3 before it is added covers the parity only."""
    ring = Ring(6)
    space = Space(ring)
    view = View(space, ())
    triple = probe(ring, lambda v: ring.multiply(v, np.full(1, 3, dtype=np.uint64)), 1)
    mask = space.apply(triple, space.drawn("mask", 0, 1))
    view.see(adding(ring, space.secret("x", 0, [0]), mask, space=space))
    assert (view.decide().index, view.decide().functionals) == (3, ("2*x_0[0]",))


def test_a_view_says_what_it_determines_of_one_user_alone() -> None:
    """The sum of two users tells nothing of either alone; with the first one's input it tells the other's."""
    field = PrimeField(7)
    space = Space(field)
    inputs = [space.secret("x", user, range(2)) for user in range(3)]
    view = View(space, (2,))
    view.see(adding(field, inputs[0], inputs[1], inputs[2], space=space))
    assert not view.decide().private
    assert all(view.about(user).private for user in range(3))
    view.see(inputs[0].row(1))
    assert view.about(0).functionals == ("x_0[1]",)
    assert view.about(1).functionals == ("x_1[1]",)
    assert view.about(2).private


def test_each_view_has_its_own_part_of_what_is_allowed() -> None:
    views = [View(Space(Ring(6)), ())]
    assert decide_together(views, [()]).private
    for count in (0, 2):
        with pytest.raises(LengthMismatch, match=rf"^len\(allowed\) = {count}: must be 1, one entry for each view$"):
            decide_together(views, [()] * count)
    with pytest.raises(LengthMismatch, match=r"^len\(views\) = 0: must be 1 or more$"):
        decide_together([], [])


def _no_secrets(space: Space) -> object:
    return View(space, ()).decide(space.drawn("mask", 1, 1))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda space: space.drawn("mask", 1, -3), r"count = -3: must be an integer in \[0, 8192\]"),
        (
            lambda space: space.derived(Derivation("s", b"", "p", 0, "mask"), -1),
            r"count = -1: must be an integer in \[0, 8192\]",
        ),
        (_no_secrets, "allowed = .*: must be forms of secrets alone"),
        (
            lambda space: space.secret("x", 0, range(3)).without(np.zeros(2, dtype=np.bool_)),
            r"len\(known\) = 2: must be 3 or more, one for each symbol",
        ),
        (
            lambda space: space.secret("x", 0, (0,)).without(cast(Any, [True])),
            "known = 'list': must be a numpy array of dtype bool",
        ),
        (lambda space: space.secret("x", -1, (0,)), "user = -1: must be an integer >= 0"),
        (lambda space: space.secret("x", 0, cast(Any, (0.5,))), "indices = 0.5: must be an integer >= 0"),
        (lambda space: space.drawn(cast(Any, 5), 0, 1), "name = 'int': must be of the class str"),
        (lambda space: space.of(cast(Any, ["x"])), "symbols = 'str': must be of the class Secret, Drawn or Derived"),
        (
            lambda space: Derivation(cast(Any, [1]), b"", "p", 0, "mask"),
            "seed = 'a token without a hash': must be tokens, each of which has a hash",
        ),
        (
            lambda space: Forms(np.zeros(2, np.intp), np.zeros((1, 3), np.uint64)),
            r"matrix.shape = \(1, 3\): must be \(1, 2\)",
        ),
        (
            lambda space: space.apply(probe(Ring(9), lambda x: x, 1), space.secret("x", 0, (0,))),
            "core = 'one modulo 9': must be one modulo 8",
        ),
        (
            lambda space: space.apply(probe(Ring(8), lambda x: x, 2), space.secret("x", 0, (0,))),
            r"len\(inputs\) = 1: must be 2 forms in all",
        ),
        (lambda space: join(cast(Any, {space.drawn("m", 0, 1)})), "parts = 'set': must be a sequence of Forms"),
        (lambda space: join(cast(Any, [0])), r"parts\[0\] = 'int': must be of the class Forms"),
        (lambda space: Rule("a", (), 0), "threshold = 0: must be an integer >= 1"),
        (lambda space: closure([], cast(Any, [0])), r"rules\[0\] = 'int': must be of the class Rule"),
        (lambda space: closure(cast(Any, [[0]]), []), "known = 'a token without a hash': .*"),
        (lambda space: View(space, (), cast(Any, [0])), r"rules\[0\] = 'int': must be of the class Rule"),
        (lambda space: View(space, ()).see(cast(Any, 0)), "messages = 'int': must be of the class Forms"),
        (lambda space: View(space, ()).reveal(cast(Any, [0])), "tokens = 'a token without a hash': .*"),
        (lambda space: View(space, ()).about(-1), "user = -1: must be an integer >= 0"),
        (
            lambda space: View(space, ()).decide(Space(Ring(8)).secret("x", 0, (0,))),
            "allowed = 'forms of another space': must be forms of the space of the view",
        ),
        (
            lambda space: decide_together([View(space, ())], [[space.drawn("mask", 0, 1)]]),
            "allowed = '1 vectors of forms': must be forms of secrets alone",
        ),
        (
            lambda space: decide_together([View(space, ()), View(Space(Ring(8)), ())], [[], []]),
            "views = 'views of several spaces': must be views of spaces that share their symbols",
        ),
        (lambda space: decide_together([cast(Any, 0)], [[]]), r"views\[0\] = 'int': must be of the class View"),
    ],
)
def test_forms_that_do_not_fit_are_refused(call: Callable[[Space], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        call(Space(Ring(8)))


def test_rules_and_revealed_tokens_may_be_lists() -> None:
    asked: Any = ["b"]
    assert Rules([Rule("b", ("a",))]).known({"a"}, asked) == {"b"}
    view = View(Space(Ring(8)), (), [Rule("b", ("a",))])
    tokens: Any = ["a"]
    view.reveal_all(tokens)
    view.see(view.space.derived(Derivation("b", b"", "p", 0, "mask"), 1))
    assert view.known().all()
