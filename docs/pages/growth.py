"""How costs grow: exponents fitted to stored rounds beside those of the text, a picture, and a large server."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple

import numpy as np
from tests.benchmarks.words import cost

from docs.pages.markup import stacked
from secagg_spec.planning import times
from secagg_spec.planning.choices import PROTOCOLS, Choice, answer
from secagg_spec.planning.times import Curve, Points, grown, stored
from secagg_spec.planning.wishes import Wish

TEXT: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    **times.DEGREES,
    "secagg-plus": ((0, 0), (1, 1)),
    "heterosag": ((2, 1), (2, 2)),
}
"""The degrees in N, of a user and of the server, of what does not grow with d and of what does."""
ROLES = ("user", "server")
FAR = 0.5
"""An exponent that is so far from the text's is an outlier."""
WORDS = {"fixed": "what does not grow with d", "each": "what grows with d"}
_SHARES = (
    "for each other user a user agrees on keys, seals and opens a letter, some 0.16 ms; the N^2 products of its shares "
    "take a tenth of a microsecond each, and overtake that beyond 1,500 users"
)
_NOISE = "the parts are differences of measured times, and small beside those that do not grow with d"
_CODED = (
    "a share has d/(U - T) elements, so N of them hold little more than d; what grows with N is the multiplications of "
    "the encoding, which are a part of the time that counts only beyond a hundred users"
)
EXPLAINED: Mapping[tuple[str, str, str], str] = {
    ("secagg", "user", "fixed"): _SHARES,
    ("heterosag", "user", "fixed"): _SHARES,
    ("heterosag", "server", "each"): (
        "to unpack and add N inputs, which is of degree 1, costs more than the masks of the tenth that dropped, which "
        "are of degree 2"
    ),
    ("lightsecagg", "user", "each"): _CODED,
    ("basecagg", "user", "each"): _CODED,
    ("basecagg", "server", "fixed"): (
        "it relays K (N - 1) letters, and K = T + 2 is a tenth of N and two: they grow as N^1.9 here, and the steps "
        "of degree 1 take most of the time at N = 64"
    ),
    **{
        (kind, role, "each"): _NOISE
        for kind, role in (
            ("secagg", "server"),
            ("secagg-plus", "server"),
            ("secagg-plus", "user"),
            ("basecagg", "server"),
        )
    },
}
COLUMNS = ("party", "not growing with d: N to the", "growing with d: N to the", "d to the", "from no dropouts to 30 %")
MEMORY = ("party", "N = 28", "N = 64", "d = 40,000")
N_LARGE, D_LARGE = 10**5, 10**5
LARGE = ("protocol", "seconds of one core", "sent by users, received by them", "held at least")


class Exponent(NamedTuple):
    """An exponent of N that was fitted, and the one of the text."""

    found: float
    text: int

    @property
    def outlier(self) -> bool:
        """Whether the two are far apart."""
        return abs(self.found - self.text) > FAR


