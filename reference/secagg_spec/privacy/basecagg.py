"""Decide what the server and a coalition of users learn from the buffers of BASecAgg.

The cores that run are probed: `mask_update`, `MaskCode.encode` and `combine_shares`. `mask_update` refuses updates that
a buffer cannot carry, but does not change any. So it is probed with the total weight 1, for which it accepts every
element.

Which cases are enumerated, and why these are enough:

- **One column at a time**, as in `privacy.lightsecagg`: every symbol belongs to one column.
- **From the least to the most.** An additional message never makes a coalition learn less. The least it can see is the
  masked updates of the buffers, without any answer. The most is a masked update of *every* user in every round, in a
  buffer or not, with the answers of *all* users. Every other set of answers and updates lies between the two.
- **Weights.** Let `combine_shares` be the sum of the shares of the entries, each times its weight; `scales` decides
  for each buffer whether this holds. If all x_i, z_i and n_i of an entry are scaled by its weight, which is not 0
  modulo q, the view becomes the one with all weights 1. So what is learned has the same dimensions for all weights,
  and one choice of weights stands for all. A test decides all weights at `tiny`.
- **Stamps** name the mask of an update. Each fresh mask has its own symbols, so it only matters which updates are in a
  buffer, not when they were made. A mask that was shared and never used reveals nothing.
- **Coalitions and buffers** are enumerated, because the points of the code differ from user to user.

==========  ==============================================================
papers      here
==========  ==============================================================
Delta_i     the secret ``x(t)`` of user i, with its stamp t
z_i, n_i    the drawn values ``mask(t)`` and ``noise(t)``
S(t)        a `Buffer`
==========  ==============================================================

Source: spec/basecagg.md (BSA-01, BSA-04, BSA-07, BSA-21 to BSA-28); spec/conventions.md, section 3 (MDS-02, MDS-10).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.channels import PlainStampedChannel
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.privacy.lightsecagg import Users, check_code, column_elements, columns, encoding
from secagg_spec.privacy.probe import AffineMap, probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Forms, Space, View, join
from secagg_spec.protocols.basecagg import round as protocol
from secagg_spec.protocols.basecagg.round import BufferedSet, Entry, Held, Parameters, UserState
from secagg_spec.protocols.steps import SERVER

Stamped = tuple[int, int]
"""An update: its user and its stamp."""
_MOST = 2**24
"""The most elements of a share that a user holds."""


@dataclass(frozen=True)
class Buffer(validate.Plain):
    """What a server announces: the round, and the entries in ascending order of user.

    Raises `ParameterError` if the round, or a user or a stamp of an entry, is no integer in [0, 2^32), or a weight none
    in [0, 2^64). Users refuse more than that.
    """

    round: int
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        validate.integer("round", self.round, 0, validate.MAX_COUNT)
        for given in validate.sequence("entries", self.entries, "Entry"):
            entry = validate.instance("entries", given, Entry)
            validate.integer("user", entry.user, 0, validate.MAX_COUNT)
            validate.integer("stamp", entry.stamp, 0, validate.MAX_COUNT)
            validate.integer("weight", entry.weight, 0, 2**64 - 1)

    @property
    def users(self) -> Users:
        """The users of the entries."""
        return tuple(entry.user for entry in self.entries)

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the entries."""
        return tuple(entry.weight for entry in self.entries)

    @property
    def updates(self) -> tuple[Stamped, ...]:
        """The updates of the entries."""
        return tuple((entry.user, entry.stamp) for entry in self.entries)

    @property
    def contributors(self) -> Users:
        """The users of the entries whose weight is not 0."""
        return tuple(entry.user for entry in self.entries if entry.weight)


