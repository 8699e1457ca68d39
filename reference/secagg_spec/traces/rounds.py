"""Check a recorded round message by message against the steps of its protocol.

The server's part is taken again: its step on the messages that came says which messages it sends. The messages of
users are judged by the step of the server that receives them. Nothing here is about one protocol.

Source: spec/traces.md, section 3 (TRC-06 to TRC-13).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple

from secagg_spec import errors, resources
from secagg_spec.arithmetic import shamir, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS as ALL
from secagg_spec.conformance.targets.reference.sessions import Protocol
from secagg_spec.crypto.sealing import OVERHEAD
from secagg_spec.protocols import codec
from secagg_spec.protocols.lightsecagg.round import MaskShare
from secagg_spec.protocols.secagg.round import SecretShares
from secagg_spec.protocols.steps import SERVER, Role, Step
from secagg_spec.traces.files import Closed, Entry, Head, Sent

PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {name: protocol for name, protocol in ALL.items() if isinstance(protocol, Protocol)}
)
"""The protocols that run phase by phase, by name."""
_SEALED: Mapping[type[codec.Message], Callable[[Any], int]] = MappingProxyType(
    {
        SecretShares: lambda parameters: 2 * shamir.ELEMENT_BYTES + OVERHEAD,
        MaskShare: lambda parameters: 4 + 4 * parameters.share_length + OVERHEAD,
    }
)
"""The bytes of a sealed payload, which only its receiver can open."""
_CLAUSES = re.compile(r"\b([A-Z]{3})-(\d\d)(?: to \1-(\d\d))?")


class Finding(NamedTuple):
    """The first message that no conforming party sends.

    `line` is its line, `party` who is at fault, or `SERVER`, and `blamed` are all of whom one is at fault. `rule` is
    the clause about traces that it breaks, `clauses` are those of the protocol, and `code` is the reject code.
    """

    line: int
    phase: str
    party: int
    blamed: tuple[int, ...]
    rule: str
    clauses: tuple[str, ...]
    code: str
    what: str


class BadLine(errors.UsageError):
    """A line of a trace that cannot be used; the message names it."""


class _Found(Exception):
    """A finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


@dataclass
class _Phase:
    """A phase of the users: the state of the server before its step, what it owes each user, and what came.

    `owed` is what the server has not sent yet, by receiver, and `given` what it has. `came` are the messages in order.
    """

    name: str
    user: Step[Any]
    server: Step[Any]
    state: Any
    owed: dict[int, list[codec.Message]]
    given: dict[int, list[codec.Message]] = field(default_factory=dict)
    came: list[tuple[Sent, codec.Message]] = field(default_factory=list)
    seen: dict[tuple[int, type[codec.Message], int], int] = field(default_factory=dict)
    refused: errors.TooFewSurvivors | None = None


