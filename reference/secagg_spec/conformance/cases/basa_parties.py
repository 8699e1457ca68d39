"""One party of a session of BASA: what arrives at it, and what it knows before each of its steps."""

from collections.abc import Callable, Mapping
from typing import Any

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import basa_sessions
from secagg_spec.conformance.cases.requests import Valid
from secagg_spec.conformance.sessions.basa_acts import Director, Part, part_of
from secagg_spec.conformance.sessions.choices import among, shared
from secagg_spec.protocols.steps import AUTHORITY, SERVER

USER, SERVED, KEYS = "basa.user", "basa.server", "basa.authority"
PARTIES = (USER, SERVED, KEYS)


Session = Callable[..., Director]


def user_part(draw: Any, *, session: Session = basa_sessions.session, **given: Any) -> Part:
    """Draw a user that uploaded in the last epoch."""
    director = session(draw, **given)
    served = director.knows(SERVER)
    user = int(draw(among([user for _, user in served.accepted] or director.stage.inputs.users)))
    return part_of(director, user)


def server_part(draw: Any, *, session: Session = basa_sessions.session, **given: Any) -> Part:
    """Draw a server."""
    return part_of(session(draw, **given), SERVER)


def authority_part(draw: Any, *, session: Session = basa_sessions.session, **given: Any) -> Part:
    """Draw an authority."""
    return part_of(session(draw, **given), AUTHORITY)


PARTS: Mapping[str, Callable[..., Part]] = {USER: user_part, SERVED: server_part, KEYS: authority_part}


def begun(draw: Any, party: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a right script of a party. Return its params and its sampled values."""
    part = shared(draw, (party,), PARTS[party])
    return part.params(part.calls()), part.inputs.rand(part.party)


def _valid(party: str) -> Callable[[Any, Capabilities], Valid]:
    return lambda draw, caps: Valid(*begun(draw, party))


VALID: dict[str, Callable[[Any, Capabilities], Valid]] = {party: _valid(party) for party in PARTIES}