@dataclass(frozen=True)
class Situation(validate.Plain):
    """What the server got.

    `uploaded` are the updates whose masked form arrived. `answered` are pairs of a user and a buffer that the user
    answered. The weighted sums over the buffers in `allowed` are allowed to be known.

    Raises `ParameterError` for what is no sequence of these.
    """

    allowed: tuple[Buffer, ...]
    uploaded: tuple[Stamped, ...]
    answered: tuple[tuple[int, Buffer], ...]

    def __post_init__(self) -> None:
        """Check the members; the number of users is not known here."""
        super().__post_init__()
        _buffers("allowed", self.allowed)
        _updates_of("uploaded", self.uploaded)
        for pair in validate.sequence("answered", self.answered, "pairs of a user and a buffer"):
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ParameterError("answered", validate.class_of(pair), "pairs of a user and a buffer")
            validate.integer("answered", pair[0], 0)
            validate.instance("answered", pair[1], Buffer)


def _buffers(name: str, buffers: Collection[Buffer]) -> tuple[Buffer, ...]:
    """Return buffers as a tuple."""
    return tuple(validate.instance(name, one, Buffer) for one in validate.sequence(name, buffers, "Buffer"))


def _updates_of(name: str, updates: Collection[Stamped]) -> list[Stamped]:
    """Return updates in order; refuse what is no pair of a user and a stamp."""
    for update in validate.collection(name, updates, "pairs of a user and a stamp"):
        if not isinstance(update, tuple) or len(update) != 2:
            raise ParameterError(name, validate.class_of(update), "pairs of a user and a stamp")
        for number in update:
            validate.integer(name, number, 0, validate.MAX_COUNT)
    return [*updates]


def least(*buffers: Buffer) -> Situation:
    """Return the situation in which only the updates of the buffers arrived, and no answers."""
    _buffers("buffers", buffers)
    return Situation(buffers, _updates(buffers), ())


def most(parameters: Parameters, *buffers: Buffer, outside: Collection[int] | None = None) -> Situation:
    """Return the situation in which all users answered every buffer, and uploaded in every round.

    `outside` are the users that also upload in rounds whose buffer they are not in; all users when left out. Raises
    `UnknownUser` for one outside of [0, N).
    """
    _buffers("buffers", buffers)
    everyone = range(parameters.N)
    more = everyone if outside is None else validate.users("outside", [*outside], parameters.N)
    others = [(i, buffer.round) for buffer in buffers for i in more if i not in buffer.users]
    answered = tuple((j, buffer) for buffer in buffers for j in everyone)
    return Situation(buffers, tuple(dict.fromkeys([*_updates(buffers), *others])), answered)


def _updates(buffers: Sequence[Buffer]) -> tuple[Stamped, ...]:
    return tuple(dict.fromkeys(update for buffer in buffers for update in buffer.updates))


