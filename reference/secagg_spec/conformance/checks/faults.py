"""The steps that each party must refuse: those that follow from its protocol's table, and how each becomes a check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Condition, Judge, check
from secagg_spec.conformance.checks.scripts import Fault
from secagg_spec.conformance.sessions import broken
from secagg_spec.conformance.sessions.choices import NoCase, among, any_of, only_if, shared
from secagg_spec.conformance.sessions.session import Session, base_of, exchanged, moved, with_more
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, Step

Build = Callable[[Any, Any], Fault]
"""Draws a step that the party of a session must refuse, or raises `NoCase` if the session allows none."""

_SESSIONS = 4
"""How many sessions are drawn at most for a case, until one allows the fault."""

REFUSALS: dict[str, Refusals] = {}
"""What each party must refuse, by the operation of its scripts."""


@dataclass(frozen=True)
class Rule:
    """A step that a party must refuse, and the clauses that say so. HeteroSAg's parties take over `shared` rules."""

    build: Build
    clauses: tuple[str, ...]
    given: dict[str, Any]
    shared: bool


@dataclass(frozen=True, eq=False)
class Refusals:
    """The steps that one party must refuse, each a check: the right steps before and after it must work (ERR-01).

    Parameters
    ----------
    party : str
        The party, with whose name the ids of the checks begin.
    session : function
        Draws a session of the party: of the draws, what the adapter declares, and options.
    judge : function
        Lets the adapter's party take the right steps of a session and faulty ones between them.
    operations, applies, examples
        What each check needs, and its number of cases.
    optional : tuple of str
        The options of a session without which a rule draws no fault rather than a wrong one.
    """

    party: str
    session: Callable[..., Any]
    judge: Callable[..., None]
    operations: tuple[str, ...]
    applies: Condition = lambda caps: True
    examples: int = 12
    optional: tuple[str, ...] = ()
    rules: dict[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        REFUSALS[self.party] = self

    def refuses(
        self,
        name: str,
        *clauses: str,
        shared: bool = True,
        examples: int | None = None,
        applies: Condition | None = None,
        **given: Any,
    ) -> Callable[[Build], Build]:
        """Make a function that draws a fault a check of the party; `given` are the options of the session."""

        def register(build: Build) -> Build:
            def judge(draw: Any, call: Caller) -> None:
                for _ in range(_SESSIONS):
                    session = self.session_of_run(draw, call.caps, **given)
                    for fault in built(build, draw, session):
                        self.judge(call, session, fault)
                        return

            judge.__doc__ = build.__doc__
            self._check(name, *clauses, examples=examples, applies=applies)(judge)
            self.rules[name] = Rule(build, clauses, given, shared)
            return build

        return register

    def inherit(
        self,
        other: Refusals,
        adapt: Callable[[Build], Build] = lambda build: build,
        *,
        without: Collection[str] = (),
        keep: Collection[str] = (),
        more: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """Register the shared faults of another party of the same round, whose sessions have the same steps.

        Parameters
        ----------
        other : Refusals
            What the other party refuses.
        adapt : function
            Changes how each fault is drawn.
        without : collection of str
            The names of the faults that are not taken over.
        keep : collection of str
            The options of the other party's sessions that this party's sessions have as well.
        more : mapping from str to tuple of str
            The clauses that a fault breaks here as well, by its name.
        options
            Those of `refuses`, for each fault.
        """
        for name, rule in other.rules.items():
            if rule.shared and name not in without:
                all_of_them = (*rule.clauses, *more.get(name, ()))
                clauses = tuple(dict.fromkeys(clause.replace("ADP-29", "ADP-21") for clause in all_of_them))
                given = {option: value for option, value in rule.given.items() if option in keep}
                self.refuses(name, *clauses, **options, **given)(adapt(rule.build))

    def derive(self, *names: str, **more: tuple[str, ...]) -> None:
        """Register the faults that follow from the party's rows of the table.

        Parameters
        ----------
        names : str
            The faults; by default all.
        more : tuple of str
            The further clauses that a fault breaks, by its name with _ for -.
        """
        assert {name.replace("_", "-") for name in more} <= set(DERIVED), "clauses of a fault that is not derived"
        protocol, _, role = self.party.replace("_", "-").partition(".")
        rows = [row for row in PROTOCOLS[protocol].table if row.role is Role(role)]
        for name, rule in DERIVED.items():
            if name in (names or DERIVED) and rule.follows(rows):
                clauses = (*rule.clauses, *more.get(name.replace("-", "_"), ()))
                self.refuses(name, *clauses, examples=rule.weight * self.examples)(rule.build)

    def session_of_run(self, draw: Any, caps: Capabilities, **given: Any) -> Any:
        """Draw one of the sessions that the checks of the party share in a run."""
        kind = (self.party, *sorted(given.items()))
        return shared(draw, kind, lambda drawing: self.session(drawing, caps, **given))

    def drawn(self, draw: Any, session: Session, most: int = 3) -> list[Fault]:
        """Draw 1 to `most` faults of the rules that need no session of their own."""
        names = sorted(name for name, rule in self.rules.items() if set(rule.given) <= set(self.optional))
        chosen = strategies.subset(draw, range(len(names)), 1, most)
        return [fault for at in chosen for fault in built(self.rules[names[at]].build, draw, session)]

    def unharmed(self, *clauses: str, examples: int) -> None:
        """Register the check that refused steps leave no trace."""

        @self._check("refused-step", "ERR-01", *clauses, examples=examples)
        def refused_steps(draw: Any, call: Caller) -> None:
            """After the party refused other steps, its right steps come out as if it had never been asked those."""
            session = self.session_of_run(draw, call.caps)
            self.judge(call, session, *self.drawn(draw, session))

    def _check(
        self, name: str, *clauses: str, examples: int | None, applies: Condition | None = None
    ) -> Callable[[Judge], Judge]:
        """Register a check of the party."""
        needs, count = applies or self.applies, examples or self.examples
        return check(f"{self.party}/{name}", *clauses, operations=self.operations, applies=needs, examples=count)


def built(build: Build, draw: Any, session: Any) -> list[Fault]:
    """Return the drawn fault, or none if the session allows none."""
    try:
        return [build(draw, session)]
    except NoCase:
        return []


@dataclass(frozen=True)
class Derived:
    """A fault that follows from a table: its clauses, how it is drawn, and whether it follows from a party's rows."""

    clauses: tuple[str, ...]
    build: Build
    follows: Callable[[Sequence[Step[Any]]], bool]
    weight: int


DERIVED: dict[str, Derived] = {}
"""The faults that follow from the table, by name."""


def _derived(
    name: str, *clauses: str, follows: Callable[[Sequence[Step[Any]]], bool] = lambda rows: True, weight: int = 1
) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        DERIVED[name] = Derived(clauses, build, follows, weight)
        return build

    return register


OfMessage = Callable[[Any, Session, int, int, Any], Fault]
"""Draws a fault of a message that arrives, from the number of its step, its place in the inbox, and the message."""


def _of_message(
    name: str, *clauses: str, weight: int = 1, which: Callable[[Step[Any]], bool] = lambda row: bool(row.receives)
) -> Callable[[OfMessage], OfMessage]:
    """Register a fault of a message that arrives in a step whose row `which` accepts."""

    def register(made: OfMessage) -> OfMessage:
        @wraps(made)
        def build(draw: Any, session: Session) -> Fault:
            inboxes = enumerate(session.inboxes)
            at = any_of(draw, [at for at, (_, inbox) in inboxes if inbox and which(session.row(at))])
            place = draw(st.integers(0, len(session.inbox(at)) - 1))
            return made(draw, session, at, place, session.inbox(at)[place])

        _derived(name, *clauses, follows=lambda rows: any(map(which, rows)), weight=weight)(build)
        return made

    return register


def _relays(row: Step[Any]) -> bool:
    """Return whether the messages of a step are on their way from user to user."""
    return row.senders is None


def _codes(session: Session, at: int, call: Call, place: int, *usual: frozenset[str]) -> frozenset[str]:
    """Return the codes of all rules that a step breaks with the message at `place`, besides the usual ones."""
    inputs, party = session.inputs, session.before(at)
    header = broken.expected(inputs.named(session.party), inputs.opening(session.party))
    errors = broken.refusals(party, call, header, (place,))
    return frozenset().union(*usual, map(reject_code, errors))


@_of_message("elsewhere", "MSG-03", weight=2)
def _elsewhere(draw: Any, session: Session, at: int, place: int, message: Any) -> Fault:
    """A message of another session, round or receiver is refused."""
    others = [other for other in (message.sender, SERVER, 0, 1, session.size) if other != message.receiver]
    changes: dict[str, Any] = {"session": bytes([message.session[0] ^ 1]) + message.session[1:]}
    if session.states[at].endpoint.round is not None:
        changes["round"] = message.round ^ draw(among((1, 256)))
    if message.receiver == session.party:
        changes["receiver"] = draw(among(others))
    changed = draw(among(sorted(changes)))
    call = moved(session.calls()[at], place, replace(message, **{changed: changes[changed]}))
    return Fault(at, call, reject.ELSEWHERE, f"a message has another {changed}")


@_of_message("relay", "MSG-03", which=_relays)
def _relay(draw: Any, session: Session, at: int, place: int, message: Any) -> Fault:
    """A message from user to user is refused if its receiver is no user, or its own sender."""
    only_if(message.receiver != SERVER)
    receiver = draw(among((session.size, SERVER, message.sender)))
    call = moved(session.calls()[at], place, replace(message, receiver=receiver))
    return Fault(at, call, reject.STRANGER, f"a message is for party {receiver}")


@_of_message("sender", "MSG-03", weight=2)
def _sender(draw: Any, session: Session, at: int, place: int, message: Any) -> Fault:
    """A message is refused if its sender has nothing to send to this step."""
    parties = (*[session.size] * session.size, *range(session.size), 2**31 - 1, SERVER, AUTHORITY)
    stranger = draw(among([who for who in parties if who not in senders(session, at) and who != message.sender]))
    changed, call = replace(message, sender=stranger), session.calls()[at]
    ordered = bool(session.states[at].phases)
    call = with_more(call, changed) if ordered and not session.row(at).one else moved(call, place, changed)
    codes = reject.STRANGER | broken.by_header(message, session.party)
    return Fault(at, call, codes, f"party {stranger} has nothing to send here")


def senders(session: Session, at: int) -> set[int]:
    """Return who may send to a numbered step; the server relays, in SecAgg, for users that advertised keys."""
    row, state = session.row(at), session.states[at]
    if row.senders is not None:
        return set(row.senders(state))
    return set(getattr(base_of(state), "keys", None) or range(session.size))


@_of_message("second-message", "MSG-04")
def _second(draw: Any, session: Session, at: int, place: int, message: Any) -> Fault:
    """A second message from one sender is refused, whether its bytes are the same or not."""
    kind, right = (type(message), message.receiver), session.calls()[at]
    others = [other for other in session.inbox(at) if (type(other), other.receiver) == kind]
    if _relays(session.row(at)) and hasattr(message, "payload"):
        others.append(replace(message, payload=message.payload + b"\1"))
    second = replace(one_of(draw, [message, *others]), sender=message.sender)
    call = with_more(right, second)
    same = encode(second) in right.inbox
    codes = reject.SECOND if same else _codes(session, at, call, len(right.inbox), reject.SECOND)
    return Fault(at, call, codes, "a sender sent two messages")


@_of_message("bytes", "MSG-02")
def _bytes(draw: Any, session: Session, at: int, place: int, message: Any) -> Fault:
    """Bytes that do not decode to a message are refused."""
    call = exchanged(session.calls()[at], place, broken_bytes(draw, encode(message)))
    return Fault(at, call, reject.ANOTHER_TYPE, "the bytes are no message")


def broken_bytes(draw: Any, data: bytes) -> bytes:
    """Draw bytes that are not a message: cut, extended, or with another type or count."""
    how = draw(among(("cut", "longer", "type", "count") if len(data) > 30 else ("cut", "longer", "type")))
    if how == "cut":
        return data[: draw(st.integers(0, len(data) - 1))]
    if how == "longer":
        return data + bytes(draw(st.integers(1, 9)))
    if how == "type":
        return (9999).to_bytes(2, "little") + data[2:]
    changed = data[:30] + bytes([data[30] ^ 1]) + data[31:]
    return data[:-1] if _is_message(changed) else changed


def _is_message(data: bytes) -> bool:
    try:
        parse(data)
    except ProtocolError:
        return False
    return True


@_derived("type", "MSG-02")
def _type(draw: Any, session: Session) -> Fault:
    """A message of a type that the step does not expect is refused, even if it is a type of the protocol."""
    arrived = [message for _, inbox in session.inboxes for message in inbox]
    at = draw(st.integers(0, len(session.inboxes) - 1))
    row, call = session.row(at), session.calls()[at]
    wrong = [message for message in arrived if not isinstance(message, row.receives)]
    only_if(wrong)
    message = one_of(draw, wrong)
    call = moved(call, 0, message) if row.one and draw(st.booleans()) else with_more(call, message)
    codes = reject.OUT_OF_TURN if message.sender in senders(session, at) else reject.OUT_OF_TURN | reject.STRANGER
    return Fault(at, call, codes, f"the step {row.phase} takes no {type(message).__name__}")


@_derived("no-message", follows=lambda rows: any(row.one for row in rows))
def _nothing(draw: Any, session: Session) -> Fault:
    """A step that needs a message is refused without one."""
    at = any_of(draw, [at for at in range(len(session.inboxes)) if session.row(at).one])
    return Fault(at, Call(session.row(at).phase), reject.NOTHING_CAME, "no message came")


@_derived("out-of-turn", "MSG-03")
def _early(draw: Any, session: Session) -> Fault:
    """A step is refused if an earlier step was not taken."""
    calls = session.calls()
    at = draw(st.integers(1, len(calls) - 1))
    why = f"the step {calls[at].phase} comes too early"
    return Fault(draw(st.integers(0, at - 1)), calls[at], reject.OUT_OF_TURN, why)


@_derived("step-again", "MSG-04")
def _again(draw: Any, session: Session) -> Fault:
    """A step that was already taken is refused."""
    calls = session.calls()
    at = draw(st.integers(0, len(calls) - 1))
    before = draw(st.integers(at + 1, len(calls)))
    return Fault(before, calls[at], reject.AGAIN, f"the step {calls[at].phase} was taken before")


IN_ANY_ORDER = tuple(name for name in DERIVED if name not in ("out-of-turn", "step-again"))
"""The faults of a party that takes its steps in any order."""
