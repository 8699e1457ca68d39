"""Rules: what the network may do next in a round, and with which probability.

A rule looks at the reference's parties and their messages, never at an adapter's answers. If an adapter draws its own
values, the rule looks at the round that runs alongside.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.sessions.adversary import TURNED, Act, Engine
from secagg_spec.conformance.sessions.adversary_letters import Letter, changes, lies, user_lists
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.protocols.steps import SERVER

MOST_LOST = 4
"""The most messages that the network loses or delays in a round; otherwise rounds would seldom finish."""
HEADERS = frozenset({"sender", "receiver", "round", "session", "cut", "longer", "type"})
"""The changes whose refusal does not depend on the values in a message."""


@dataclass(frozen=True)
class Stage:
    """A round, and the network's preferred targets: the parties that an adapter plays."""

    engine: Engine
    played: tuple[int, ...]

    @property
    def seen(self) -> Engine:
        """The round that draws may look at."""
        return self.engine.twin or self.engine

    @property
    def parties(self) -> list[int]:
        """All parties, with the played ones first."""
        return [*self.played, *(party for party in (*self.seen.users, SERVER) if party not in self.played)]

    @property
    def blind(self) -> bool:
        """Whether values must not be altered, because an adapter's values differ from those in the visible round."""
        return self.engine.twin is not None

    def targets(self, has: Callable[[int], bool]) -> list[int]:
        """Return the parties with a property; played parties occur several times."""
        able = [party for party in self.parties if has(party)]
        return [party for party in able if party in self.played] * 4 + able

    def lost(self) -> int:
        """Return the number of messages lost or delayed so far."""
        return sum(act[0] in ("drop", "hold") for act in self.seen.acts)

    def meddled(self, most: int) -> bool:
        """Return whether all of the last `most` acts were the network's."""
        last = [act[0] for act in self.seen.acts[-most:]]
        return len(last) == most and "all" not in last

    def pressed(self) -> list[int]:
        """Return the restarted parties, and those with waiting letters that the network made."""
        seen = self.seen
        begin = {party for party in self.parties if seen.lives[party] > 0 and not seen.taken(party)}
        made = {party for party in self.parties if any(letter.made for letter in seen.waiting(party))}
        return [party for party in self.parties if party in begin | made]

    def leaving(self) -> list[int]:
        """Return the users that may drop out."""
        users, dropped = self.seen.users, self.seen.dropped
        return [user for user in users if user not in dropped][::-1] if len(dropped) < max(1, len(users) // 4) else []

    def restarts_alike(self, party: int) -> bool:
        """Return whether a restarted party gets the same values; a party that draws its own values does not."""
        return not self.blind or party not in self.played

    def honest(self, party: int) -> list[int]:
        """Return the places of the unmodified letters that wait for a party."""
        return [place for place, letter in enumerate(self.seen.waiting(party)) if not letter.made]

    def lists(self, party: int) -> list[int]:
        """Return the places of waiting letters from the server that name users."""
        letters = self.seen.waiting(party)
        return [place for place in self.honest(party) if _names_users(letters[place])] if party != SERVER else []


def _names_users(letter: Letter) -> bool:
    return letter.message is not None and letter.message.sender == SERVER and bool(user_lists(letter.message))


@dataclass(frozen=True)
class Rule:
    """One kind of act: its weight, whether it is possible now, and a function that draws one.

    `tried` is the weight of the act `step` right after this act, which often tests the network's changes at once.
    """

    weight: int
    possible: Callable[[Stage], bool]
    drawn: Callable[[Any, Stage], Act]
    tried: int | None = None

    def often(self, stage: Stage) -> int:
        """Return the current weight of the act; 0 if it is impossible."""
        if not self.possible(stage):
            return 0
        return self.tried if self.tried is not None and stage.pressed() else self.weight


def _one(draw: Any, options: Sequence[Any]) -> Any:
    return draw(among(options))


def _at_mail(name: str, weight: int, least: int = 1) -> Rule:
    """Return the rule of an act on unmodified letters that wait for a party."""

    def able(stage: Stage) -> list[int]:
        return stage.targets(lambda party: len(stage.honest(party)) >= least)

    def drawn(draw: Any, stage: Stage) -> Act:
        party = _one(draw, able(stage))
        places = stage.honest(party)
        first = _one(draw, places)
        return [name, party, first, *([_one(draw, [at for at in places if at != first])] if least > 1 else [])]

    def possible(stage: Stage) -> bool:
        return bool(able(stage)) and (name not in ("drop", "hold") or stage.lost() < MOST_LOST)

    return Rule(weight, possible, drawn)


def _drawn_step(draw: Any, stage: Stage) -> Act:
    """Draw a party and a step, usually one that its state allows."""
    party = _one(draw, stage.pressed() * 8 + stage.targets(lambda party: True))
    return ["step", party, _phase(draw, stage, party)]


def _phase(draw: Any, stage: Stage, party: int) -> str:
    seen = stage.seen
    phase: str = _one(draw, seen.pace.allowed(seen, party) * 9 + seen.rows(party))
    return phase


def _drawn_again(draw: Any, stage: Stage) -> Act:
    """Draw a step that a party took, often the last one, unchanged or with one letter changed."""
    party = _one(draw, stage.targets(lambda party: bool(stage.seen.steps(party))))
    events = stage.seen.steps(party)
    number = draw(st.integers(0, len(events) - 1)) if draw(st.booleans()) else len(events) - 1
    asked = ["again", party, number, draw(st.integers(1, 3))]
    letters = events[number].letters
    if not letters or any(letter.message is None for letter in letters) or stage.blind or draw(st.booleans()):
        return asked
    place = draw(st.integers(0, len(letters) - 1))
    if _names_users(letters[place]) and draw(st.integers(0, 3)):
        return [*asked, "told", place, *draw(lies(letters[place].data, len(stage.seen.users)))]
    return [*asked, "changed", place, *draw(changes(letters[place].data, stage.parties))]


def _drawn_release(draw: Any, stage: Stage) -> Act:
    held = stage.seen.held
    party = _one(draw, stage.targets(lambda party: bool(held.get(party))))
    return ["release", party, draw(st.integers(0, len(held[party]) - 1))]


def _drawn_alter(draw: Any, stage: Stage) -> Act:
    party = _one(draw, stage.targets(lambda party: bool(stage.honest(party))))
    place = _one(draw, stage.honest(party))
    change = draw(changes(stage.seen.waiting(party)[place].data, stage.parties))
    if stage.blind and change[0] not in HEADERS:
        change = ["cut", 1]
    return ["alter", party, place, *change]


def _drawn_tell(draw: Any, stage: Stage) -> Act:
    party = _one(draw, stage.targets(lambda party: bool(stage.lists(party))))
    place = _one(draw, stage.lists(party))
    asked = ["tell", party, place, _phase(draw, stage, party), draw(st.integers(1, 3))]
    return [*asked, *draw(lies(stage.seen.waiting(party)[place].data, len(stage.seen.users)))]


def _drawn_recall(draw: Any, stage: Stage) -> Act:
    party = _one(draw, stage.targets(lambda party: True))
    return ["recall", party, draw(st.integers(0, len(stage.seen.archive) - 1))]


def _drawn_foreign(draw: Any, stage: Stage) -> Act:
    """Draw a message of the other round, usually one addressed to the party there."""
    party, letters = _one(draw, stage.targets(lambda party: True)), stage.seen.foreign
    own = [number for number, data in enumerate(letters) if parse(data).receiver == party]
    number = _one(draw, own) if own and draw(st.booleans()) else draw(st.integers(0, len(letters) - 1))
    return ["foreign", party, number]


def _has_other_round(stage: Stage) -> bool:
    return stage.seen.inputs.protocol != "basecagg" and bool(stage.seen.log)


def _drawn_restart(draw: Any, stage: Stage) -> Act:
    """Draw a party to restart: in this round, or in the other one, whose messages the network knows."""
    party, round = _one(draw, stage.targets(stage.restarts_alike)), stage.seen.inputs.round
    return ["restart", party, round ^ 1 if _has_other_round(stage) and draw(st.booleans()) else round]


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "all": Rule(20, lambda stage: True, lambda draw, stage: ["all", *[TURNED] * draw(st.booleans())]),
        "step": Rule(5, lambda stage: True, _drawn_step, tried=24),
        "again": Rule(10, lambda stage: any(map(stage.seen.steps, stage.parties)), _drawn_again),
        "drop": _at_mail("drop", 2),
        "hold": _at_mail("hold", 2),
        "release": Rule(4, lambda stage: any(stage.seen.held.values()), _drawn_release),
        "repeat": _at_mail("repeat", 3),
        "swap": _at_mail("swap", 3, least=2),
        "alter": Rule(7, lambda stage: any(map(stage.honest, stage.parties)), _drawn_alter),
        "tell": Rule(20, lambda stage: any(map(stage.lists, stage.parties)), _drawn_tell),
        "recall": Rule(3, lambda stage: bool(stage.seen.archive), _drawn_recall),
        "foreign": Rule(3, _has_other_round, _drawn_foreign),
        "leave": Rule(
            1, lambda stage: bool(stage.leaving()), lambda draw, stage: ["leave", _one(draw, stage.leaving())]
        ),
        "restart": Rule(4, lambda stage: bool(stage.seen.log), _drawn_restart),
    }
)
"""All rules, by the name of their act. The first one is the honest and simplest act."""


@st.composite
def act(draw: st.DrawFn, name: str, stage: Stage) -> Act:
    """Draw a possible act of one kind."""
    return list(RULES[name].drawn(draw, stage))


@st.composite
def acts(draw: st.DrawFn, stage: Stage) -> Act:
    """Draw the next act."""
    names = ["all"] * stage.seen.pace.haste
    names += [name for name, rule in RULES.items() for _ in range(rule.often(stage))]
    return list(draw(act(draw(among(names)), stage)))