class Column:
    """One column of all updates of a session, as linear forms.

    The methods raise `UnknownUser` for a user outside of [0, N), and `ParameterError` for a stamp below 0.

    Parameters
    ----------
    parameters : Parameters
    code : MaskCode
        The code that shares the masks: the code of `parameters`, or one at other points.
    elements : sequence of int
        The elements of the update in the column, from 1 to U - T of them; the rest is padding.

    Raises
    ------
    ParameterError
        The elements are no distinct numbers in [0, d), or not 1 to U - T of them; or the code is not one for
        `parameters`.
    """

    def __init__(self, parameters: Parameters, code: MaskCode, elements: Sequence[int]) -> None:
        self.parameters = parameters
        self.code = check_code(parameters, code)
        self.elements = column_elements(code, parameters.d, elements)
        self.space = Space(parameters.field)
        self._masking = _masking(parameters, len(self.elements))
        self._encoding = encoding(code, len(self.elements))
        self._combined: dict[Buffer, AffineMap] = {}
        self._uploads: dict[Stamped, Forms] = {}
        self._shares: dict[Stamped, Forms] = {}

    def _check(self, user: int, stamp: int) -> None:
        validate.users("user", (user,), self.parameters.N)
        validate.integer("stamp", stamp, 0, validate.MAX_COUNT)

    def update(self, user: int, stamp: int) -> Forms:
        """Return the update of a user under a stamp."""
        self._check(user, stamp)
        return self.space.secret(f"x({stamp})", user, self.elements)

    def mask(self, user: int, stamp: int) -> Forms:
        """Return the mask that a user samples under a stamp."""
        self._check(user, stamp)
        return self.space.drawn(f"mask({stamp})", user, len(self.elements))

    def noise(self, user: int, stamp: int) -> Forms:
        """Return the noise that a user samples under a stamp."""
        self._check(user, stamp)
        return self.space.drawn(f"noise({stamp})", user, self.code.T)

    def upload(self, user: int, stamp: int) -> Forms:
        """Return the masked update of a user under a stamp."""
        if (user, stamp) not in self._uploads:
            made = self.space.apply(self._masking, self.update(user, stamp), self.mask(user, stamp))
            self._uploads[user, stamp] = made
        return self._uploads[user, stamp]

    def shares(self, user: int, stamp: int) -> Forms:
        """Return the shares of the mask of a user under a stamp, one for each user."""
        if (user, stamp) not in self._shares:
            made = self.space.apply(self._encoding, self.mask(user, stamp), self.noise(user, stamp))
            self._shares[user, stamp] = made
        return self._shares[user, stamp]

    def answer(self, user: int, buffer: Buffer) -> Forms:
        """Return the answer of a user to a buffer."""
        validate.users("user", (user,), self.parameters.N)
        if buffer not in self._combined:
            self._combined[buffer] = self.combining(buffer)
        stamps = _stamps(self.parameters, buffer)
        held = [self.shares(i, stamp).row(user) for i, stamp in stamps.items()]
        return self.space.apply(self._combined[buffer], *held)

    def combining(self, buffer: Buffer) -> AffineMap:
        """Return the map from the shares that a user holds to its answer to a buffer."""
        return combining(self.parameters, buffer)

    def view(self, coalition: Collection[int], situation: Situation) -> View:
        """Return what the server and a coalition see.

        A member's own answer adds nothing: it is a sum of decrypted shares that the coalition already holds. Raises
        `UnknownUser` for a coalition with users outside of [0, N).
        """
        members = validate.user_set("coalition", coalition, self.parameters.N)
        view = View(self.space, members)
        view.see(*(self.upload(*update) for update in situation.uploaded))
        answers = [self.answer(j, buffer) for j, buffer in situation.answered if j not in view.coalition]
        honest = [shares for (i, _), shares in self._shares_of(situation) if i not in view.coalition]
        view.see(*(shares.row(j) for shares in honest for j in members), *answers)
        return view

    def _shares_of(self, situation: Situation) -> list[tuple[Stamped, Forms]]:
        """Return the shares of all updates that occur in a situation."""
        asked = tuple(buffer for _, buffer in situation.answered)
        updates = dict.fromkeys([*situation.uploaded, *_updates(asked)])
        return [(update, self.shares(*update)) for update in updates]

    def decide(self, coalition: Collection[int], situation: Situation) -> Verdict:
        """Return what a coalition learns beyond the allowed weighted sums and its own data."""
        return self.view(coalition, situation).decide(*map(self.total, situation.allowed))

    def total(self, buffer: Buffer, weights: Sequence[int] | None = None) -> Forms:
        """Return the sum of the updates of a buffer, with the weights of its entries or with the given ones.

        Raises
        ------
        LengthMismatch
            The buffer has no entry, or there is not one weight for each.
        OutOfRange
            A weight is not in [0, q).
        """
        chosen = _weights(self.parameters, buffer.weights if weights is None else weights)
        if not chosen or len(chosen) != len(buffer.entries):
            raise LengthMismatch("len(weights)", len(chosen), "that of the entries, one or more")
        updates = join([self.update(*update) for update in buffer.updates])
        blocks = [np.eye(len(self.elements), dtype=np.uint64) * np.uint64(weight) for weight in chosen]
        coefficients = np.concatenate(blocks, axis=1)
        return Forms(updates.symbols, self.parameters.field.matmul(coefficients, updates.matrix))


