"""Represent what a coalition sees as linear forms in symbols.

A *symbol* is an unknown element: a secret of a user, a value that a user sampled, or an output of the PRG. Equal
symbols are one unknown, so a PRG output that is derived twice from the same values is the same symbol wherever it is
used. A message is a vector of *forms*, linear in symbols; it is computed by applying the probed map of a core to the
forms of its inputs. Constants are public and are left out: they change no verdict.

A *view* is what the server and some users see: messages, and every secret, sampled value and known PRG output of the
coalition. Channels between users are ideal: the coalition does not see messages between honest users, and sees in
plaintext the messages that its members receive.

Source: docs/explanation/privacy-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy.probe import AffineMap
from secagg_spec.privacy.verdict import Verdict, decide, decide_rows

Token: TypeAlias = Hashable
"""A seed, a key, or a share of one: something that is known as a whole or not at all."""
_MOST_ELEMENTS = 2**13
"""The most elements that are named at once: their forms are a matrix of half a gigabyte."""


@dataclass(frozen=True)
class Secret:
    """Element `index` of the secret `name` of a user."""

    name: str
    user: int
    index: int

    def __str__(self) -> str:
        return f"{self.name}_{self.user}[{self.index}]"


@dataclass(frozen=True)
class Drawn:
    """Element `index` of the value `name` that a user sampled, uniform and fresh."""

    name: str
    user: int
    index: int


@dataclass(frozen=True)
class Derivation:
    """The values from which one PRG stream is derived; equal derivations give the same stream.

    Raises `ParameterError` for a seed without a hash.
    """

    seed: Token
    session: bytes
    protocol: str
    round: int
    purpose: str
    segment: int = 0

    def __post_init__(self) -> None:
        """Check the seed."""
        _tokens("seed", (self.seed,))


@dataclass(frozen=True)
class Derived:
    """Element `index` of a PRG stream."""

    derivation: Derivation
    index: int


Symbol: TypeAlias = Secret | Drawn | Derived


def _tokens(name: str, tokens: Iterable[Token]) -> frozenset[Token]:
    """Return tokens as a set."""
    try:
        return frozenset(tokens)
    except TypeError:
        raise ParameterError(name, "a token without a hash", "tokens, each of which has a hash") from None


def user_token(user: int) -> Token:
    """Return the token that a coalition knows of each of its members."""
    return ("user", user)


@dataclass(frozen=True)
class Rule:
    """The rule that a coalition knows `token` if it knows at least `threshold` of the `sources`.

    A seed that a user draws needs 1 source, its `user_token`. A pairwise key needs 1 of the two users' secret keys. A
    secret-shared key needs t of its shares. Fewer shares reveal nothing, as in Shamir's scheme.

    Raises `ParameterError` for a threshold below 1.
    """

    token: Token
    sources: tuple[Token, ...]
    threshold: int = 1

    def __post_init__(self) -> None:
        """Check the threshold."""
        validate.integer("threshold", self.threshold, 1)


def closure(known: Iterable[Token], rules: Sequence[Rule]) -> frozenset[Token]:
    """Return all tokens that follow from the known ones by the rules."""
    tokens = set(_tokens("known", known))
    while True:
        found = {
            rule.token
            for rule in rules
            if rule.token not in tokens and len(tokens.intersection(rule.sources)) >= rule.threshold
        }
        if not found:
            return frozenset(tokens)
        tokens |= found


class Rules(tuple[Rule, ...]):
    """Rules of one setting, which remember those of them that the closure needs for some tokens.

    `closure` of all rules is the readable form; a property test compares the two.
    """

    @cached_property
    def _needed(self) -> dict[frozenset[Token], tuple[Rule, ...]]:
        return {}

    def known(self, revealed: Set[Token], asked: frozenset[Token]) -> frozenset[Token]:
        """Return which of the tokens that are asked for follow from those that were revealed."""
        asked = _tokens("asked", asked)
        if asked not in self._needed:
            self._needed[asked] = self._for(asked)
        return asked & closure(revealed, self._needed[asked])

    def _for(self, asked: Set[Token]) -> tuple[Rule, ...]:
        """Return the rules that lead to some tokens, directly or through others."""
        needed, before = set(asked), -1
        while len(needed) > before:
            before = len(needed)
            needed |= {source for rule in self if rule.token in needed for source in rule.sources}
        return tuple(rule for rule in self if rule.token in needed)


# ------------------------------------------------------------------------------------------------------- forms


@dataclass(frozen=True, eq=False)
class Forms:
    """m linear forms: `matrix` is (m, n), and column c belongs to the symbol numbered ``symbols[c]``, ascending.

    Raises `ParameterError` if these are no such arrays, and `LengthMismatch` if the matrix has not n columns.
    """

    symbols: NDArray[np.intp]
    matrix: UintArray

    def __post_init__(self) -> None:
        """Check the arrays."""
        symbols = validate.array("symbols", self.symbols, np.intp)
        matrix = validate.array("matrix", self.matrix, np.uint64)
        validate.array_shape("symbols", symbols, (symbols.size,))
        validate.array_shape("matrix", matrix, (*matrix.shape[:1], symbols.size))

    def __len__(self) -> int:
        return len(self.matrix)

    def row(self, index: int) -> Forms:
        """Return one of the forms; raises `ParameterError` for a number that is that of none."""
        index = validate.integer("index", index, 0, len(self) - 1)
        return Forms(self.symbols, self.matrix[index : index + 1])

    def without(self, known: BoolArray) -> Forms:
        """Return the forms without the terms of known symbols; `known` has one truth value for each symbol.

        Raises `ParameterError` if it is no array of these, and `LengthMismatch` if it has fewer than there are symbols.
        """
        validate.truths("known", known, (np.size(known),))
        if self.symbols.size and self.symbols[-1] >= len(known):
            raise LengthMismatch("len(known)", len(known), f"{self.symbols[-1] + 1} or more, one for each symbol")
        kept = ~known[self.symbols]
        return Forms(self.symbols[kept], self.matrix[:, kept])


class Space:
    """The symbols of one module over Z_R, numbered in the order in which they first occur.

    Segments that share no symbol have separate spaces, and so do vectors over different moduli. If such vectors have
    symbols in common, one space is made `like` the other one.
    """

    def __init__(self, ring: Ring, like: Space | None = None) -> None:
        self.ring = ring
        self._numbers: dict[Symbol, int] = {} if like is None else like._numbers

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols so far."""
        return tuple(self._numbers)

    def shares_with(self, other: Space) -> bool:
        """Return whether two spaces number the same symbols: one is made like the other, or both are one."""
        return self._numbers is other._numbers

    def of(self, symbols: Iterable[Symbol]) -> Forms:
        """Return the forms that are the given symbols themselves; equal symbols are one symbol.

        Memory grows with the square of their number. Raises `ParameterError` for what is no symbol.
        """
        symbols = list(symbols)
        for symbol in symbols:
            if not isinstance(symbol, (Secret, Drawn, Derived)):
                raise ParameterError("symbols", validate.class_of(symbol), "of the class Secret, Drawn or Derived")
        numbers = [self._numbers.setdefault(symbol, len(self._numbers)) for symbol in symbols]
        distinct, position = np.unique(np.array(numbers, dtype=np.intp), return_inverse=True)
        return Forms(distinct, np.eye(distinct.size, dtype=np.uint64)[position])

    def secret(self, name: str, user: int, indices: Iterable[int]) -> Forms:
        """Return the elements of a secret of a user.

        Raises `ParameterError` for a name that is no text, and for a user or an index that is no integer from 0 on.
        """
        name, user = validate.instance("name", name, str), validate.integer("user", user, 0)
        return self.of(Secret(name, user, validate.integer("indices", index, 0)) for index in indices)

    def drawn(self, name: str, user: int, count: int) -> Forms:
        """Return `count` elements that a user sampled, at most 2^13; the errors are those of `secret`."""
        name, user = validate.instance("name", name, str), validate.integer("user", user, 0)
        return self.of(Drawn(name, user, index) for index in range(validate.integer("count", count, 0, _MOST_ELEMENTS)))

    def derived(self, derivation: Derivation, count: int) -> Forms:
        """Return the first `count` elements of a PRG stream, at most 2^13."""
        return self.of(
            Derived(derivation, index) for index in range(validate.integer("count", count, 0, _MOST_ELEMENTS))
        )

    def apply(self, core: AffineMap, *inputs: Forms) -> Forms:
        """Return the outputs of a probed core, without its constant, on the concatenation of the given inputs.

        Raises `ParameterError` for a core modulo another R, and for inputs that are no forms; `LengthMismatch` if they
        are not as many as the core takes.
        """
        if core.ring.modulus != self.ring.modulus:
            raise ParameterError("core", f"one modulo {core.ring.modulus}", f"one modulo {self.ring.modulus}")
        joined = join(inputs)
        if len(joined) != core.matrix.shape[1]:
            raise LengthMismatch("len(inputs)", len(joined), f"{core.matrix.shape[1]} forms in all")
        return Forms(joined.symbols, self.ring.matmul(core.matrix, joined.matrix))


