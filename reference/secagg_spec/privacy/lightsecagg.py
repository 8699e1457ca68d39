"""Decide what the server and a coalition of users learn in a round of LightSecAgg.

The cores that run in a round are probed: `mask_update`, `MaskCode.encode` and `aggregate_shares`. A round is then a
system of linear forms, and each verdict is exact.

**One column at a time.** The code works on the columns of its matrix one by one, an update is masked element by
element, and every symbol belongs to one column. So the view of a round is the direct sum of the views of its columns,
and the same holds for what is learned. Columns differ only in how many of their U - T elements are real and how many
are padding; that number takes at most two values, and each is decided (`columns`). A test compares with whole rounds of
several columns.

**From the least to the most.** An additional message never makes a coalition learn less. For a coalition and a
surviving set, the least it can see is the masked updates of the survivors, without any answer. The most is the masked
updates of *all* users, late ones included, with the answers of all survivors. Under any other set of uploads and
answers, what it learns beyond the sum lies between the two, so two verdicts decide all cases. A test decides every set
of answers at `tiny`.

==========  ==========================================
papers      here
==========  ==========================================
x_i         the secret ``x`` of user i
z_i, n_i    the drawn values ``mask`` and ``noise``
U_1         `surviving`
U_2         the keys of `Situation.asked`
==========  ==========================================

Source: spec/lightsecagg.md (semi-honest profile; LSA-09, LSA-12), spec/conventions.md, section 3 (MDS-02, MDS-10).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Protocol

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy.probe import AffineMap, probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Forms, Space, View, join, space_over
from secagg_spec.protocols.lightsecagg import round as protocol
from secagg_spec.protocols.lightsecagg.round import Parameters

Users = tuple[int, ...]


class Shape(Protocol):
    """The parameters of a protocol that shares masks by the code."""

    @property
    def N(self) -> int:  # noqa: N802 - the papers' symbol
        """The number of users."""

    @property
    def U(self) -> int:  # noqa: N802 - the papers' symbol
        """The number of shares that suffice."""

    @property
    def T(self) -> int:  # noqa: N802 - the papers' symbol
        """The number of users that may collude."""

    @property
    def field(self) -> PrimeField:
        """The integers modulo q."""

    @property
    def d(self) -> int:
        """The number of elements of an update."""

    @property
    def share_length(self) -> int:
        """L, the number of elements of a share."""


class UncheckedCode(MaskCode):
    """The code at any distinct points, including 0, which MDS-02 refuses; for verdicts only, to show why.

    Raises
    ------
    ParameterError
        Two users have the same point, or a point is not an element.
    """

    def _check_points(self, points: Sequence[int]) -> Sequence[int]:
        if len(points) != self.N:
            raise LengthMismatch("points", tuple(points), f"N = {self.N} points")
        owners: dict[int, int] = {}
        for user, point in enumerate(points):
            validate.integer("points", point, 0, self.field.modulus - 1)
            if point in owners:
                shared = f"{point} for users {owners[point]} and {user}"
                raise ParameterError("points", shared, "given to one user only")
            owners[point] = user
        return points


@dataclass(frozen=True)
class Situation(validate.Plain):
    """What the server got in a round.

    `surviving` is the set whose sum is allowed, and `uploaded` are the users whose masked updates arrived. ``asked[j]``
    is the surviving set that was announced to user j and that it answered: `surviving`, unless the server equivocates.

    Raises `ParameterError` for what is no sequence of users, or no mapping from users to such sequences.
    """

    surviving: Users
    uploaded: Users
    asked: Mapping[int, Users]

    def __post_init__(self) -> None:
        """Check the users, of which the number is not known here."""
        super().__post_init__()
        given = validate.mapping("asked", self.asked)
        for name, users in (("surviving", self.surviving), ("uploaded", self.uploaded), ("asked", [*given])):
            validate.user_numbers(name, users)
        asked = {user: validate.user_numbers("asked", chosen) for user, chosen in given.items()}
        object.__setattr__(self, "asked", asked)


def least(surviving: Users) -> Situation:
    """Return the situation in which only the survivors' updates arrived, and no answers."""
    return Situation(surviving, surviving, MappingProxyType({}))


def most(parameters: Parameters, surviving: Users) -> Situation:
    """Return the situation in which every update arrived, some too late, and every survivor answered.

    Raises `UnknownUser` for a survivor outside of [0, N).
    """
    surviving = validate.users("surviving", surviving, parameters.N)
    return Situation(surviving, tuple(range(parameters.N)), dict.fromkeys(surviving, surviving))