def every_column(
    parameters: Parameters, code: MaskCode | None = None, model: type[Column] = Column
) -> tuple[Column, ...]:
    """Return one column of each kind; `code` is the code of the parameters when left out.

    Raises `ParameterError` if the model is no kind of column.
    """
    chosen = parameters.code if code is None else code
    if not (isinstance(model, type) and issubclass(model, Column)):
        raise ParameterError("model", getattr(model, "__name__", validate.class_of(model)), "Column or Unchecked")
    return tuple(model(parameters, chosen, elements) for elements in columns(parameters))


class Unchecked(Column):
    """Users that answer any buffer without the checks of `combine_shares`, to show what the checks prevent."""

    def combining(self, buffer: Buffer) -> AffineMap:
        """Return the weighted sum of the shares for any buffer, without checks."""
        field = self.parameters.field
        return AffineMap(field, factors(self.parameters, buffer), field.zeros(1))


def _stamps(parameters: Parameters, buffer: Buffer) -> dict[int, int]:
    """Return the stamp of the share held of each user: its entry's stamp, or the newest if it is not in the buffer."""
    stamps = dict(buffer.updates)
    return {user: stamps.get(user, buffer.round) for user in range(parameters.N)}


def _masking(parameters: Parameters, size: int) -> AffineMap:
    field = parameters.field
    return probe(field, lambda v: protocol.mask_update(field, 1, v[:size], v[size:]), 2 * size, name="mask_update")


def combining(parameters: Parameters, buffer: Buffer) -> AffineMap:
    """Probe the answer to a buffer of a user that holds, of each user's mask, one share of one element.

    Raises
    ------
    InconsistentSets
        A user refuses the buffer.
    """
    stamps = _stamps(parameters, buffer)

    def answer(v: UintArray) -> UintArray:
        held = {user: Held(stamp, v[[user]]) for user, stamp in stamps.items()}
        return protocol.combine_shares(parameters, buffer.round, buffer.entries, held)

    return probe(parameters.field, answer, parameters.N, name="combine_shares")


def factors(parameters: Parameters, buffer: Buffer) -> UintArray:
    """Return the weights of a buffer as a (1, N) array, with 0 for users that are not in it.

    Raises
    ------
    UnknownUser, DuplicateUser
        A user of the buffer is outside of [0, N), or has two entries.
    OutOfRange
        A weight is not in [0, q).
    """
    matrix = np.zeros((1, parameters.N), dtype=np.uint64)
    matrix[0, list(validate.users("buffer", buffer.users, parameters.N))] = _weights(parameters, buffer.weights)
    return matrix


def scales(parameters: Parameters, buffer: Buffer) -> bool:
    """Return whether an answer to a buffer is exactly the sum of the shares of its entries, each times its weight.

    If so, its verdicts have the same dimensions as the verdicts on any other weights for the same users.

    Raises
    ------
    InconsistentSets
        A user refuses the buffer.
    """
    found = combining(parameters, buffer)
    return found.linear and np.array_equal(found.matrix, factors(parameters, buffer))


# ----------------------------------------------------------------------------------------------------- buffers


def announced(parameters: Parameters, users: Users, ages: Sequence[int], weights: Sequence[int]) -> Buffer:
    """Return the buffer of round tau_max with the given users (ascending), their staleness and their weights.

    Raises
    ------
    LengthMismatch
        The ages or the weights are not one for each user.
    ParameterError
        A user is outside of [0, N) or not above the one before it, or an age is not in [0, tau_max].
    OutOfRange
        A weight is not in [0, q).
    """
    users = validate.users("users", users, parameters.N)
    if [*users] != sorted(users):
        raise ParameterError("users", users, "ascending")
    for name, given in (("ages", ages), ("weights", weights)):
        if len(validate.sequence(name, given, "integers")) != len(users):
            raise LengthMismatch(f"len({name})", len(given), f"{len(users)}, one for each user")
    ages = [validate.integer("ages", age, 0, parameters.tau_max) for age in ages]
    return _announced(parameters, users, ages, _weights(parameters, weights))


def _weights(parameters: Parameters, weights: Sequence[int]) -> list[int]:
    """Return weights as integers; refuse one that is not in [0, q)."""
    given = validate.sequence("weights", weights, "integers")
    found = [validate.secret_integer("weights", weight, "integers") for weight in given]
    for weight in found:
        if not 0 <= weight < parameters.q:
            raise OutOfRange("weights", weight, f"in [0, {parameters.q - 1}]")
    return found


