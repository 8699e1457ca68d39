"""Whole runs of BASecAgg among honest parties: users arrive, train and upload according to a schedule.

Source: spec/basecagg.md, sections 3 and 4; spec/adapter.md (`basecagg.rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.channels import PlainStampedChannel, StampedChannel
from secagg_spec.crypto.entropy import Source, draw_elements, draw_rounding
from secagg_spec.crypto.sealing import Context, SealedStampedChannel, roster_of
from secagg_spec.errors import ParameterError
from secagg_spec.protocols import steps
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.buffers import check_rounding


@dataclass(frozen=True)
class Start(validate.Plain):
    """A user asks for the model, gets its stamp and shares a mask; all users keep their shares."""

    user: int


@dataclass(frozen=True)
class Upload(validate.Plain):
    """A user masks the next update, and the server accepts it."""

    user: int


@dataclass(frozen=True)
class Abandon(validate.Plain):
    """A user abandons its training."""

    user: int


@dataclass(frozen=True)
class Recover(validate.Plain):
    """The server closes its buffer, these users answer, and the server recovers the buffer."""

    users: tuple[int, ...]


Turn: TypeAlias = Start | Upload | Abandon | Recover


@dataclass(frozen=True, eq=False)
class ScheduleResult(validate.Plain):
    """The end of a run: the recovered buffers, in order, and every step that was taken."""

    buffers: tuple[basecagg.Recovered, ...]
    transcript: tuple[steps.Event, ...]


def draw_randomness(parameters: basecagg.Parameters, source: Source, schedule: Sequence[Turn]) -> steps.Randomness:
    """Draw a schedule's sampled values: `masks` and `noises` of starts, `roundings` of recoveries (section 8)."""
    p, starts = parameters, sum(isinstance(turn, Start) for turn in schedule)
    return {
        "masks": [draw_elements(source, p.field, (p.d,)) for _ in range(starts)],
        "noises": [draw_elements(source, p.field, (p.T, p.share_length)) for _ in range(starts)],
        "roundings": [draw_rounding(source, p.K) for turn in schedule if isinstance(turn, Recover)],
    }


def open_session(
    parameters: basecagg.Parameters,
    *,
    session: bytes,
    round: int,
    channels: Mapping[int, StampedChannel] | None = None,
) -> steps.Network:
    """Return the network of a session before its first step; the arguments are those of `run_schedule`."""
    links = channels_of(parameters, channels)
    states: dict[int, object] = {steps.SERVER: basecagg.server_start(parameters, session, round)}
    for user in range(parameters.N):
        states[user] = basecagg.user_start(parameters, session, round, user, links[user])
    return steps.Network(basecagg.TABLE, states)


def channels_of(
    parameters: basecagg.Parameters, channels: Mapping[int, StampedChannel] | None
) -> Mapping[int, StampedChannel]:
    """Return the channel of each of the N users; the default is the plain channel."""
    users = range(parameters.N)
    if channels is None:
        return dict.fromkeys(users, PlainStampedChannel())
    return validate.keyed("channels", channels, users, f"given for exactly the users 0 to {parameters.N - 1}")


def sealed_channels(context: Context, privates: Mapping[int, bytes]) -> dict[int, SealedStampedChannel]:
    """Return the sealed channels of users 0 ... N - 1; the public keys of `privates` form the roster."""
    roster = roster_of(privates)
    return {user: SealedStampedChannel(context, private, roster) for user, private in privates.items()}


def run_schedule(
    parameters: basecagg.Parameters,
    updates: Sequence[UintArray],
    schedule: Sequence[Turn],
    *,
    randomness: steps.Randomness,
    session: bytes,
    round: int,
    channels: Mapping[int, StampedChannel] | None = None,
) -> ScheduleResult:
    """Run a session among honest parties.

    Parameters
    ----------
    parameters : Parameters
    updates : sequence of arrays (d,)
        The updates in the order of upload; updates left over at the end are not used.
    schedule : sequence of Start, Upload, Abandon and Recover
        The turns, in order.
    randomness : mapping
        ``masks``, ``noises`` and ``roundings``, sequences that are consumed in order; see `draw_randomness`.
    session, round, channels
        The session id (16 bytes), the server's first round, and the channel of each user (plain by default).

    Raises
    ------
    ParameterError
        The inputs do not fit the parameters, or there are too few of them.
    ProtocolError
        A party refuses a step.
    """
    network = open_session(parameters, session=session, round=round, channels=channels)
    return run_turns(Play(network, supplies(parameters, updates, randomness), basecagg.user_trained), schedule)


