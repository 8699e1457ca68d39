"""How checks of sessions and of SecAgg's scripts make a party take its steps, and judge its messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import Answer, Request
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, Condition, check
from secagg_spec.conformance.checks.faults import Refusals, built
from secagg_spec.conformance.checks.scripts import (
    Entries,
    Entry,
    Fault,
    ask,
    at_step,
    compare_entries,
    compare_prefix,
    drop_faults,
    right_step,
    with_faults,
)
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, PARTIES
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.sessions.session import Played, Session
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.steps import SERVER, Role

NEW, STEP, FREE, AGAIN = "session.new", "session.step", "session.free", "session.again"
SESSIONS = (NEW, STEP, FREE)
_MOST_USERS = 12


def plays(*parties: str) -> Any:
    """Return the condition that an adapter plays these parties and accepts explicit sampled values."""
    return lambda caps: set(parties) <= set(caps.parties) and caps.grade(NEW) == "explicit"


def explicit(operation: str) -> Condition:
    """Return the condition that the entries of a script are determined bit for bit."""
    return lambda caps: not OPERATIONS[operation][1] or caps.grade(operation) == "explicit"


@dataclass(frozen=True, eq=False)
class Through:
    """What a mixed round calls to ask the adapter: it goes through the check, which keeps a transcript."""

    call: Caller

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.op == NEW and PARTIES[f"{request.params['protocol']}.{request.params['role']}"][1]:
            self.call.by_relation |= self.call.caps.grade(NEW) != "explicit"
        return self.call.ask(request.op, request.params, request.rand)


def player(call: Caller) -> Player:
    """Return the adapter of a check as a player."""
    return Player(Through(call), call.caps)


def asked(call: Caller, inputs: SessionInputs, party: int, steps: Sequence[Call]) -> Entries:
    """Let a party take steps in its own session, and return one entry for each step, as a script does."""
    with as_failure(), mixed.opened(player(call), inputs, party) as remote:
        answers = [remote.step(step.phase, step.inbox) for step in steps]
    shown = (answer.value if answer.kind == "result" else answer.as_json() for answer in answers)
    return [Entry(body, at) for at, body in enumerate(shown)]


def judge(call: Caller, scene: Played, *faults: Fault, calls: Sequence[Call] | None = None) -> None:
    """Let a party take right and faulty steps. The right ones must come out as they do without the faulty ones."""
    right, wanted = scene.calls() if calls is None else calls, scene.entries(calls)
    steps = with_faults(right, faults)
    entries = asked(call, scene.inputs, scene.party, [step for step, _ in steps])
    first = next((at for at, (_, fault) in enumerate(steps) if fault is not None), 0)
    with right_step(scene.inputs.named(scene.party)):
        _compare(scene, right[:first], entries[:first], wanted[:first])
    kept = drop_faults(call, STEP, entries, [fault for _, fault in steps])
    _compare(scene, right, kept, wanted)


def _compare(scene: Played, calls: Sequence[Call], entries: Entries, right: Sequence[Mapping[str, Any]]) -> None:
    for step, mine, wanted in zip(calls, entries, right, strict=True):
        assert "reject" not in wanted, f"the reference refuses {step.phase}: {wanted}"
        refusal = mine.get("reject")
        answer = Answer("reject", **refusal) if refusal else Answer("result", value=dict(mine))
        outbox = [parse(bytes.fromhex(text)) for text in wanted["outbox"]]
        with at_step(mine.step), as_failure():
            mixed.compare(answer, scene.party, step.phase, outbox, wanted.get("aggregate"))


def judge_script(call: Caller, session: Session, *faults: Fault, calls: list[Call] | None = None) -> None:
    """Do what `judge` does, with all steps in one script."""
    right, wanted = session.calls() if calls is None else calls, session.entries(calls)
    op, steps = session.operation, with_faults(right, faults)
    entries = ask(call, op, session.params([step for step, _ in steps]), session.rand() or None)
    compare_prefix(op, steps, entries, wanted)
    compare_entries(op, right, drop_faults(call, op, entries, [fault for _, fault in steps]), wanted)


@contextmanager
def as_failure() -> Iterator[None]:
    """Fail the check where a party differs from the reference."""
    try:
        yield
    except Difference as difference:
        raise failed(difference) from None


def failed(difference: Difference) -> CheckFailed:
    """Return a difference as the failure of a check."""
    message = str(difference)
    if difference.dropouts is not None:
        before = [(user, phase) for phase, users in difference.dropouts.items() for user in sorted(users)]
        message += f"; dropped out: {', '.join(f'user {u} before {phase}' for u, phase in before) or 'nobody'}"
    return CheckFailed(difference.verdict, message, step=LAST)


def parties(caps: Capabilities, protocol: str) -> list[Role]:
    """Return the roles of a protocol that an adapter plays."""
    return [role for role in Role if f"{protocol}.{role.value}" in caps.parties]


def drawn_parties(draw: Any, users: Sequence[int], roles: Sequence[Role]) -> list[int]:
    """Draw the parties of some roles that the adapter plays: the server, one to three users, or both."""
    chosen = strategies.subset(draw, users, 1, 3) if Role.USER in roles else []
    server = [SERVER] if Role.SERVER in roles and (not chosen or draw(st.booleans())) else []
    return [*server, *chosen]


def right_steps(refusals: Refusals, examples: tuple[int, int, int], *clauses: str) -> None:
    """Register the checks that a party takes its right steps as the text says, whatever it refused between them.

    Parameters
    ----------
    refusals : Refusals
        What the party must refuse.
    examples : tuple of int
        How many cases the three checks draw: right steps, refused steps, sessions.
    clauses : str
        The clauses that decide the messages of the right steps.
    """
    exactly, refused, played = examples
    party, applies = refusals.party, refusals.applies

    @check(f"{party}/exact", *clauses, "MSG-01", "ADP-20", applies=applies, examples=exactly)
    def exact(draw: Any, caller: Caller) -> None:
        """The party sends the messages of the text in every state in which it can take a step."""
        refusals.judge(caller, refusals.session(draw, caller.caps))

    refusals.unharmed("ADP-20", examples=refused)
    in_sessions(refusals, played)


def in_sessions(refusals: Refusals, examples: int, *, scripted: bool = True) -> None:
    """Register the check that a party takes its right steps in a session, whatever it refused between them.

    The script of a party of LightSecAgg has ranges and a grade of its own. It is not `scripted`: its sessions are drawn
    without these, and not shared with its scripts.
    """
    name = refusals.party.replace("_", "-")
    played = plays(name)

    def applies(caps: Capabilities) -> bool:
        return played(caps) and (scripted or caps.policy("mds.code") == "vandermonde")

    @check(
        f"{NEW}/{name}",
        *("ERR-01", "ADP-24", "ADP-29"),
        operations=SESSIONS,
        applies=applies,
        examples=examples,
    )
    def session(draw: Any, caller: Caller) -> None:
        """In a session each step is the one of the text, and refused steps leave no trace."""
        if scripted:
            drawn = refusals.session_of_run(draw, caller.caps)
            judge(caller, drawn, *refusals.drawn(draw, drawn))
            return
        blames = [name for name, rule in refusals.rules.items() if "ADP-21" in rule.clauses]
        rule = refusals.rules[draw(among(sorted((*refusals.rules, *blames, *blames))))]
        drawn = refusals.session(draw, _without_ranges(caller.caps, refusals.party), **rule.given)
        judge(caller, drawn, *built(rule.build, draw, drawn), *refusals.drawn(draw, drawn, 2))


def _without_ranges(caps: Capabilities, party: str) -> Capabilities:
    """Return what an adapter declares, as if its script of a party had the numbers and the grade of its sessions."""
    declared = {"ranges": {"N": {"max": _MOST_USERS}}, "randomness": caps.grade(NEW)}
    return replace(caps, operations={**caps.operations, party: declared})


def wrong_openings(
    party: str,
    clauses: tuple[str, ...],
    applies: Condition,
    begun: Callable[[Any, str], tuple[dict[str, Any], dict[str, Any]]],
    wrong_numbers: Callable[[dict[str, Any]], dict[str, dict[str, Any]]],
    codes: frozenset[str] = reject.BAD_PARAM,
) -> None:
    """Register what a party's script refuses as a whole: parameters, by their clauses and codes, and its header.

    `begun` draws the two parts of a right request. `wrong_numbers` returns changes of one that break a rule, by rule.
    """

    @check(f"{party}/parameters", *clauses, applies=applies, examples=40)
    def parameters(draw: Any, caller: Caller) -> None:
        """Parameters that the text forbids are refused."""
        params, rand = begun(draw, party)
        why = "the parameters break a rule ({})"
        caller.some_refused(draw, party, params, wrong_numbers(params), codes, rand, why)

    @check(f"{party}/request", "ERR-02", applies=applies, examples=12)
    def request(draw: Any, caller: Caller) -> None:
        """A session of the wrong length, a round outside its range, or a user outside the roster is refused."""
        params, rand = begun(draw, party)
        changes: list[dict[str, Any]] = [{"session": params["session"][2:]}, {"session": params["session"] + "00"}]
        changes += [{"round": str(2**32)}, {"round": "-1"}]
        changes += [{"user": params["N"]}, {"user": -1}] if "user" in params else []
        changed = one_of(draw, changes)
        codes = reject.KEY_LENGTH if "session" in changed else reject.OUT_OF_RANGE
        caller.refused(party, {**params, **changed}, codes, f"the request has {changed}", rand)