def _announced(parameters: Parameters, users: Users, ages: Sequence[int], weights: Sequence[int]) -> Buffer:
    round = parameters.tau_max
    entries = zip(users, ages, weights, strict=True)
    return Buffer(round, tuple(Entry(user, round - age, weight) for user, age, weight in entries))


def weighed(parameters: Parameters, users: Users, weights: Sequence[int]) -> Buffer:
    """Return a buffer with the given weights, each with the least staleness that admits it, or 0 if none does.

    Raises
    ------
    LengthMismatch
        The number of weights is not the number of users.
    OutOfRange
        A weight is not in ``[0, q)``.
    """
    if len(weights) != len(users):
        raise LengthMismatch("len(weights)", len(weights), f"{len(users)}, one for each user")
    weights = _weights(parameters, weights)
    return announced(parameters, users, [_age(parameters, weight) for weight in weights], weights)


def _age(parameters: Parameters, weight: int) -> int:
    ages = range(parameters.tau_max + 1)
    return next((age for age in ages if weight in _admissible(parameters, age)), 0)


def _admissible(parameters: Parameters, age: int) -> tuple[int, ...]:
    return admissible_weights(parameters.staleness, parameters.c_g, age)


def varied(parameters: Parameters, users: Users) -> Buffer:
    """Return the buffer whose entries are 0, 1, 2, … rounds old, cyclically, with their smallest weights."""
    ages = [at % (parameters.tau_max + 1) for at in range(len(users))]
    return announced(parameters, users, ages, [_admissible(parameters, age)[0] for age in ages])


def every_coalition(parameters: Parameters, largest: int) -> Iterator[Users]:
    """Yield every set of up to `largest` users, smallest first, starting with the empty set (the server alone)."""
    for size in range(min(validate.integer("largest", largest, 0), parameters.N) + 1):
        yield from combinations(range(parameters.N), size)


def every_user_set(parameters: Parameters) -> Iterator[Users]:
    """Yield every set of K users."""
    yield from combinations(range(parameters.N), parameters.K)


def every_weighting(parameters: Parameters) -> tuple[tuple[int, ...], ...]:
    """Return all weights of a buffer that some staleness of its entries admits."""
    ages = range(parameters.tau_max + 1)
    weights = sorted({weight for age in ages for weight in _admissible(parameters, age)})
    return tuple(product(weights, repeat=parameters.K))


def every_buffer(parameters: Parameters) -> Iterator[Buffer]:
    """Yield every buffer of round tau_max that users accept: all users, all stamps, all admissible weights."""
    ages = range(parameters.tau_max + 1)
    choices = [(age, weight) for age in ages for weight in _admissible(parameters, age)]
    for users in every_user_set(parameters):
        for chosen in product(choices, repeat=parameters.K):
            yield _announced(parameters, users, [age for age, _ in chosen], [weight for _, weight in chosen])


# ------------------------------------------------------------------------------------------------------- audit


@dataclass(frozen=True, eq=False)
class Case:
    """A coalition, a buffer and a kind of column, decided for all answers and all additional updates.

    `excess` is the dimension of what is learned beyond the weighted sum in the `least` situation. `verdict` is for the
    `most` situation, in which `besides` honest updates have no weight.
    """

    coalition: Users
    buffer: Buffer
    elements: Users
    excess: int
    verdict: Verdict
    besides: int

    @property
    def contributors(self) -> Users:
        """The honest users of the buffer whose weight is not 0."""
        return tuple(user for user in self.buffer.contributors if user not in self.coalition)

    @property
    def handed_over(self) -> int | None:
        """The user whose update the weighted sum reveals: all others in the sum collude or have weight 0."""
        return self.contributors[0] if len(self.contributors) == 1 else None