@dataclass(frozen=True, eq=False)
class Supplies:
    """The updates and sampled values that turns consume, in order."""

    updates: Iterator[UintArray]
    masks: Iterator[UintArray]
    noises: Iterator[UintArray]
    roundings: Iterator[Any]


def supplies(parameters: basecagg.Parameters, updates: Sequence[UintArray], randomness: steps.Randomness) -> Supplies:
    """Return the checked updates and sampled values of a run; the errors are those of `run_schedule`."""
    masks, noises, roundings = steps.take_randomness(randomness, ("masks", "noises", "roundings"))
    p = parameters
    for name, vectors, shape in (
        ("updates", updates, (p.d,)),
        ("masks", masks, (p.d,)),
        ("noises", noises, (p.T, p.share_length)),
    ):
        for at, vector in enumerate(validate.sequence(name, vectors, "arrays")):
            p.field.check(f"{name}[{at}]", vector, shape)
    for at, draws in enumerate(validate.sequence("roundings", roundings, "arrays")):
        check_rounding(f"roundings[{at}]", draws, p.K)
    return Supplies(iter(updates), iter(masks), iter(noises), iter(roundings))


@dataclass(eq=False)
class Play:
    """A network of either profile for taking turns, the supplies of the turns, and how a user gets its update.

    `follow` gives the users that answer again, one by one, and so may show how far a recovery is.
    """

    network: steps.Network
    supplies: Supplies
    trained: Callable[[Any, UintArray], Any]
    follow: steps.Follow = lambda step, users: users

    def __post_init__(self) -> None:
        self.buffers: list[basecagg.Recovered] = []
        self.table: dict[tuple[str, steps.Role], steps.Step[Any]] = {
            (step.phase, step.role): step for step in self.network.table
        }

    def take(self, turn: Turn) -> None:
        """Take a turn. A refused turn ends the run: waiting mail stays where it is.

        Raises also `UnknownUser` for a turn of a user that is not on the network.
        """
        self._check_users(turn)
        match turn:
            case Start(user):
                self._start(user)
            case Upload(user):
                self._upload(user)
            case Abandon(user):
                self._step("abandon", user)
            case Recover(users):
                self._recover(users)
            case _:
                raise ParameterError("schedule", turn, "Start, Upload, Abandon and Recover")

    def _check_users(self, turn: Turn) -> None:
        users = turn.users if isinstance(turn, Recover) else (getattr(turn, "user", 0),)
        validate.users("schedule", users, len(self.network.states) - 1)

    def _start(self, user: int) -> None:
        self._step("request", user)
        self._step("request", steps.SERVER)
        mask, noise = _next("masks", self.supplies.masks), _next("noises", self.supplies.noises)
        self._step("share", user, {"mask": mask, "noise": noise})
        self._step("share", steps.SERVER)
        for other in sorted(self.network.states):
            if other not in (user, steps.SERVER):
                self._step("hold", other)

    def _upload(self, user: int) -> None:
        state = self.network.states[user]
        self.network.states[user] = self.trained(state, _next("updates", self.supplies.updates))
        self._step("upload", user)
        self._step("upload", steps.SERVER)

    def _recover(self, users: Sequence[int]) -> None:
        self._step("close", steps.SERVER, {"rounding": _next("roundings", self.supplies.roundings)})
        users = validate.user_numbers("users", users)
        for phase in ("confirm", "recover") if ("confirm", steps.Role.USER) in self.table else ("recover",):
            for user in self.follow(self.table[phase, steps.Role.USER], users):
                self._step(phase, user)
            self._step(phase, steps.SERVER)
        self.buffers.append(self.network.states[steps.SERVER].recovered)

    def _step(self, phase: str, party: int, randomness: steps.Randomness | None = None) -> None:
        """Take a step; leave announcements of earlier rounds, which came while the user was away, waiting."""
        role, now = (
            steps.Role.SERVER if party == steps.SERVER else steps.Role.USER,
            self.network.states[steps.SERVER].round,
        )
        step = self.table[phase, role]
        mail = self.network.mail(step, party)
        current = tuple(m for m in mail if not isinstance(m, basecagg.BufferedSet) or m.round == now)
        self.network.take_on(current, step, party, randomness)


def _next(name: str, values: Iterator[Any]) -> Any:
    try:
        return next(values)
    except StopIteration:
        raise ParameterError(name, "none left", "as many as the schedule uses") from None


def run_turns(play: Play, schedule: Sequence[Turn]) -> ScheduleResult:
    """Take all turns of a schedule, and return the result."""
    for turn in validate.sequence("schedule", schedule, "turns"):
        play.take(turn)
    return ScheduleResult(tuple(play.buffers), tuple(play.network.transcript))


guard(__name__)
