"""Checks of one party each in rounds where the network is the adversary (spec/conformance.md, section 4).

The acts of a round are drawn one after the other, by the rules of the state machines in
`conformance.cases.adversary_machines`. The check draws them itself, not with Hypothesis's loop over rules. A drawn
round is therefore a list of plain data, and `secagg-spec replay` judges it again without drawing.
"""

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import drawn_rounds, strategies
from secagg_spec.conformance.cases.requests import vandermonde
from secagg_spec.conformance.checks import playing
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, check
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES
from secagg_spec.conformance.sessions import adversary as sessions_adversary
from secagg_spec.conformance.sessions import adversary_rules
from secagg_spec.conformance.sessions.adversary import Act, Engine, Found
from secagg_spec.conformance.sessions.adversary_rules import Stage
from secagg_spec.conformance.sessions.mixed import CODED
from secagg_spec.protocols.steps import SERVER, Role

MOST_ACTS = 60
"""The most acts of a round."""

EXAMPLES = {"heterosag": 10}
"""How many rounds are drawn, where it is not 40: a round of HeteroSAg has about ten users."""

_COMMON = ("ERR-01", "MSG-02", "MSG-03", "MSG-04", "ADP-24")
CLAUSES: dict[str, tuple[str, ...]] = {
    "lightsecagg.user": ("LSA-04", "LSA-09", "LSA-10", "LSA-11", "LSA-12"),
    "lightsecagg.server": ("LSA-05", "LSA-06", "LSA-13", "LSA-16"),
    "lightsecagg-active.user": ("LSA-22", "LSA-27", "LSA-28", "LSA-29"),
    "lightsecagg-active.server": ("LSA-24",),
    "secagg.user": ("SAG-06", "SAG-15", "SAG-19", "SAG-20", "SAG-21", "SAG-23", "SAG-25", "SAG-32"),
    "secagg.server": ("SAG-11", "SAG-16", "SAG-17", "SAG-26", "SAG-28"),
    "secagg-active.user": ("SAG-53", "SAG-54", "SAG-55", "SAG-60", "SAG-61", "SAG-62", "SAG-63", "SAG-75"),
    "secagg-active.server": ("SAG-52", "SAG-57", "SAG-58", "SAG-64"),
    "basecagg.user": ("BSA-07", "BSA-08", "BSA-09", "BSA-21", "BSA-25", "BSA-26", "BSA-28"),
    "basecagg.server": ("BSA-12", "BSA-13", "BSA-14", "BSA-15", "BSA-17"),
    "heterosag.user": ("HSA-17", "HSA-18", "HSA-27"),
    "heterosag.server": ("HSA-20", "HSA-21"),
}
"""The clauses that a round decides for each party, in addition to the rules of all messages."""


def play(call: Caller, protocol: str, role: Role, draw: Callable[[Any], Any]) -> Engine:
    """Draw a round, let the adapter play one or two users or the server, and return the round after its last act."""
    inputs = drawn_rounds.inputs(draw, protocol)
    played = [SERVER] if role is Role.SERVER else strategies.subset(draw, inputs.users, 1, 2)
    acts: list[Act] = []
    try:
        with sessions_adversary.opened(inputs, playing.player(call), played) as engine:
            stage, acts = Stage(engine, tuple(played)), engine.acts
            while not engine.over and len(engine.acts) < MOST_ACTS:
                engine.do(draw(adversary_rules.acts(stage)))
    except Found as found:
        wanted = {"acts": described(acts), **found.wanted}
        raise CheckFailed(found.difference.verdict, str(found), wanted, LAST) from None
    return engine


def described(acts: list[Act]) -> list[str]:
    """Return acts in words, for the report of a stored failure."""
    return [f"{number}. {sessions_adversary.described(act)}" for number, act in enumerate(acts, 1)]


def _applies(party: str) -> Callable[[Capabilities], bool]:
    """Return the condition that an adapter can play a party among the reference's parties."""

    def applies(caps: Capabilities) -> bool:
        own_code = party.startswith(CODED) and not vandermonde(caps)
        own_values = bool(PARTIES[party][1]) and caps.grade(NEW) != "explicit"
        return party in caps.parties and not own_code and not (own_values and party.startswith("basecagg"))

    return applies


def _register(party: str) -> None:
    protocol, _, role = party.partition(".")

    @check(
        f"adversary/{party}",
        *_COMMON,
        *CLAUSES[party],
        operations=SESSIONS,
        applies=_applies(party),
        examples=EXAMPLES.get(protocol, 40),
    )
    def round_under_attack(draw: Any, call: Caller) -> None:
        """Whatever the network does to a round, the party takes or refuses each step as the text demands."""
        play(call, protocol, Role(role), draw)


for _party in CLAUSES:
    _register(_party)