def section(records: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the parts of the section, in Markdown; `records` are those of benchmarks by id."""
    record = records["encoding-transform"]
    product, transform = (cost(record, side) for side in ("what", "beside"))
    yield GROWTH
    yield f'<div class="benchmarks">\n{stacked(COLUMNS, "".join(map(_row, _parties())))}\n</div>\n'
    yield "\n".join(
        f"- *{_name(kind, role)}, {WORDS[part]}*: {EXPLAINED[kind, role, part]}" for kind, role, part in outliers()
    )
    yield f'<figure class="growth">{picture()}<figcaption>{CAPTION}</figcaption></figure>\n'
    yield HELD
    yield f'<div class="benchmarks">\n{stacked(MEMORY, "".join(map(_memory, _parties())))}\n</div>\n'
    yield BEYOND.format(product=product, transform=transform)
    yield f'<div class="benchmarks">\n{stacked(LARGE, "".join(_large()))}\n</div>\n'


GROWTH = """\
## Growth { #growth }

Rounds of 28, 64, 128 and 256 users with updates of 1,000 and of 160,000 numbers were timed, and of 64 users with 40,000
and with other shares of dropouts; a tenth drop out and a tenth collude unless said. What does not depend on d, and
what grows with it, are taken apart. An exponent is the slope of a line of least squares through the last three
points on logarithmic scales; beside it stands e, the degree of the text's arithmetic, which rounds of any size approach
from below while fixed costs and lower terms bend the curve. Bold is what is more than a half away. The exponent of d is
that from 40,000 to 160,000 numbers for N = 64, without what 1,000 numbers cost. In all formulas it is 1; these are
single rounds on a shared machine, which that column shows most, and dropouts count for the server alone.
`secagg-spec plan` scales by these rounds, and beyond them by $c_0 n^{e-1} + c_1 n^e$ through the two largest. For
Multi-RoundSecAgg the choice of a thousandth of 10,000 to 1,000,000 users is timed, by the strategy *fair*.
"""
CAPTION = (
    "Seconds against the users of a round, both logarithmic, for updates of 160,000 numbers: of a user on the left, of "
    "the server on the right."
)
HELD = """\
What the largest step of a party holds, letters that arrived apart, in vectors of d elements of 8 bytes; the first two
columns are for d = 160,000, the last one for N = 64 and d = 40,000. Where a row does not change, memory grows with d
alone. The server of HeteroSAg holds a vector for each user: packed inputs are opened before they are added.
"""
BEYOND = """\
### A transform for thousands of users {{ #transform }}

For N = 4,096 users, U = 3,000 and T = 1,000 a user of LightSecAgg encodes a mask of a million elements in
{product} by a product of matrices, and a transform finds the same shares in {transform} (`encoding-transform`). That is
one part of what the user does: it also agrees on 4,095 keys, some 0.3 s, and seals and opens as many letters, so the
whole becomes about twice as fast. The server gains nothing: any 3,000 of the users may answer, so the points to decode
from are no group. And the code would need another prime, $2^{{32}} - 2^{{20}} + 1$, and other points, so that shares of
one profile mean nothing in the other. For so many users SecAgg+ costs each of them a hundredth of the agreements. So
the text has no such profile.

### Beyond one machine {{ #beyond-one-machine }}

What a server of 100,000 users a round needs for updates of 100,000 numbers, when a tenth drop out and a tenth collude:
seconds as a plan scales them, here from rounds of at most 256 users, so they say the order and no more; bytes by the
formulas of the text, as `secagg-spec plan` counts them. What is held at least is six vectors of 8 bytes an element (see
[whole rounds](#rounds)) and, where the server relays letters between users, 46 bytes for each that waits. A machine
adds masks of different users, and decodes different columns, in as many processes as it has cores: the seconds divide.
"""


def _name(kind: str, role: str) -> str:
    return f"{'choosing in ' if kind == 'multi-round' else ''}{PROTOCOLS[kind].title}, {role}"


def _parties() -> list[tuple[str, str]]:
    found = dict.fromkeys((str(row["kind"]), str(row["role"])) for row in stored())
    order = list(PROTOCOLS)
    return sorted(found, key=lambda party: (order.index(party[0]), ROLES.index(party[1])))


def exponents(kind: str, role: str) -> dict[str, Exponent]:
    """Return the exponents of N of a party by part: ``fixed`` and ``each``."""
    if kind == "multi-round":
        return {"fixed": Exponent(exponent(_choices()), 1)}
    pairs = zip(("fixed", "each"), grown(kind, role), TEXT[kind][ROLES.index(role)], strict=True)
    return {part: Exponent(exponent(points), text) for part, points, text in pairs}


def exponent(points: Points) -> float:
    """Return the exponent of the power of n that is nearest to the last three points, on logarithmic scales."""
    users, spent = np.log(points[-3:]).T
    return float(np.polyfit(users, spent, 1)[0])


def outliers() -> list[tuple[str, str, str]]:
    """Return the exponents that are far from those of the text, by protocol, role and part."""
    return [(*party, part) for party in _parties() for part, one in exponents(*party).items() if one.outlier]


def _choices() -> Points:
    return tuple((row["N"], row["seconds"]) for row in stored() if row["kind"] == "multi-round")


def seconds(kind: str, role: str, n: int, d: int, share: float = times.DROPOUT, what: str = "seconds") -> float:
    """Return a figure of a stored round."""
    [found] = {
        row[what]
        for row in stored()
        if (row["kind"], row["role"], row["N"], row["d"], row["dropout"]) == (kind, role, n, d, share)
    }
    return float(found)


def _row(party: tuple[str, str]) -> str:
    kind, role = party
    found = exponents(kind, role)
    cells = [_exponent(found[part]) if part in found else "" for part in ("fixed", "each")]
    if kind == "multi-round":
        cells += ["", ""]
    else:
        long = [(d, seconds(kind, role, 64, d) - seconds(kind, role, 64, 1000)) for d in (40_000, 160_000)]
        cells.append(f"{math.log(long[1][1] / long[0][1]) / math.log(159 / 39):.2f}" if long[0][1] > 0 else "")
        cells.append(f"{seconds(kind, role, 64, 40_000, 0.3) / seconds(kind, role, 64, 40_000, 0.0):.2f} times")
    return _cells(_name(kind, role), COLUMNS, cells)


def _exponent(one: Exponent) -> str:
    shown = f"{one.found:.2f} <small>text: {one.text}</small>"
    return f"<strong>{shown}</strong>" if one.outlier else shown


def _memory(party: tuple[str, str]) -> str:
    kind, role = party
    if kind == "multi-round":
        held = [row["bytes"] / row["N"] for row in stored() if row["kind"] == kind]
        return _cells(_name(kind, role), MEMORY, [f"{max(held):.0f} bytes a user", "", ""])
    sizes = ((28, 160_000), (64, 160_000), (64, 40_000))
    return _cells(
        _name(kind, role), MEMORY, [f"{seconds(kind, role, n, d, what='bytes') / (8 * d):.1f}" for n, d in sizes]
    )


def _cells(head: str, columns: Sequence[str], cells: Sequence[str]) -> str:
    rest = "".join(f'<td data-of="{name}">{cell}</td>' for name, cell in zip(columns[1:], cells, strict=True))
    return f'<tr><th scope="row">{escape(head)}</th>{rest}</tr>'


# ------------------------------------------------------------------------------------------------- a large server


def _large() -> Iterator[str]:
    for kind in TEXT:
        asked = Wish(N_LARGE, D_LARGE, Fraction(1, 10), Fraction(1, 10), asynchronous=PROTOCOLS[kind].asynchronous)
        choice = answer(kind, asked)
        if not isinstance(choice, Choice):
            yield _cells(PROTOCOLS[kind].title, LARGE, ["", f"no choice: {escape(choice.reason)}", ""])
            continue
        took = server_seconds(kind, choice)
        moved = f"{_bytes(N_LARGE * choice.sends)}, {_bytes(N_LARGE * choice.receives)}"
        letters = _letters(choice)
        held = _bytes(6 * 8 * D_LARGE) + (f", and {_bytes(46 * letters)} for {letters:,} letters" if letters else "")
        yield _cells(PROTOCOLS[kind].title, LARGE, [f"{took:,.0f}", moved, held])


def server_seconds(kind: str, choice: Choice) -> float:
    """Return the seconds of the server for a choice, from the stored rounds and their exponents."""
    work = choice.work
    fixed, each = (
        Curve(256, dict(points)[256], points, text).at(work.users)
        for points, text in zip(grown(work.kind, "server"), TEXT[work.kind][1], strict=True)
    )
    return (fixed + each * D_LARGE * float(work.server)) * float(work.times)


def _letters(choice: Choice) -> int:
    """Return how many letters between users wait at the server at one time."""
    N, k = N_LARGE, int(choice.numbers.get("k", N_LARGE - 1))
    return {"basecagg": N - 1, "basa": 0}.get(choice.protocol, N * k)


def _bytes(count: float) -> str:
    unit, size = next((pair for pair in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)) if count >= pair[1]), ("kB", 1e3))
    return f"{count / size:,.3g} {unit}"


# -------------------------------------------------------------------------------------------------------- picture

WIDTH, HEIGHT, LEFT, BELOW, GAP = 330, 250, 40, 30, 20
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
MARKS = ("3,0", "6,3", "2,2", "8,3,2,3", "1,4", "4,1")
USERS = (28, 64, 128, 256)


def picture() -> str:
    """Return two panels as SVG: a line for each protocol, which also differ in their strokes."""
    values = [seconds(kind, role, n, 160_000) for kind in TEXT for role in ROLES for n in USERS]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    body = "".join(_panel(at, role, low, high) for at, role in enumerate(ROLES))
    places = [(LEFT + 105 * at, COLOURS[at], MARKS[at], PROTOCOLS[kind].title) for at, kind in enumerate(TEXT)]
    legend = "".join(
        f'<path d="M{x} {HEIGHT + 22}h24" stroke="{colour}" stroke-dasharray="{mark}" fill="none" stroke-width="2"/>'
        f'<text x="{x + 28}" y="{HEIGHT + 26}">{title}</text>'
        for x, colour, mark, title in places
    )
    size = f'viewBox="0 0 {2 * WIDTH + GAP} {HEIGHT + 40}"'
    label = "Seconds against users, rising lines, steepest for the server of SecAgg"
    return f'<svg role="img" aria-label="{label}" {size} font-size="11" fill="currentcolor">{body}{legend}</svg>'


def _panel(at: int, role: str, low: int, high: int) -> str:
    left, right, top, bottom = at * (WIDTH + GAP) + LEFT, at * (WIDTH + GAP) + WIDTH - 8, 22, HEIGHT - BELOW

    def x(n: float) -> float:
        return round(left + (right - left) * math.log(n / USERS[0]) / math.log(USERS[-1] / USERS[0]), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (math.log10(value) - low) / (high - low), 1)

    parts = [f'<text x="{(left + right) / 2}" y="12" text-anchor="middle">{role}</text>']
    parts += [
        f'<path d="M{left} {y(10.0**p)}H{right}" stroke="currentcolor" opacity="0.25"/>' for p in range(low, high + 1)
    ]
    parts += [
        f'<text x="{left - 4}" y="{y(10.0**p) + 4}" text-anchor="end">{10.0**p:g} s</text>'
        for p in range(low, high + 1)
    ]
    parts += [f'<text x="{x(n)}" y="{bottom + 16}" text-anchor="middle">{n}</text>' for n in USERS]
    for number, kind in enumerate(TEXT):
        points = " ".join(f"{x(n)},{y(seconds(kind, role, n, 160_000))}" for n in USERS)
        stroke = f'stroke="{COLOURS[number]}" stroke-width="2" stroke-dasharray="{MARKS[number]}"'
        parts.append(f'<polyline points="{points}" fill="none" {stroke}/>')
    return "".join(parts)