def audit(
    parameters: Parameters,
    code: MaskCode,
    coalitions: Sequence[Users],
    buffers: Sequence[Buffer],
    model: type[Column] = Column,
    outside: int | None = None,
) -> Iterator[Case]:
    """Yield the verdict of each coalition, buffer and kind of column.

    Parameters
    ----------
    parameters : Parameters
    code : MaskCode
        The code of `parameters`, or one at other points.
    coalitions : sequence of tuples of int
    buffers : sequence of Buffer
        The buffers to decide; see `every_user_set` and `every_buffer`.
    model : {Column, Unchecked}
        Whether users check a buffer.
    outside : int, optional
        How many honest users upload in addition to those of the buffer; all when left out. The symbols of such a user
        occur nowhere else, and all such users have the same part in the view, so one stands for all.

    Raises
    ------
    NotAffine
        A core is not affine, so no verdict of this kind exists.
    UnknownUser, DuplicateUser
        A coalition names a user outside the roster, or one twice.
    InconsistentSets
        A user refuses a buffer.
    ParameterError
        `outside` is below 0, or `model` is no kind of column.
    """
    if outside is not None:
        outside = validate.integer("outside", outside, 0)
    coalitions = [validate.users("coalitions", users, parameters.N) for users in coalitions]
    buffers = _buffers("buffers", buffers)
    kinds = every_column(parameters, code, model)
    for coalition in coalitions:
        for buffer in buffers:
            for column in kinds:
                yield _case(column, coalition, buffer, outside)


def _case(column: Column, coalition: Users, buffer: Buffer, outside: int | None) -> Case:
    others = [user for user in range(column.parameters.N) if user not in buffer.users and user not in coalition]
    others = others[:outside]
    verdict = column.decide(coalition, most(column.parameters, buffer, outside=others))
    excess = 0 if verdict.private else column.decide(coalition, least(buffer)).dimension
    weightless = set(buffer.users) - set(buffer.contributors) - set(coalition)
    return Case(coalition, buffer, column.elements, excess, verdict, len(others) + len(weightless))


def expected_excess(parameters: Parameters, case: Case) -> int:
    """Return min(|C| - T, U - T) * (honest contributors - 1), or 0: for a full column and no additional updates."""
    over = min(len(case.coalition) - parameters.T, parameters.U - parameters.T)
    return max(over, 0) * max(len(case.contributors) - 1, 0)


# ------------------------------------------------------------------------------------------- a server that lies


def listening(parameters: Parameters, user: int) -> UserState:
    """Return the state of a user that holds no share yet and has answered nothing."""
    return protocol.user_start(parameters, bytes(16), 0, user, PlainStampedChannel())


def having_received(state: UserState, buffer: Buffer) -> UserState:
    """Return the state of a user after it answered a buffer; `user_recover` decides whether it does.

    Raises
    ------
    InconsistentSets, Replay, WrongPhase
        The user refuses the buffer.
    """
    return protocol.user_recover.take(state, (announcement(state, buffer),), randomness={})[0]


def announcement(state: UserState, buffer: Buffer) -> BufferedSet:
    """Return the message that announces a buffer to a user."""
    stamps = np.array([entry.stamp for entry in buffer.entries], dtype=np.uint64)
    weights = np.array(buffer.weights, dtype=np.uint64)
    return BufferedSet(state.session, buffer.round, SERVER, state.user, buffer.users, stamps, weights)


def holding(state: UserState, updates: Collection[Stamped]) -> UserState:
    """Return the state of a user after it received the shares of some updates, each replacing an older share.

    Raises `ParameterError` for what is no update, and for shares of more than 2^24 elements, and `UnknownUser` for a
    user outside of [0, N).
    """
    if state.parameters.share_length > _MOST:
        raise ParameterError("d", state.parameters.d, f"such that a share has at most 2^24 = {_MOST} elements")
    for user, _ in (given := _updates_of("updates", updates)):
        validate.users("updates", (user,), state.parameters.N)
    share = np.zeros(state.parameters.share_length, dtype=np.uint64)
    return replace(state, held={**state.held, **{user: Held(stamp, share) for user, stamp in sorted(given)}})