def space_over(ring: Ring, space: Space | None) -> Space:
    """Return a new space over a ring, or the given one; raises `ParameterError` if that is over another ring."""
    if space is not None and space.ring.modulus != ring.modulus:
        raise ParameterError("space", f"one modulo {space.ring.modulus}", f"one modulo {ring.modulus}")
    return Space(ring) if space is None else space


def join(parts: Sequence[Forms]) -> Forms:
    """Return the concatenation of all forms, over the union of their symbols; `ParameterError` for what is none."""
    every = (part.symbols for part in validate.sequence("parts", parts, "Forms"))
    symbols = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *every]))
    matrix = np.zeros((sum(len(part) for part in parts), symbols.size), dtype=np.uint64)
    top = 0
    for part in parts:
        matrix[top : top + len(part), np.searchsorted(symbols, part.symbols)] = part.matrix
        top += len(part)
    return Forms(symbols, matrix)


# -------------------------------------------------------------------------------------------------------- view


class View:
    """What the server and the users of a coalition see.

    Parameters
    ----------
    space : Space
        The symbols.
    coalition : collection of int
        The users that pool their knowledge with the server; may be empty.
    rules : sequence of Rule
        The rules by which seeds and keys follow from others.

    Raises
    ------
    ParameterError
        The coalition is no collection of integers of at least 0, or the rules are no rules.
    """

    def __init__(self, space: Space, coalition: Collection[int], rules: Sequence[Rule] = ()) -> None:
        self.space = space
        members = validate.collection("coalition", coalition, "users")
        self.coalition = frozenset(validate.integer("coalition", user, 0) for user in members)
        self._rules = rules if isinstance(rules, Rules) else Rules(validate.instance("rules", r, Rule) for r in rules)
        self._revealed: set[Token] = {user_token(user) for user in self.coalition}
        self._seen: list[Forms] = []

    def takes(self, name: str, space: Space) -> None:
        """Raise `ParameterError` for an argument that belongs to another space than the view: symbols would mix."""
        if space is not self.space:
            raise ParameterError(name, "of several spaces", "of one space: symbols of others are different unknowns")

    def see(self, *messages: Forms) -> None:
        """Add messages, forms of the view's space, to the view."""
        for message in messages:
            validate.instance("messages", message, Forms)
        self._seen.extend(messages)

    def reveal(self, *tokens: Token) -> None:
        """Add seeds, keys or shares of them to the view; raises `ParameterError` for one without a hash."""
        self._revealed |= _tokens("tokens", tokens)

    def reveal_all(self, tokens: Set[Token]) -> None:
        """Add a set of them; the hashes of its members are not computed again."""
        self._revealed |= _tokens("tokens", tokens)

    def known(self) -> BoolArray:
        """Return, for each symbol, whether the coalition knows it: its own symbols and PRG outputs of known seeds.

        Each known symbol is a row of the view with a single entry. Such a row clears its column in all other rows, so
        these columns are left out of the system instead.
        """
        symbols = self.space.symbols
        seeds = (symbol.derivation.seed for symbol in symbols if isinstance(symbol, Derived))
        tokens = self._rules.known(self._revealed, frozenset(seeds))

        def is_known(symbol: Symbol) -> bool:
            if isinstance(symbol, Derived):
                return symbol.derivation.seed in tokens
            return symbol.user in self.coalition

        return np.array([is_known(symbol) for symbol in symbols], dtype=bool)

    def decide(self, *allowed: Forms) -> Verdict:
        """Return what the view determines beyond the allowed forms of secrets and the coalition's own secrets.

        Raises `ParameterError` if a form in `allowed` contains anything but secrets of the view's space.
        """
        return self._decide(lambda symbol: isinstance(symbol, Secret), allowed)

    def about(self, user: int) -> Verdict:
        """Return what the view determines of the secrets of one user when the secrets of all others are unknown.

        Raises `ParameterError` for a user that is no integer from 0 on.
        """
        user = validate.integer("user", user, 0)
        return self._decide(lambda symbol: isinstance(symbol, Secret) and symbol.user == user, ())

    def system(self, allowed: Sequence[Forms]) -> tuple[Forms, Forms]:
        """Return the seen forms and the allowed forms, both without the terms of known symbols.

        Raises `ParameterError` for forms of another space, which it sees by numbers of symbols that it has not.
        """
        known = self.known()
        for name, parts in (("messages", self._seen), ("allowed", allowed)):
            for forms in parts:
                validate.instance(name, forms, Forms)
                if forms.symbols.size and forms.symbols[-1] >= len(known):
                    raise ParameterError(name, "forms of another space", "forms of the space of the view")
        seen, may = (join([part.without(known) for part in parts]) for parts in (self._seen, allowed))
        return seen, may

    def _decide(self, asked: Callable[[Symbol], bool], allowed: Sequence[Forms]) -> Verdict:
        """Decide about some of the secrets; every other symbol counts as uniform."""
        seen, may = self.system(allowed)
        joined, count = join([seen, may]), len(seen)
        symbols = self.space.symbols
        of_secret = np.array([asked(symbols[n]) for n in joined.symbols], dtype=bool)
        names = tuple(str(symbols[n]) for n in joined.symbols[of_secret])
        _of_secrets(allowed, joined.matrix[count:, ~of_secret].any())
        A, B = joined.matrix[:, of_secret], joined.matrix[:, ~of_secret]
        return decide(self.space.ring, A[:count], B[:count], A[count:], names)


