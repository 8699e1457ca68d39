"""How faults of a party of BASA become checks, with the faults of all its parties and of whole requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import basa_sessions
from secagg_spec.conformance.cases.basa_parties import PARTIES, PARTS, begun
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.faults import IN_ANY_ORDER, Refusals
from secagg_spec.conformance.checks.scripts import Fault
from secagg_spec.conformance.sessions.basa_acts import Moment, Part
from secagg_spec.conformance.sessions.choices import among, any_of
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.basa.messages import EpochKeys, PositionOffer, PositionRequest
from secagg_spec.protocols.steps import AUTHORITY, SERVER

THE_SERVER, THE_AUTHORITY = frozenset({SERVER}), frozenset({AUTHORITY})


def explicit(op: str) -> Callable[[Capabilities], bool]:
    """Return the condition that the entries of a script are determined bit for bit."""
    return lambda caps: caps.grade(op) == "explicit"


def _refusals(party: str) -> Refusals:
    def part(draw: Any, caps: Capabilities, **given: Any) -> Part:
        return PARTS[party](draw, **given)

    made = Refusals(party, part, playing.judge_script, (party,), explicit(party))
    made.derive(*IN_ANY_ORDER, no_message=("MSG-03",))
    return made


def when(draw: Any, part: Part, holds: Callable[[Moment], bool]) -> tuple[int, Moment]:
    """Draw a moment that satisfies `holds`, if there is one. Return the number of its step and the moment."""
    at = int(any_of(draw, part.when(holds)))
    return at, part.moments[at]


def arriving(draw: Any, part: Part, phase: str) -> tuple[int, Any]:
    """Draw a step of a phase in which one message arrives. Return the number of the step and the message."""
    at = int(draw(among(part.taking(phase))))
    [message] = part.inbox(at)
    return at, message


def replaced(part: Part, at: int, **changes: Any) -> Call:
    """Return a step with some fields of its message changed."""
    [message] = part.inbox(at)
    return Call.of(part.events()[at].step.phase, (replace(message, **changes),))


def _another_epoch(draw: Any, part: Part) -> Fault:
    """A message of an epoch other than the open one is refused."""
    free = (EpochKeys, PositionRequest, PositionOffer)
    events = range(len(part.events()))
    at = any_of(draw, [at for at in events if part.inbox(at) and not isinstance(part.inbox(at)[0], free)])
    [message] = part.inbox(at)
    wrong = draw(among([n for n in (message.round - 1, message.round + 1, 0) if n != message.round]))
    return Fault(at, replaced(part, at, round=wrong), reject.ELSEWHERE, f"the message is of epoch {wrong}")


for _party in PARTIES:
    _refusals(_party).refuses("another-epoch", "MSG-03")(_another_epoch)


def _requests(party: str) -> None:
    codes = reject.BAD_PARAM | {"below_threshold", "inconsistent_sets"}
    playing.wrong_openings(party, ("BAA-01", "BAA-02"), explicit(party), begun, basa_sessions.wrong_numbers, codes)

    @check(f"{party}/keys", "SIG-04", "SIG-05", applies=explicit(party), examples=16)
    def keys(draw: Any, caller: Caller) -> None:
        """Keys are refused unless there are N, all different and of the right length."""
        params, rand = begun(draw, party)
        roster = list(params["verification"])
        own = "signing" if "signing" in params else "authority"
        changes: dict[str, dict[str, Any]] = {
            "two users have one key": {"verification": [roster[1], *roster[1:]]},
            "a key is longer": {"verification": [roster[0] + "00", *roster[1:]]},
            "a key is missing": {"verification": roster[:-1]},
            "there is a key more": {"verification": [*roster, "07" * 32]},
            "a key of its own is shorter": {own: params[own][2:]},
        }
        why = draw(among(sorted(changes)))
        codes = reject.EQUAL_KEYS if why.startswith("two") else reject.KEY_LENGTH
        caller.refused(party, {**params, **changes[why]}, codes, why, rand)


for _party in PARTIES:
    _requests(_party)
