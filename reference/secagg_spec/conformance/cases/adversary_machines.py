"""Hypothesis's state machines over rounds in which the network is the adversary.

Tests in Python use them: ``TestCase = machine(connection, "secagg.user").TestCase``. Their rules are those of
`rules.RULES`, and their rounds those of the checks ``adversary/*``, which the command ``secagg-spec`` runs. The two
loops differ: here Hypothesis chooses among rules, while a check draws one act after the other. A failure that a check
stores is therefore a list of acts, which needs no drawing.
"""

from contextlib import ExitStack
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import Connection
from secagg_spec.conformance.cases import drawn_rounds, strategies
from secagg_spec.conformance.sessions.adversary import opened
from secagg_spec.conformance.sessions.adversary_demands import revealed_twice
from secagg_spec.conformance.sessions.adversary_paces import PACES
from secagg_spec.conformance.sessions.adversary_rules import RULES, Stage, act
from secagg_spec.conformance.sessions.mixed import Player
from secagg_spec.errors import UsageError
from secagg_spec.protocols.steps import SERVER, Role

_ROWS = 3
"""The most rows of the table that pass between two acts of the network."""
_MEDDLING = 3
"""The most acts of the network between two rows. Hypothesis chooses among rules with equal weights."""


def parties() -> list[str]:
    """Return the parties whose rounds can be played."""
    return [f"{protocol}.{role.value}" for protocol in PACES for role in (Role.USER, Role.SERVER)]


class Round(RuleBasedStateMachine):
    """A round in which an adapter plays a party and the network is the adversary. `machine` adds the rules."""

    player: Player
    protocol: str
    role: Role

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.stage: Stage | None = None

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Draw a round and the parties that the adapter plays."""
        inputs = drawn_rounds.inputs(data.draw, self.protocol)
        played = [SERVER] if self.role is Role.SERVER else strategies.subset(data.draw, inputs.users, 1, 2)
        engine = self.stack.enter_context(opened(inputs, self.player, played))
        self.stage = Stage(engine, tuple(played))

    @property
    def going(self) -> bool:
        """Whether the round has begun and is not over."""
        return self.stage is not None and not self.stage.engine.over

    @precondition(lambda self: self.going)
    @rule(rows=st.integers(1, _ROWS))
    def honest(self, rows: int) -> None:
        """Let everybody go on for some rows of the table."""
        for _ in range(rows):
            if self.going:
                assert self.stage is not None
                self.stage.engine.do(["all"])

    @precondition(lambda self: not self.going)
    @rule()
    def rest(self) -> None:
        """Do nothing more: the round is over."""

    @invariant()
    def nobody_gives_both_secrets_away(self) -> None:
        """Demand that no user sends shares of both secrets of any user."""
        if self.stage is not None:
            for user in self.stage.engine.users:
                assert not revealed_twice(self.stage.engine, user)

    @invariant()
    def whoever_refuses_sends_nothing(self) -> None:
        """Demand that no refused step sends a message."""
        if self.stage is not None:
            assert not any(event.sent for event in self.stage.engine.log if event.error is not None)

    def teardown(self) -> None:
        """Free the sessions of the adapter."""
        self.stack.close()


def machine(connection: Connection, party: str) -> type[Round]:
    """Return the state machine of rounds in which an adapter plays a party.

    Parameters
    ----------
    connection : Connection
        The adapter: a `ProcessConnection` or a `DirectConnection`.
    party : str
        The party, as an adapter declares it: ``"secagg.user"``.

    Raises
    ------
    UsageError
        The adapter does not declare the party, or its rounds cannot be played.
    AdapterUnusable
        The adapter cannot be started.
    """
    caps = greet(connection.ask)
    possible = [name for name in parties() if name in caps.parties]
    if party not in possible:
        known = ", ".join(possible) or "none of its parties"
        raise UsageError(f"party is {party!r}; rounds can be played with {known}")
    protocol, _, role = party.partition(".")
    given = {"player": Player(connection, caps), "protocol": protocol, "role": Role(role)}
    return type("RoundUnderAttack", (Round,), {**{name: _rule(name) for name in RULES}, **given})


def _rule(name: str) -> Any:
    """Return the rule of one kind of act."""

    def possible(self: Round) -> bool:
        if self.stage is None or not self.going:
            return False
        return RULES[name].possible(self.stage) and (name == "all" or not self.stage.meddled(_MEDDLING))

    def happens(self: Round, data: st.DataObject) -> None:
        assert self.stage is not None
        self.stage.engine.do(data.draw(act(name, self.stage)))

    happens.__name__ = name
    return precondition(possible)(rule(data=st.data())(happens))
