"""Draw the messages of a recorded run as a sequence chart: a column for each party, a row for each kind of message.

The picture is SVG in a single colour, the colour of the surrounding text, so it is legible on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role
from secagg_spec.recording.record import Moment, Parcel, Recording
from secagg_spec.simulate.narration import counted, users_in_words

_COLUMN, _WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _HEAD = 44, 220, 26, 34, 34, 34, 30
_FONT, _SCALE = 12, 1.25
"""The font size, and the largest factor by which the picture may be enlarged."""
_HALO = "paint-order:stroke;stroke:var(--md-default-bg-color,transparent);stroke-width:3px"
_NAMES = {SERVER: "server", AUTHORITY: "authority"}


@dataclass(frozen=True)
class _Line:
    """A row of the picture: the name of a phase, or the messages of one kind."""

    text: str
    hops: tuple[tuple[int, int], ...]
    present: tuple[int, ...]

    @property
    def height(self) -> int:
        """The height of the row."""
        return _ROW if self.hops else _HEAD


def chart(recording: Recording, title: str) -> str:
    """Return the picture of a run as the text of an SVG element for use in a page.

    Raises
    ------
    ParameterError
        The title is no text, the run has more than 220 users, or a message has another party than its users, the
        server and the authority.
    """
    validate.instance("title", title, str)
    validate.integer("recording.users", recording.users, 1, _WIDTH)
    lines = list(_lines(recording))
    parties, acting = [*range(recording.users), SERVER], {party for line in lines for hop in line.hops for party in hop}
    if AUTHORITY in acting:
        parties.append(AUTHORITY)
    if others := acting - {*parties}:
        raise ParameterError("recording", min(others), "of messages between its users, the server and the authority")
    column = min(_COLUMN, _WIDTH // recording.users)
    at = {party: _LEFT + column * place + 14 * (party >= AUTHORITY) for place, party in enumerate(parties)}
    if AUTHORITY in at:
        at[AUTHORITY] += 22
    width, height = max(at.values()) + _RIGHT, _TOP + sum(line.height for line in lines) + 12
    name = escape(f"flow-{recording.protocol}-{recording.run}")
    text = "; ".join(line.text for line in lines)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            f'aria-labelledby="{name}-title {name}-desc" fill="currentColor" stroke="none"',
            f'font-size="{_FONT}" style="max-width:{_SCALE * width:g}px">',
            f'<title id="{name}-title">{escape(title)}</title>',
            f'<desc id="{name}-desc">{escape(text)}</desc>',
            *_heads(at),
            *_lifelines(at, lines, height),
            *_body(at, lines, width),
            "</svg>",
        ]
    )


def _lines(recording: Recording) -> Iterator[_Line]:
    everybody = tuple(range(recording.users))
    before = everybody
    for moment in recording.moments:
        present = everybody if recording.protocol == "multi-round" else moment.present
        dropped = sorted(set(before) - set(present))
        yield _Line(_phase(moment) + (f", without {users_in_words(dropped)}" if dropped else ""), (), present)
        before = present
        for sending in moment.sendings:
            for parcel in sending.parcels:
                yield _Line(_label(parcel), tuple(parcel.hops(Role(sending.role))), present)


def _phase(moment: Moment) -> str:
    _, _, role = moment.key.partition(".")
    return f"{moment.title}: {'users' if role == 'user' else role}" if role else moment.title


def _label(parcel: Parcel) -> str:
    return f"{parcel.kind}: {counted(len(parcel.routes), 'message')}, {counted(parcel.bytes, 'byte')}"


def _heads(at: dict[int, int]) -> Iterator[str]:
    for party, x in at.items():
        yield f'<text x="{x}" y="18" text-anchor="middle" font-weight="600">{_NAMES.get(party, party)}</text>'


def _lifelines(at: dict[int, int], lines: Sequence[_Line], height: int) -> Iterator[str]:
    """Yield a line for each party, ending where it drops out."""
    for party, x in at.items():
        end = min(height - 6, _end(party, lines))
        if end < height - 6:
            yield f'<path d="M{x - 4} {end - 4}l8 8m0 -8l-8 8" stroke="currentColor" stroke-width="1.6"/>'
        yield f'<path d="M{x} 24V{end}" stroke="currentColor" stroke-opacity="0.35"/>'


def _end(party: int, lines: Sequence[_Line]) -> int:
    """Return the vertical position at which a party leaves for good; one that comes back has an unbroken line."""
    last = max((at for at, line in enumerate(lines) if party >= AUTHORITY or party in line.present), default=-1)
    return _TOP + sum(line.height for line in lines[: last + 1]) + (8 if last == len(lines) - 1 else -2)


def _body(at: dict[int, int], lines: Sequence[_Line], width: int) -> Iterator[str]:
    y = _TOP
    for line in lines:
        if line.hops:
            yield f'<text style="{_HALO}" x="{_LEFT - 14}" y="{y + 13}">{escape(line.text)}</text>'
            yield from _arrows(at, line.hops, y + 22)
        else:
            yield f'<rect x="4" y="{y + 5}" width="{width - 8}" height="20" rx="3" fill-opacity="0.09"/>'
            yield f'<text x="{_LEFT - 14}" y="{y + 19}" font-weight="600">{escape(line.text)}</text>'
        y += line.height


def _arrows(at: dict[int, int], hops: Collection[tuple[int, int]], y: int) -> Iterator[str]:
    """Yield one line through all senders and receivers, with a dot at each sender and a head at each receiver."""
    starts, ends = {at[a] for a, _ in hops}, {at[b] for _, b in hops}
    low, high = min(starts | ends), max(starts | ends)
    right = max(ends) > max(starts)
    yield f'<path d="M{low} {y}H{high}" stroke="currentColor" stroke-width="1.2"/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="2.6"/>' for x in sorted(starts))
    step = -7 if right else 7
    yield from (f'<path d="M{x} {y}l{step} -4v8z"/>' for x in sorted(ends))


guard(__name__)