class Round:
    """The part of a round that a trace has.

    Parameters
    ----------
    head : Head
    last : mapping from bytes to int
        The largest number of a round before it, by session.

    Raises
    ------
    BadLine
        The head does not hold what the parameters and the keys of a round must be.
    """

    def __init__(self, head: Head, last: Mapping[bytes, int] = MappingProxyType({})) -> None:
        if head.protocol not in PROTOCOLS:
            raise BadLine(f"line {head.line}: protocol is {head.protocol!r}; it must be one of {', '.join(PROTOCOLS)}")
        self.head, self.protocol = head, PROTOCOLS[head.protocol]
        try:
            validate.integer("round", head.round, 0, validate.MAX_COUNT)
            member = self.protocol.open(Role.SERVER, head.numbers, head.session, head.round, head.setup, None)
        except (errors.ParameterError, errors.ProtocolError, Reject, TypeError, KeyError) as error:
            raise BadLine(f"line {head.line}: {error}") from None
        self.parameters = member.parameters
        self.users = range(self.parameters.N)
        self.rows = {(step.phase, step.role): step for step in self.protocol.table}
        self.names = tuple(dict.fromkeys(step.phase for step in self.protocol.table if step.role is Role.USER))
        self.kinds = {kind.TYPE: kind for step in self.protocol.table for kind in (*step.receives, *step.sends)}
        self.phases = [self._phase(self.names[0], member.state, {user: [] for user in self.users})]
        self.state = member.state
        self.late: list[int] = []
        self.over = False
        self.finding: Finding | None = None
        before = validate.integer("last", last.get(head.session, -1), -1, validate.MAX_COUNT)
        if head.round <= before:
            what = f"round {head.round} begins, after round {before} of its session"
            self.finding = Finding(
                *(head.line, self.names[0], SERVER, (SERVER,), "TRC-13", ("SES-01",), "replay", what)
            )

    @property
    def complete(self) -> bool:
        """Whether the server has the sum."""
        last = self.phases[-1]
        return self.finding is None and self.over and last.name == self.names[-1] and last.refused is None

    @property
    def ended(self) -> str:
        """Why the server could not go on, if it could not."""
        return str(self.phases[-1].refused or "")

    def take(self, entry: Entry) -> None:
        """Check the next line, unless one was found before that no conforming party sends.

        Raises
        ------
        BadLine
            The line names a phase that the protocol does not have.
        ParameterError
            It is no entry.
        """
        if _fitting(entry).phase not in self.names:
            raise BadLine(f"line {entry.line}: phase = {entry.phase[:40]!r}: must be one of {', '.join(self.names)}")
        self._checked(lambda: self._closed(entry) if isinstance(entry, Closed) else self._sent(entry))

    def end(self) -> None:
        """Take the last step of the server, with what came until the end of the trace."""
        self._checked(self._close)

    def _checked(self, check: Any) -> None:
        if self.finding is not None:
            return
        try:
            check()
        except _Found as found:
            self.finding = self._earlier(found.finding)

    def _earlier(self, found: Finding) -> Finding:
        """Return a finding, or an earlier one among the messages that the server's next step would take."""
        try:
            if not self.over:
                now = self.phases[-1]
                came = [pair for pair in self._counted(now) if pair[0].line < found.line]
                self._step(self._phase(now.name, now.state, {}), came)
        except _Found as earlier:
            return earlier.finding
        return found

    # ------------------------------------------------------------------------------------------- phases

    def _phase(self, name: str, state: Any, owed: dict[int, list[codec.Message]]) -> _Phase:
        return _Phase(name, self.rows[name, Role.USER], self.rows[name, Role.SERVER], state, owed)

    def _close(self) -> None:
        """Take the step of the server in the phase that is open; what it gives is owed in the next phase."""
        phase = self.phases[-1]
        if self.over:
            return
        state, outbox = self._step(phase, self._counted(phase))
        if phase.refused is not None:
            return
        self.state = state
        if len(self.phases) == len(self.names):
            self.over = True
            return
        owed: dict[int, list[codec.Message]] = {}
        for message in outbox:
            owed.setdefault(message.receiver, []).append(message)
        self.phases.append(self._phase(self.names[len(self.phases)], state, owed))

    def _counted(self, phase: _Phase) -> Sequence[tuple[Sent, codec.Message]]:
        """Return the messages that the server's step takes: all, and of masked inputs those of whole batches."""
        batch = self.head.batch
        if not batch or phase.server.part is None:
            return phase.came
        sent = Counter(message.sender // batch for _, message in phase.came)
        return [pair for pair in phase.came if sent[pair[1].sender // batch] == batch]

    def _step(self, phase: _Phase, came: Sequence[tuple[Sent, codec.Message]]) -> tuple[Any, Sequence[codec.Message]]:
        """Take a step of the server; if it is refused for a message, that is a finding (TRC-10).

        The finding is the first message with which the step is refused.
        """
        phase.refused = None
        try:
            return self._taken(phase, came)
        except errors.TooFewSurvivors as error:
            phase.refused = error
            return phase.state, ()
        except errors.ProtocolError as error:
            counts = range(1, len(came) + 1)
            at = bisect_left(counts, True, key=lambda count: self._refuses(phase, came[:count]))
            sent = came[at][0]
            blamed = tuple(sorted(error.blamed)) or (sent.user,)
            party = sent.user if sent.user in blamed else blamed[0]
            clauses = _raised(error, self._prefixes(phase.server)) or self._clauses(phase.server)
            raise self._found(sent, party, "TRC-10", clauses, error, blamed) from None

    def _taken(self, phase: _Phase, came: Sequence[tuple[Sent, codec.Message]]) -> tuple[Any, Sequence[codec.Message]]:
        if not came:
            whole = f"no batch of {self.head.batch} users is whole" if phase.came else "nobody has sent anything"
            raise errors.TooFewSurvivors(f"{whole} in {phase.name}")
        return phase.server.take(phase.state, [message for _, message in came], randomness={})

    def _refuses(self, phase: _Phase, came: Sequence[tuple[Sent, codec.Message]]) -> bool:
        try:
            self._taken(phase, came)
        except errors.TooFewSurvivors:
            return False
        except errors.ProtocolError:
            return True
        return False

    def _closed(self, entry: Closed) -> None:
        index = self.names.index(entry.phase)
        if index != len(self.phases) - 1 or self.over:
            what = f"{entry.phase} is closed, and the round {'ended in' if self.over else 'is at'} {self.now}"
            raise self._found(entry, SERVER, "TRC-07", (), errors.WrongPhase(what))
        phase = self.phases[-1]
        for user in entry.missing:
            if user not in self.users:
                what = f"user {user} is said to be missing, and users are 0 to {len(self.users) - 1}"
                raise self._found(entry, SERVER, "TRC-07", (), errors.InconsistentSets(what))
            lines = [sent.line for sent, _ in phase.came if sent.user == user]
            if lines:
                what = f"user {user} is said to be missing in {phase.name}, and its message is in line {lines[0]}"
                raise self._found(entry, SERVER, "TRC-07", (), errors.InconsistentSets(what))
        self._close()
        self.over = self.over or phase.refused is not None

    @property
    def now(self) -> str:
        """The phase in which the round is."""
        last = self.phases[-1]
        return "its end" if self.over and last.refused is None else last.name

    # ----------------------------------------------------------------------------------------- messages

    def _sent(self, entry: Sent) -> None:
        if entry.incoming:
            self._came(entry)
        else:
            self._went(entry)

    def _came(self, entry: Sent) -> None:
        """Check a message of a user (TRC-06, TRC-07, TRC-09, TRC-11 to TRC-13)."""
        index, user = self.names.index(entry.phase), entry.user
        if user not in self.users:
            what = f"a message from {user}, and users are 0 to {len(self.users) - 1}"
            raise self._found(entry, user, "TRC-06", ("MSG-03",), errors.InconsistentSets(what))
        if index >= len(self.phases):
            what = f"user {user} is in {entry.phase}, and the round is at {self.now}"
            raise self._found(entry, user, "TRC-07", (), errors.WrongPhase(what))
        phase = self.phases[index]
        message = self._decoded(entry, phase.server.receives, user)
        if message.sender != user:
            what = f"user {user} sends {_name(message)} in the name of {who(message.sender)}"
            raise self._found(entry, user, "TRC-06", ("MSG-03",), errors.Malformed(what))
        self._check_turn(entry, phase)
        key = (user, type(message), message.receiver)
        if key in phase.seen:
            what = f"user {user} sends {_name(message)} to {who(message.receiver)} again, after line {phase.seen[key]}"
            raise self._found(entry, user, "TRC-09", ("MSG-04",), errors.Replay(what))
        phase.seen[key] = entry.line
        self._check_sealed(entry, message)
        if index == len(self.phases) - 1 and not self.over:
            phase.came.append((entry, message))
            return
        self._step(self._phase(phase.name, phase.state, {}), [(entry, message)])
        self.late.append(entry.line)

    def _check_turn(self, entry: Sent, phase: _Phase) -> None:
        """Refuse a message of a user that the server gave no turn, or not all that it owes the user (TRC-11)."""
        user, given, owed = entry.user, phase.given.get(entry.user, []), phase.owed.get(entry.user, [])
        if not phase.user.receives:
            return
        if not given and not owed:
            what = f"user {user} takes a step in {phase.name}, and the server has nothing for it there"
            raise self._found(entry, user, "TRC-11", self._clauses(phase.server, "refuse"), errors.WrongPhase(what))
        if owed:
            first = owed[0]
            what = (
                f"user {user} takes its step in {phase.name} before the server has sent it {_name(first)}"
                f" of {who(first.sender)}" + (f" and {len(owed) - 1} more" if owed[1:] else "")
            )
            party = SERVER if given else user
            before = self.phases[self.names.index(phase.name) - 1].server
            raise self._found(entry, party, "TRC-11", self._clauses(before), errors.WrongPhase(what))

    def _check_sealed(self, entry: Sent, message: codec.Message) -> None:
        if not isinstance(message, (SecretShares, MaskShare)):
            return
        got, wanted = len(message.payload), _SEALED[type(message)](self.parameters)
        if got != wanted:
            what = f"{_name(message)} from {message.sender}: payload is {got} bytes, must be {wanted} bytes"
            raise self._found(entry, entry.user, "TRC-06", ("SEA-01",), errors.Malformed(what))

    def _went(self, entry: Sent) -> None:
        """Check a message of the server against those that its step gives (TRC-07 to TRC-09)."""
        index, user = self.names.index(entry.phase), entry.user
        if index > len(self.phases):
            what = f"the server is in {entry.phase}, and the round is at {self.now}"
            raise self._found(entry, SERVER, "TRC-07", (), errors.WrongPhase(what))
        if index == 0:
            what = f"the server has nothing to send to users in {entry.phase}"
            raise self._found(entry, SERVER, "TRC-07", (), errors.WrongPhase(what))
        before = self.phases[index - 1]
        if index == len(self.phases):
            if not self.over:
                self._close()
            if before.refused is not None:
                what = f"the server goes on, and the round has to end: {before.refused}"
                clauses = self._clauses(before.server, "TooFewSurvivors")
                raise self._found(entry, SERVER, "TRC-08", clauses, errors.TooFewSurvivors(what))
        phase = self.phases[index]
        owed = phase.owed.get(user, [])
        for at, message in enumerate(owed):
            if codec.encode(message) == entry.data:
                phase.given.setdefault(user, []).append(owed.pop(at))
                return
        raise self._wrong(entry, phase, before)

    def _wrong(self, entry: Sent, phase: _Phase, before: _Phase) -> _Found:
        """Return why a message is none of those that the server owes a user."""
        user = entry.user
        message = self._decoded(entry, phase.user.receives, SERVER)
        if message.receiver != user:
            what = f"{_name(message)} to {who(message.receiver)} is sent to {who(user)}"
            return self._found(entry, SERVER, "TRC-06", ("MSG-03",), errors.Malformed(what))

        def alike(other: codec.Message) -> bool:
            return type(other) is type(message) and other.sender == message.sender

        given = [each for each in phase.given.get(user, []) if alike(each)]
        due = [each for each in phase.owed.get(user, []) if alike(each)]
        if given:
            other = _differs(given[0], message)
            now = f", and now {other[1]}" if other else ""
            what = f"the server sends {_name(message)} to {who(user)} again{now}"
            return self._found(entry, SERVER, "TRC-09", ("MSG-04",), errors.Replay(what))
        if not due:
            of = "" if message.sender == SERVER else f" of {who(message.sender)}"
            what = f"the server sends {_name(message)}{of} to {who(user)}, and has none for it"
            return self._found(entry, SERVER, "TRC-08", self._clauses(before.server), errors.InconsistentSets(what))
        different = _differs(due[0], message)
        assert different is not None, "equal messages have equal bytes"
        name, how, of_users = different
        error = (errors.InconsistentSets if of_users else errors.Malformed)(f"{_name(message)} to {who(user)}: {how}")
        return self._found(entry, SERVER, "TRC-08", self._clauses(before.server, name), error)

    def _decoded(self, entry: Sent, kinds: tuple[type[codec.Message], ...], party: int) -> codec.Message:
        """Return a message of this round, of one of the kinds (TRC-06)."""
        number = int.from_bytes(entry.data[:2], "little") if len(entry.data) > 1 else -1
        kind = self.kinds.get(number)
        name = who(party)
        if kind is None:
            what = f"{name} sends bytes that are no message of {self.head.protocol}"
            raise self._found(entry, party, "TRC-06", ("MSG-02",), errors.Malformed(what))
        if kind not in kinds:
            what = f"{name} sends {kind.__name__}, and it has no place in {entry.phase}"
            raise self._found(entry, party, "TRC-07", ("MSG-02",), errors.WrongPhase(what))
        try:
            message = codec.decode(kind, entry.data)
        except errors.Malformed as error:
            wrong = errors.Malformed(f"{kind.__name__} of {name}: {error}")
            raise self._found(entry, party, "TRC-06", ("MSG-02",), wrong) from None
        if (message.session, message.round) != (self.head.session, self.head.round):
            other = errors.WrongPhase(f"{kind.__name__} of {name} is of another session or round")
            raise self._found(entry, party, "TRC-06", ("MSG-03",), other)
        return message

    # ------------------------------------------------------------------------------------------ clauses

    def _found(
        self,
        entry: Entry,
        party: int,
        rule: str,
        clauses: Iterable[str],
        error: errors.ProtocolError,
        blamed: tuple[int, ...] = (),
    ) -> _Found:
        return _Found(
            Finding(
                entry.line, entry.phase, party, blamed or (party,), rule, tuple(clauses), reject_code(error), str(error)
            )
        )

    def _clauses(self, step: Step[Any], word: str = "") -> tuple[str, ...]:
        """Return the clauses of a step; those that mention a word, if any does."""
        found = tuple(_named(step.__wrapped__.__doc__))
        return _mentioning(found, word)

    def _prefixes(self, step: Step[Any]) -> frozenset[str]:
        """Return the prefixes of the clauses of the protocol, and those of the conventions."""
        return frozenset(id[:3] for step in self.protocol.table for id in _named(step.__wrapped__.__doc__)) | {"MSG"}


def _named(text: str | None) -> Iterator[str]:
    """Yield the clauses that a text names."""
    for prefix, first, last in _CLAUSES.findall(text or ""):
        yield from (f"{prefix}-{number:02}" for number in range(int(first), int(last or first) + 1))


def _mentioning(found: tuple[str, ...], word: str) -> tuple[str, ...]:
    """Return the clauses of the text that mention a word; all of them if none does."""
    sentences = resources.clauses()
    known = tuple(id for id in found if id in sentences)
    return tuple(id for id in known if word in sentences[id]) or known


def _raised(error: errors.ProtocolError, prefixes: frozenset[str]) -> tuple[str, ...]:
    """Return the clauses of the innermost function through which an error came that names any."""
    found: tuple[str, ...] = ()
    at: TracebackType | None = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        function = at.tb_frame.f_globals.get(code.co_name)
        function = getattr(function, "__wrapped__", function)
        named = tuple(id for id in _named(getattr(function, "__doc__", None)) if id[:3] in prefixes)
        found = named or found
        at = at.tb_next
    return _mentioning(found, type(error).__name__)


def _differs(wanted: codec.Message, message: codec.Message) -> tuple[str, str, bool] | None:
    """Return the first field that differs, how, and whether it is one of users."""
    for each in fields(wanted):
        kind = codec.field_codecs(type(wanted))[each.name]
        one, other = getattr(wanted, each.name), getattr(message, each.name)
        if kind.write(each.name, one) != kind.write(each.name, other):
            of_users = isinstance(one, tuple)
            how = f"is {_users(other)}, must be {_users(one)}" if of_users else "is not what the server's step gives"
            return each.name, f"{each.name} {how}", of_users
    return None


def _users(users: Sequence[int], most: int = 40) -> str:
    return str(list(users)) if len(users) <= most else f"{list(users[:most])[:-1]} and {len(users) - most} more"


def _name(message: codec.Message) -> str:
    return type(message).__name__


def who(party: int) -> str:
    """Return a party in words."""
    return "the server" if party == SERVER else f"user {party}"


def _fitting(entry: Entry) -> Entry:
    """Return an entry, if it is one."""
    if not isinstance(entry, (Sent, Closed)):
        raise errors.ParameterError("entry", validate.class_of(entry), "of the class Sent or Closed")
    return entry


def check(entries: Iterable[Head | Entry], begun: Callable[[Round], None] = lambda _: None) -> Iterator[Round]:
    """Yield the rounds of a trace, each when it is over; `begun` gets each when it begins.

    Raises
    ------
    BadLine
        A line cannot be used.
    ParameterError
        An entry is none.
    """
    now: Round | None = None
    last: dict[bytes, int] = {}
    for entry in entries:
        if isinstance(entry, Head):
            if now is not None:
                now.end()
                yield now
            now = Round(entry, last)
            last[entry.session] = max(entry.round, last.get(entry.session, 0))
            begun(now)
        elif now is None:
            raise BadLine(f"line {_fitting(entry).line}: a trace begins with a head")
        else:
            now.take(entry)
    if now is not None:
        now.end()
        yield now


guard(__name__)