class Column:
    """One column of a round, as linear forms.

    Parameters
    ----------
    parameters : Parameters
    code : MaskCode
        The code that shares the masks: the code of `parameters`, or one at other points.
    elements : sequence of int
        The elements of the update in the column, from 1 to U - T of them; the rest is padding.
    space : Space, optional
        The space of the symbols; a new one when left out. Rounds in which users upload the same updates share a space.
    drawing : int
        Rounds of one space with different numbers have different masks and noise.

    Raises
    ------
    ParameterError
        The elements are no distinct numbers in [0, d), or not 1 to U - T of them; the code is not one for `parameters`,
        the space is over another field, or `drawing` is below 0.
    """

    def __init__(
        self,
        parameters: Parameters,
        code: MaskCode,
        elements: Sequence[int],
        *,
        space: Space | None = None,
        drawing: int = 0,
    ) -> None:
        self.parameters = parameters
        self.code = check_code(parameters, code)
        self.elements = column_elements(code, parameters.d, elements)
        self.space = space_over(parameters.field, space)
        self.drawing = validate.integer("drawing", drawing, 0)
        self._encoding = encoding(code, len(self.elements))
        self._sums: dict[Users, AffineMap] = {}
        self._answers: dict[tuple[int, Users], Forms] = {}
        users = range(parameters.N)
        self.updates = {i: self.space.secret("x", i, self.elements) for i in users}
        masks = {i: self.mask(i) for i in users}
        masking = _masking(parameters.field, len(self.elements))
        self.uploads = {i: self.space.apply(masking, self.updates[i], masks[i]) for i in users}
        self.shares = {i: self.space.apply(self._encoding, masks[i], self.noise(i)) for i in users}

    def mask(self, user: int) -> Forms:
        """Return the mask that a user samples; raises `UnknownUser` if there is no such user."""
        (user,) = validate.users("user", (user,), self.parameters.N)
        return self.space.drawn(self._name("mask"), user, len(self.elements))

    def noise(self, user: int) -> Forms:
        """Return the noise that a user samples; raises `UnknownUser` if there is no such user."""
        (user,) = validate.users("user", (user,), self.parameters.N)
        return self.space.drawn(self._name("noise"), user, self.code.T)

    def _name(self, what: str) -> str:
        return f"{what}({self.drawing})" if self.drawing else what

    def answer(self, user: int, surviving: Users) -> Forms:
        """Return the aggregated share of a user for a surviving set; raises `UnknownUser` if there is no such user."""
        (user,) = validate.users("user", (user,), self.parameters.N)
        surviving = validate.user_numbers("surviving", surviving)
        if surviving not in self._sums:
            self._sums[surviving] = _summing(self.parameters, surviving)
        if (user, surviving) not in self._answers:
            held = [share.row(user) for share in self.shares.values()]
            self._answers[user, surviving] = self.space.apply(self._sums[surviving], *held)
        return self._answers[user, surviving]

    def view(self, coalition: Collection[int], situation: Situation) -> View:
        """Return what the server and a coalition see.

        A member's own answer adds nothing: it is a sum of decrypted shares that the coalition already holds. Raises
        `UnknownUser` for a coalition with users outside of [0, N).
        """
        view = View(self.space, validate.user_set("coalition", coalition, self.parameters.N))
        self.show(view, situation)
        return view

    def show(self, view: View, situation: Situation) -> None:
        """Add what a situation shows to a view, which may already contain other rounds of the same space.

        Raises `UnknownUser` for a user that uploads or is asked and is outside of [0, N).
        """
        view.takes("view", self.space)
        validate.users("uploaded", situation.uploaded, self.parameters.N)
        validate.users("asked", [*situation.asked], self.parameters.N)
        coalition = view.coalition
        view.see(*(self.uploads[i] for i in situation.uploaded))
        view.see(*(self.shares[i].row(j) for i in self.shares for j in coalition if i not in coalition))
        view.see(*(self.answer(j, chosen) for j, chosen in situation.asked.items() if j not in coalition))

    def decide(self, coalition: Collection[int], situation: Situation) -> Verdict:
        """Return what a coalition learns beyond the sum over the surviving set and its own data."""
        return self.view(coalition, situation).decide(self.total(situation.surviving))

    def total(self, surviving: Users) -> Forms:
        """Return the sum of the updates over a surviving set: the allowed sum.

        Raises `UnknownUser` or `DuplicateUser` for a user outside of [0, N), or named twice.
        """
        surviving = validate.users("surviving", surviving, self.parameters.N)
        updates = join([self.updates[i] for i in surviving])
        adding = np.tile(np.eye(len(self.elements), dtype=np.uint64), (1, len(surviving)))
        return Forms(updates.symbols, self.parameters.field.matmul(adding, updates.matrix))


