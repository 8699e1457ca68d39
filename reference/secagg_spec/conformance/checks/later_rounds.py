"""Checks of parties that go from round to round of a session (spec/adapter.md, 4; conventions, SES-01)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import Answer
from secagg_spec.conformance.cases import drawn_rounds, heterosag_rounds
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, check
from secagg_spec.conformance.checks.playing import AGAIN, SESSIONS
from secagg_spec.conformance.checks.sessions import playable, played
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import Dropouts, SessionInputs, called
from secagg_spec.conformance.sessions.mixed import Remote
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.secagg.round import UnmaskRequest
from secagg_spec.protocols.steps import SERVER, Network, Role

NOT_ABOVE = frozenset({"bad_param", "out_of_range", "replay"})
"""The codes for a round that has already begun: the table of spec/adapter.md, section 5."""

OLD_KEY = frozenset({"bad_param", "replay"})
"""The codes for a sealing key that the party had in the previous round."""

_STARTS = ((0, 250), (9, 3), (255, 2), (2**31 - 1, 2), (2**32 - 4, 1))
"""Numbers of the first round, and distances of the next rounds from it and from each other."""


@dataclass(frozen=True)
class Wrong:
    """A round that the party must refuse to begin, the codes that fit, and why."""

    inputs: SessionInputs
    codes: frozenset[str]
    why: str


@dataclass(frozen=True)
class Visit:
    """One round of a session as the party sees it.

    Parameters
    ----------
    inputs : SessionInputs
        What every party of the round is given.
    dropouts : mapping from phase to users
        Who drops out.
    wrong : mapping from int to Wrong
        What the party is asked before the steps with these numbers.
    leaves : int or None
        The step before which the party leaves the round; None if it stays to the end.
    last : Wrong
        What the party is asked after the round: when it is over, has failed, or the party has left it.
    forgetful : bool
        Whether the other parties forget earlier requests. If they do, only this party can refuse.
    """

    inputs: SessionInputs
    dropouts: Dropouts
    wrong: Mapping[int, Wrong]
    leaves: int | None
    last: Wrong
    forgetful: bool


class Left(Exception):
    """The party leaves the round."""


@dataclass(frozen=True, eq=False)
class Visitor(Remote):
    """The adapter's party in one round. Before some steps it is asked for a round that it must refuse."""

    call: Caller
    visit: Visit
    taken: list[str] = field(default_factory=list)

    def step(self, phase: str, inbox: Sequence[bytes]) -> Answer:
        """Ask for what the party must refuse now, then take the step as usual."""
        at = len(self.taken)
        if at in self.visit.wrong:
            self.refuses(self.visit.wrong[at])
        if at == self.visit.leaves:
            raise Left
        self.taken.append(phase)
        return super().step(phase, inbox)

    def refuses(self, wrong: Wrong) -> None:
        """Ask the party to begin a round that it must refuse."""
        answer = self.again(wrong.inputs)
        if answer.kind == "result":
            message = f"{AGAIN}: {called(self.party)} goes on to round {wrong.inputs.round}, although {wrong.why}"
            raise CheckFailed("accepted_invalid", message, {"reject": sorted(wrong.codes)}, LAST)
        self.call.fits(AGAIN, answer, wrong.codes, wrong.why)

    def goes_on(self, inputs: SessionInputs) -> None:
        """Take the party to the next round."""
        answer = self.again(inputs)
        if answer.kind == "reject":
            message = f"{AGAIN}: {called(self.party)} refuses round {inputs.round}: {answer.code} {answer.message}"
            raise CheckFailed("rejected_valid", message, "a result", LAST)
        if answer.value:
            message = f"the result of {AGAIN} is {dict(answer.value)}, must be empty"
            raise CheckFailed("wrong_value", message, {}, LAST)


def _visits(draw: Any, protocol: str, party: int | None) -> tuple[int, list[Visit]]:
    """Draw a party (the server or a user, unless `party` names it) and two or three rounds of its session."""
    first = drawn_rounds.inputs(draw, protocol)
    who = int(draw(among(first.users))) if party is None else party
    start, most = draw(among(_STARTS))
    begun = [replace(first, round=start)]
    for _ in range(draw(st.integers(2, 3))):
        gap = draw(st.integers(1, most)) if start < 2**32 - 4 else 1
        begun.append(drawn_rounds.next_round(draw, begun[-1], begun[-1].round + gap))
    return who, [_visit(draw, who, begun[: at + 2]) for at in range(len(begun) - 1)]


def _visit(draw: Any, party: int, begun: Sequence[SessionInputs]) -> Visit:
    """Draw what happens to the party in the second to last of these rounds. It goes on to the last one."""
    inputs, own = begun[-2], Role.SERVER if party == SERVER else Role.USER
    steps = sum(step.role is own for step in inputs.table)
    asked = draw(st.lists(st.integers(0, steps - 1), max_size=2, unique=True))
    return Visit(
        inputs,
        drawn_rounds.dropouts(draw, inputs, draw(among((0, 1, 2, len(inputs.users))))),
        {at: _wrong(draw, party, begun) for at in sorted(asked)},
        draw(st.none() | st.integers(0, steps - 1)),
        _wrong(draw, party, begun),
        draw(st.booleans()),
    )