def _of_secrets(allowed: Sequence[object], mixed: bool | np.bool_) -> None:
    """Refuse allowed forms with other terms than secrets."""
    if mixed:
        raise ParameterError("allowed", f"{len(allowed)} vectors of forms", "forms of secrets alone")


def decide_together(views: Sequence[View], allowed: Sequence[Sequence[Forms]]) -> Verdict:
    """Return what views with different moduli determine together, beyond what is allowed for each.

    Their spaces share their symbols. A symbol counts as uniform modulo the least common multiple L of the moduli. A row
    of a view modulo R becomes L / R times that row modulo L. So a symbol in two views is one unknown modulo the common
    divisors of both moduli.

    Raises
    ------
    LengthMismatch
        There is no view, or `allowed` has another number of entries than there are views.
    ParameterError
        The spaces do not share their symbols, or a form in `allowed` contains anything but secrets.
    """
    if not validate.sequence("views", views, "View"):
        raise LengthMismatch("len(views)", 0, "1 or more")
    if len(allowed) != len(views):
        raise LengthMismatch("len(allowed)", len(allowed), f"{len(views)}, one entry for each view")
    if not all(view.space.shares_with(views[0].space) for view in views):
        raise ParameterError("views", "views of several spaces", "views of spaces that share their symbols")
    symbols, L = views[0].space.symbols, lcm(*(view.space.ring.modulus for view in views))
    systems = [(L // v.space.ring.modulus, *v.system(may)) for v, may in zip(views, allowed, strict=True)]
    used = sorted({int(n) for _, *parts in systems for part in parts for n in part.symbols})
    used.sort(key=lambda n: isinstance(symbols[n], Secret))
    noise = sum(not isinstance(symbols[n], Secret) for n in used)
    place = {n: at for at, n in enumerate(used)}

    def rows(factor: int, forms: Forms) -> Iterator[list[int]]:
        for entries in forms.matrix.tolist():
            row = [0] * len(used)
            for n, entry in zip(forms.symbols.tolist(), entries, strict=True):
                row[place[n]] = factor * entry
            yield row

    _of_secrets(allowed, any(any(row[:noise]) for factor, _, form in systems for row in rows(factor, form)))
    seen = [row for factor, form, _ in systems for row in rows(factor, form)]
    may = [row[noise:] for factor, _, form in systems for row in rows(factor, form)]
    return decide_rows(L, seen, noise, may, tuple(str(symbols[n]) for n in used[noise:]), several=True)


guard(__name__)