def equivocation(
    kinds: Sequence[Column], coalition: Collection[int], asked: Mapping[int, Sequence[Buffer]]
) -> tuple[Verdict, ...]:
    """Return, for each kind of column, what a server learns by announcing different buffers to different users.

    The allowed weighted sums are over the buffers announced to the most users, in this order; a buffer that shares an
    update with one before it is left out.

    Parameters
    ----------
    kinds : sequence of Column
        See `every_column`.
    coalition : collection of int
        The users that work with the server.
    asked : mapping from user to sequence of Buffer
        The buffers announced to each honest user, in order. The share of an update reaches a user once, before the
        first buffer that names this update.

    Raises
    ------
    ParameterError
        There is no column, or columns have different parameters; no user is asked, or a member of the coalition is, or
        a user outside the roster.
    InconsistentSets, Replay, WrongPhase
        A user refuses a buffer.
    """
    parameters = parameters_of(kinds)
    check_lie(parameters.N, coalition, asked)
    for user, buffers in asked.items():
        accepts(parameters, user, buffers)
    return decide_answers(kinds, coalition, asked, asked)


def check_lie(N: int, coalition: Collection[int], asked: Mapping[int, Sequence[Buffer]]) -> Users:
    """Return the coalition, ascending, after checking that at least one user is asked, and no asked user colludes."""
    N = validate.integer("N", N, 1, validate.MAX_COUNT)
    members, honest = validate.user_set("coalition", coalition, N), validate.user_set("asked", [*asked], N)
    if not honest or set(honest) & set(members):
        raise ParameterError("asked", [*honest], "given for honest users, at least one")
    for buffers in asked.values():
        _buffers("asked", buffers)
    return members


def parameters_of(kinds: Sequence[Column]) -> Parameters:
    """Return the parameters of columns; raises `ParameterError` if there is none or they differ in them."""
    if not validate.sequence("kinds", kinds, "Column"):
        raise LengthMismatch("len(kinds)", 0, "1 or more")
    if any(kind.parameters != kinds[0].parameters for kind in kinds):
        raise ParameterError("kinds", "columns of different parameters", "columns of the same parameters")
    return kinds[0].parameters


def decide_answers(
    kinds: Sequence[Column],
    coalition: Collection[int],
    asked: Mapping[int, Sequence[Buffer]],
    answers: Mapping[int, Sequence[Buffer]],
) -> tuple[Verdict, ...]:
    """Return, for each kind of column, what a coalition learns from the uploads in all buffers and from answers.

    The allowed sums are those of `equivocation`, applied to the buffers that are answered.

    Raises
    ------
    ParameterError
        There is no column, or columns have different parameters; a user is outside the roster; or one is asked or
        answers what is no sequence of buffers.
    """
    N = parameters_of(kinds).N
    validate.user_set("asked", [*asked], N)
    validate.user_set("answers", [*answers], N)
    answered = tuple((user, buffer) for user, found in answers.items() for buffer in _buffers("answers", found))
    uploaded = _updates([buffer for buffers in asked.values() for buffer in _buffers("asked", buffers)])
    situation = Situation(_apart([buffer for _, buffer in answered]), uploaded, answered)
    return tuple(column.decide(coalition, situation) for column in kinds)


def accepts(parameters: Parameters, user: int, buffers: Sequence[Buffer]) -> None:
    """Let a user answer buffers one after the other; it receives the share of each update once.

    Raises
    ------
    ParameterError
        There is no such user, or one of the buffers is none.
    InconsistentSets, Replay, WrongPhase
        The user refuses a buffer.
    """
    state, given = listening(parameters, user), set[Stamped]()
    for buffer in _buffers("buffers", buffers):
        state = having_received(holding(state, set(buffer.updates) - given), buffer)
        given.update(buffer.updates)


def _apart(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """Return the buffers, most frequent first, without those that share an update with an earlier one."""
    kept: list[Buffer] = []
    for buffer in sorted(dict.fromkeys(buffers), key=buffers.count, reverse=True):
        if not any(set(buffer.updates) & set(other.updates) for other in kept):
            kept.append(buffer)
    return tuple(kept)


guard(__name__)
