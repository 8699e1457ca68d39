"""Let a protocol join the kit: by its parties' rows of the text, its table of steps, and rounds that are drawn.

What follows from these is derived: the operations of its parties, the reference's adapter, valid requests, the checks
of form, the steps that each party must refuse, right steps, sessions, later rounds, and rounds of mixed parties.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis.errors import HypothesisException

from secagg_spec.conformance.adapter import declared
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import drawn_rounds, valid
from secagg_spec.conformance.checks import adapter, faults, forms, playing, sessions
from secagg_spec.conformance.sdk.secagg_adapter import declare_party
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.session import Played, Session
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import messages
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS, Protocol, handler
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.steps import Role, role_of

EXACT, REFUSED, PLAYED = 12, 6, 6
"""The numbers of cases of the checks of right steps, of refused steps between them, and of sessions."""


def join(
    text: str, protocol: Protocol, drawn: Callable[[Any, Mapping[str, Any] | None], SessionInputs], *clauses: str
) -> dict[str, faults.Refusals]:
    """Let a protocol join, and return what each of its parties must refuse, by operation, to add more.

    Parameters
    ----------
    text : str
        The page of the text, with the table of parties of spec/adapter.md, section 4, for this protocol.
    protocol : Protocol
        Its table of steps, and how its parties start.
    drawn : function
        Draws the inputs of a round, with these numbers if any are given.
    clauses : str
        The clauses of the page that the messages of right steps are decided by.

    Raises
    ------
    ParameterError
        The page has no such table, its parties are not those of the table of steps, a clause is not on it, or the
        protocol is there already; or as in `declared.read`.
    """
    parties = declared.read(text).parties
    name = next(iter(parties), "").partition(".")[0]
    taking = {f"{name}.{row.role.value}" for row in protocol.table}
    if set(parties) != taking:
        raise ParameterError("text", sorted(parties), f"a page with a table of the parties {', '.join(sorted(taking))}")
    absent = [clause for clause in clauses if f"[{clause}]" not in text]
    if absent:
        raise ParameterError("clauses", absent[0], "a clause of the page")
    if name in PROTOCOLS:
        raise ParameterError("text", name, "the page of a protocol that has not joined yet")
    for declaration in parties.values():
        declare_party(str(declaration))
    PROTOCOLS[name] = protocol
    drawn_rounds.INPUTS[name] = lambda draw: _inputs(drawn, draw, None)
    drawn_rounds.NEXT[name] = lambda draw, inputs, number: _inputs(drawn, draw, inputs.numbers)
    for row in protocol.table:
        messages.KINDS.update({kind.TYPE: kind for kind in (*row.receives, *row.sends)})
    found = {}
    for party in parties:
        operation = party.replace("-", "_")
        reference.HANDLERS[operation] = handler(party)
        valid.SCENES[operation] = _session(name, Role(party.partition(".")[2]))
        valid.VALID[operation] = valid.script(operation)
        forms.register(operation)
        adapter.register(operation)
        found[operation] = faults.Refusals(
            operation, valid.SCENES[operation], playing.judge_script, (operation,), playing.explicit(operation)
        )
        found[operation].derive()
        playing.right_steps(found[operation], (EXACT, REFUSED, PLAYED), *clauses)
    sessions.mixed_rounds(name, *clauses, "ADP-24")
    return found


def _inputs(drawn: Callable[..., SessionInputs], draw: Any, numbers: Mapping[str, Any] | None) -> SessionInputs:
    """Return drawn inputs; name the function that draws them if it breaks, or returns something else.

    What Hypothesis raises to end a case, as where it rejects one, is passed on.
    """
    name = getattr(drawn, "__qualname__", repr(drawn))
    try:
        found = drawn(draw, numbers)
    except HypothesisException:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ParameterError("drawn", f"{name}, which broke ({why})", "a function that draws inputs") from error
    if not isinstance(found, SessionInputs):
        raise ParameterError("drawn", f"{name}, which returns {type(found).__name__}", "a function of SessionInputs")
    return found


def _session(name: str, role: Role) -> Callable[[Any, Capabilities], Session]:
    """Return what draws a party of a role in a round that succeeds."""

    def session(draw: Any, caps: Capabilities) -> Session:
        inputs = drawn_rounds.inputs(draw, name)
        return Played(inputs, draw(among([who for who in inputs.setups if role_of(who) is role])), inputs.played())

    return session