def _wrong(draw: Any, party: int, rounds: Sequence[SessionInputs]) -> Wrong:
    """Draw a round that the party must refuse: its number is not above the last one, or one input is wrong."""
    *begun, coming = rounds
    last = begun[-1].round
    if party != SERVER and draw(st.integers(0, 3)) == 0:
        setup = {**coming.setups[party], "update": coming.setups[party]["update"] + "00000000"}
        spoiled = replace(coming, setups={**coming.setups, party: setup})
        return Wrong(spoiled, reject.LENGTH, "the update is one element too long")
    if party != SERVER and coming.protocol == "lightsecagg-active" and draw(st.integers(0, 3)) == 0:
        return Wrong(_with_old_key(coming, begun[-1], party), OLD_KEY, "its sealing key is that of the round before")
    number = draw(among((last, max(0, last - 1), begun[0].round)))
    return Wrong(replace(coming, round=number), NOT_ABOVE, f"the last round that it began is {last}")


def _with_old_key(coming: SessionInputs, before: SessionInputs, party: int) -> SessionInputs:
    """Return a round in which one user reuses its sealing key of the previous round (LSA-35)."""
    new, old = coming.setups[party], before.setups[party]
    roster = [*new["roster"]]
    roster[party] = old["roster"][party]
    setup = {**new, "private": old["private"], "roster": roster}
    return replace(coming, setups={**coming.setups, party: setup})


def _rounds(call: Caller, party: int, visits: Sequence[Visit]) -> None:
    """Open a session for the party and run its rounds."""
    pasts = {one: list(setup.get("past", ())) for one, setup in visits[0].inputs.setups.items()}
    player = playing.player(call)
    with mixed.opened(player, visits[0].inputs, party) as remote:
        for at, drawn in enumerate(visits):
            forgetful = drawn.forgetful and player.exact(drawn.inputs, party)
            inputs = drawn.inputs if at == 0 else _remembering(drawn.inputs, party, pasts, forgetful)
            visitor = Visitor(player, inputs, party, remote.handle, call, drawn)
            if at > 0:
                visitor.goes_on(inputs)
            dropouts = _spared(inputs, pasts[party], drawn.dropouts, forgetful)
            network = mixed.seated(inputs, {party: visitor}, dropouts)
            with suppress(Left, TooFewSurvivors):
                mixed.run_seated(inputs, network, dropouts)
            _remember(network, pasts)
            visitor.refuses(drawn.last)


def _remembering(
    inputs: SessionInputs, party: int, pasts: Mapping[int, list[list[int]]], forgetful: bool
) -> SessionInputs:
    """Return inputs of HeteroSAg whose parties remember the requests of earlier rounds, any others unchanged."""
    if inputs.protocol != "heterosag":
        return inputs
    known = {one: [] if forgetful and one != party else list(past) for one, past in pasts.items()}
    return replace(inputs, setups={one: {**setup, "past": known[one]} for one, setup in inputs.setups.items()})


def _remember(network: Network, pasts: Mapping[int, list[list[int]]]) -> None:
    """Note the survivors of the requests that a HeteroSAg party sent or answered."""
    for event in network.transcript:
        messages = event.sent if event.party == SERVER else event.received
        asked = [message for message in messages if isinstance(message, UnmaskRequest)]
        if asked:
            pasts[event.party].append([int(user) for user in asked[0].survivors])


def _spared(inputs: SessionInputs, past: Sequence[Sequence[int]], dropouts: Dropouts, forgetful: bool) -> Dropouts:
    """Return who drops out. In HeteroSAg it repeats an earlier request if the drawn dropouts would end the round."""
    if inputs.protocol != "heterosag" or forgetful or not past:
        return dropouts
    parameters, left = read_parameters(**inputs.numbers), {user for users in dropouts.values() for user in users}
    if heterosag_rounds.allowed(parameters, past, sorted(set(inputs.users) - left)):
        return dropouts
    return {"share_keys": sorted(set(inputs.users) - set(past[-1]))}


def _again(protocol: str, *clauses: str) -> None:
    about: Any = {"operations": (*SESSIONS, AGAIN), "applies": playable(protocol), "examples": 40}

    @check(f"{AGAIN}/{protocol}", "SES-01", "ADP-54", *clauses, **about)
    def rounds(draw: Any, call: Caller) -> None:
        """A party goes on to later rounds only, from any step of the last one. Refusals do not affect a round."""
        role = draw(among([role.value for role in played(call.caps, protocol)]))
        party, visits = _visits(draw, protocol, SERVER if Role(role) is Role.SERVER else None)
        with playing.as_failure():
            _rounds(call, party, visits)


_again("lightsecagg", "ERR-01", "LSA-03")
_again("lightsecagg-active", "ERR-01", "LSA-03", "LSA-35")
_again("secagg", "ERR-01", "SAG-14")
_again("secagg-active", "ERR-01", "SAG-14", "SAG-67")
_again("heterosag", "ERR-01", "HSA-13", "HSA-27", "HSA-28", "HSA-29")
