"""One party of a session of BASA: what arrives at it, and what it knows before each of its steps."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from secagg_spec.conformance.cases import basa_sessions, requests
from secagg_spec.conformance.sessions.basa_acts import Director, Part, part_of
from secagg_spec.conformance.sessions.choices import among
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


def _other(party: int, draw: Any, *, session: Session = basa_sessions.session, **given: Any) -> Part:
    """Draw a server or an authority."""
    return part_of(session(draw, **given), party)


PARTS: Mapping[str, Callable[..., Part]] = {
    USER: user_part,
    SERVED: partial(_other, SERVER),
    KEYS: partial(_other, AUTHORITY),
}
begun = partial(requests.begun, PARTS)
VALID = requests.scripts(PARTS)