def check_code(parameters: Shape, code: MaskCode) -> MaskCode:
    """Return a code if it can share the masks of a session, whatever its points and its T.

    Raises
    ------
    ParameterError
        It is for another number of users or modulo another prime, or has fewer than U - T sub-masks.
    """
    N, parts, q = parameters.N, parameters.U - parameters.T, parameters.field.modulus
    if (code.N, code.field.modulus) != (N, q) or parts > code.U - code.T:
        given = f"one for {code.N} users, U - T = {code.U - code.T}, modulo {code.field.modulus}"
        raise ParameterError("code", given, f"one for N = {N} users, U - T = {parts} or more, modulo q = {q}")
    return code


def columns(parameters: Shape) -> tuple[Users, ...]:
    """Return the elements of one column of each kind: the fullest, and the most padded one if it differs."""
    d, L = parameters.d, parameters.share_length
    full, short = tuple(range(0, d, L)), tuple(range(L - 1, d, L))
    return (full,) if len(short) == len(full) else (full, short)


def column_elements(code: MaskCode, d: int, elements: Sequence[int]) -> Users:
    """Return the elements of a column of an update of d elements.

    Raises
    ------
    LengthMismatch
        They are not 1 to U - T, all different.
    ParameterError
        One is not in [0, d).
    """
    d, given = validate.integer("d", d, 1, validate.MAX_COUNT), validate.sequence("elements", elements, "integers")
    found = tuple(validate.integer("elements", element, 0, d - 1) for element in given)
    if len(set(found)) < len(found) or not 1 <= len(found) <= code.U - code.T:
        raise LengthMismatch("elements", found, f"1 to U - T = {code.U - code.T} different integers")
    return found


def _masking(field: PrimeField, size: int) -> AffineMap:
    return probe(field, lambda v: protocol.mask_update(field, v[:size], v[size:]), 2 * size, name="mask_update")


def encoding(code: MaskCode, size: int) -> AffineMap:
    """Probe the encoder on one column: from `size` real elements and T noise elements to N one-element shares.

    Raises `ParameterError` for a size outside of [1, U - T].
    """
    size = validate.integer("size", size, 1, code.U - code.T)

    def encode(v: UintArray) -> UintArray:
        return code.encode(v[:size], v[size:].reshape(code.T, 1))[:, 0]

    return probe(code.field, encode, size + code.T, name="encode")


def _summing(parameters: Parameters, surviving: Users) -> AffineMap:
    """Probe the answer for a surviving set of a user that holds, of each user's mask, one share of one element."""

    def answer(v: UintArray) -> UintArray:
        held = {user: v[[user]] for user in range(parameters.N)}
        return protocol.aggregate_shares(parameters.field, parameters.N, parameters.T, surviving, held)

    return probe(parameters.field, answer, parameters.N, name="aggregate_shares")


def open_shares(code: MaskCode) -> dict[int, UintArray]:
    """Return the users whose share holds no noise, with the coefficients of the U - T sub-masks in this share."""
    parts = code.U - code.T
    matrix = encoding(code, parts).matrix
    return {user: row[:parts] for user, row in enumerate(matrix) if not row[parts:].any() and row.any()}


# ------------------------------------------------------------------------------------------------------- audit


@dataclass(frozen=True, eq=False)
class Case:
    """A coalition, a surviving set and a kind of column, decided for all uploads and answers.

    `excess` is the dimension of what is learned beyond the sum in the `least` situation. `verdict` is for the `most`
    situation.
    """

    coalition: Users
    surviving: Users
    elements: Users
    excess: int
    verdict: Verdict

    @property
    def honest(self) -> int:
        """The honest users among the survivors."""
        return len(set(self.surviving) - set(self.coalition))

    def late(self, N: int) -> int:
        """Return the number of honest users, of N, that uploaded but are not in the surviving set."""
        others = {*self.surviving, *self.coalition}
        return validate.integer("N", N, max(others, default=-1) + 1) - len(others)


def every_coalition(parameters: Parameters) -> Iterator[Users]:
    """Yield every set of users, smallest first, starting with the empty set (the server alone)."""
    for size in range(parameters.N + 1):
        yield from combinations(range(parameters.N), size)


def every_surviving_set(parameters: Parameters, smallest: int | None = None) -> Iterator[Users]:
    """Yield every surviving set of at least `smallest` users.

    When left out, `smallest` is max(U, T + 2), the least that an honest server announces (LSA-07). Users accept T + 2
    (LSA-09). Raises `ParameterError` if it is no number of users.
    """
    least = max(parameters.U, parameters.T + 2) if smallest is None else smallest
    enough = validate.integer("smallest", least, 0, parameters.N)
    for size in range(enough, parameters.N + 1):
        yield from combinations(range(parameters.N), size)


def audit(
    parameters: Parameters, code: MaskCode, coalitions: Sequence[Users], surviving: Sequence[Users]
) -> Iterator[Case]:
    """Yield the verdict of each coalition, surviving set and kind of column.

    Parameters
    ----------
    parameters : Parameters
    code : MaskCode
        The code of `parameters`, or one at other points.
    coalitions, surviving : sequences of tuples of int
        The coalitions and surviving sets to decide; see `every_coalition` and `every_surviving_set`.

    Raises
    ------
    NotAffine
        A core is not affine, so no verdict of this kind exists.
    UnknownUser, DuplicateUser
        A coalition or a set names a user outside the roster, or one twice.
    """
    coalitions = [validate.users("coalitions", users, parameters.N) for users in coalitions]
    surviving = [validate.users("surviving", users, parameters.N) for users in surviving]
    kinds = [Column(parameters, code, elements) for elements in columns(parameters)]
    for coalition in coalitions:
        for chosen in surviving:
            for column in kinds:
                verdict = column.decide(coalition, most(parameters, chosen))
                excess = 0 if verdict.private else column.decide(coalition, least(chosen)).dimension
                yield Case(coalition, chosen, column.elements, excess, verdict)


def expected_excess(parameters: Parameters, case: Case) -> int:
    """Return min(|C| - T, U - T) * (honest contributors - 1), or 0: for a full column without late updates.

    Each colluding user beyond T reveals one combination of the sub-masks of each honest contributor; one of these
    follows from the sum.
    """
    over = min(len(case.coalition) - parameters.T, parameters.U - parameters.T)
    return max(over, 0) * max(case.honest - 1, 0)


# ------------------------------------------------------------------------------------------- a server that lies


def equivocation(
    parameters: Parameters, coalition: Collection[int], asked: Mapping[int, Collection[int]]
) -> tuple[Verdict, ...]:
    """Return, for each kind of column, what a server learns by announcing different surviving sets to users.

    Each user answers once (LSA-12), and only for sets that `aggregate_shares` accepts. The allowed sum is over the set
    announced to the most users.

    Parameters
    ----------
    parameters : Parameters
    coalition : collection of int
        The users that work with the server.
    asked : mapping from user to set of users
        The surviving set announced to each honest user.

    Raises
    ------
    ParameterError
        No user is asked, or a member of the coalition is, or a user outside the roster.
    InconsistentSets, TooFewSurvivors
        A user refuses the set.
    """
    members, announced = check_lie(parameters.N, coalition, asked)
    surviving = max(dict.fromkeys(announced.values()), key=list(announced.values()).count)
    situation = Situation(surviving, tuple(range(parameters.N)), announced)
    kinds = [Column(parameters, parameters.code, elements) for elements in columns(parameters)]
    return tuple(column.decide(members, situation) for column in kinds)


def check_lie(
    N: int, coalition: Collection[int], asked: Mapping[int, Collection[int]]
) -> tuple[Users, dict[int, Users]]:
    """Return the coalition and the set announced to each user, all ascending.

    Raises
    ------
    ParameterError
        No user is asked, or a member of the coalition is, or a user outside the roster; or a set is none of integers.
    """
    N = validate.integer("N", N, 1, validate.MAX_COUNT)
    members, honest = validate.user_set("coalition", coalition, N), validate.user_set("asked", [*asked], N)
    if not honest or set(honest) & set(members):
        raise ParameterError("asked", [*honest], "given for honest users, at least one")
    sets = {user: [*validate.collection("asked", chosen, "users")] for user, chosen in asked.items()}
    return members, {user: tuple(sorted(validate.user_numbers("asked", chosen))) for user, chosen in sets.items()}


guard(__name__)
