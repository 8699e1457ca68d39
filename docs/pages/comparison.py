"""The page on which the protocols are compared: every number comes from a run, a formula or a verdict of the code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from docs.pages.common import relative, write
from docs.pages.comparison_runs import (
    COMMON,
    ENTRANTS,
    SMALL,
    Counted,
    Entrant,
    Setting,
    counted,
    heterosag_lost,
    heterosag_parameters,
    lightsecagg_parameters,
    secagg_plus_parameters,
    summed,
    tolerated,
)
from docs.pages.markup import link
from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.privacy import basa, basecagg, heterosag, lightsecagg, secagg
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basecagg import round as basecagg_protocol
from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.lightsecagg import round as lightsecagg_protocol
from secagg_spec.protocols.secagg import round as secagg_protocol
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role
from secagg_spec.simulate.narration import users_in_words

PAGE = "reference/comparison.md"
LARGE = Setting(200, 40, 30, 100_000)
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, where its cells come from, and how one is made."""

    head: str
    source: str


@dataclass(frozen=True)
class Sheet:
    """A table: its heading, what stands above it, its columns, and a row of cells for each protocol."""

    heading: str
    text: str
    columns: tuple[Column, ...]
    rows: Mapping[str, tuple[str, ...]]


def write_comparison(out: Path) -> None:
    """Write the page."""
    write(out / PAGE, page())


def page() -> str:
    """Return the page in Markdown, with tables in HTML."""
    return "\n\n".join([_head(), *(_section(sheet) for sheet in sheets())]) + "\n"


def sheets() -> tuple[Sheet, ...]:
    """Return all tables."""
    return (messages(), traffic(), work(), costs(), endurance(), verdicts(), properties())


def _head() -> str:
    s = COMMON
    choosing = relative("how-to/choose-parameters.md", PAGE)
    return (
        "---\nhide: [toc]\n---\n# The protocols side by side\n\n"
        f"One setting for all: N = {s.N} users of whom D = {s.D} drop out before they upload, up to T = {s.T} collude "
        f"with the server, and an update has d = {s.d:,} elements of 4 bytes. The numbers are those of rounds that "
        "were run with the reference when this page was built, of cost formulas that tests hold against such rounds, "
        "and of privacy verdicts; below each table stands the source of its columns. An active profile is one in "
        f"which users do not trust what the server announces. [How to choose parameters]({choosing})."
    )


def title(entrant: Entrant) -> str:
    """Return what a protocol is called in a table."""
    return f"{entrant.title}, active" if entrant.active else entrant.title


def _named(make: Callable[[Entrant], tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    return {key: make(entrant) for key, entrant in ENTRANTS.items()}


def _shown(number: int) -> str:
    return f"{number:,}" if number else "none"


# ------------------------------------------------------------------------------------------------------- messages


def messages() -> Sheet:
    """Return who sends what when, from the tables of phases."""
    columns = (
        Column("users send", "the rows of users that send something in the table of phases, in order"),
        Column("messages of a user", "the kinds of messages in these rows"),
        Column("after the upload", "those of these phases that come after the masked update"),
        Column("server sends", "how many rows of the server send something"),
        Column("authority", "whether the table has rows of an authority"),
        Column("users who were there", "the users who took a step in each of these phases of the round that was run"),
        Column("parameters", "those of that round, by the symbols of the text of the protocol"),
    )
    text = "Where a phase comes after the upload, enough users must stay for it, or there is no sum."
    return Sheet("Messages, and who must be online", text, columns, _named(_messages))


def _messages(entrant: Entrant) -> tuple[str, ...]:
    users = [step for step in entrant.table if step.role is Role.USER and step.sends]
    kinds = [kind.__name__ for step in users for kind in step.sends]
    serving = sum(bool(step.role is Role.SERVER and step.sends) for step in entrant.table)
    authority = any(step.role is Role.AUTHORITY for step in entrant.table)
    acting = {step.phase: set[int]() for step in users}
    for event in counted(entrant).played.transcript:
        if event.step.role is Role.USER and event.step.phase in acting:
            acting[event.step.phase].add(event.party)
    return (
        f"{len(users)}: {', '.join(step.phase for step in users)}",
        ", ".join(kinds),
        f"{len(entrant.answers)}: {', '.join(entrant.answers)}" if entrant.answers else "nothing",
        str(serving),
        YES if authority else NO,
        ", ".join(f"{phase} {len(found)}" for phase, found in acting.items()),
        parameters_of(entrant.parameters(COMMON)),
    )


# ------------------------------------------------------------------------------------------------- bytes and work


def traffic() -> Sheet:
    """Return the bytes of the round that was run."""
    source = "the canonical bytes of the messages in the transcript of the round that was run; "
    columns = (
        Column("a user sends", f"{source}the most of a user whose update is in the sum"),
        Column("times its update", "the same over the 4 d bytes of an update"),
        Column("a user receives", f"{source}the most of a user whose update is in the sum"),
        Column("server sends", f"{source}all together; what users send each other passes the server"),
        Column("server receives", f"{source}all together"),
        Column("authority sends", f"{source}all together"),
        Column("updates in the sum", "the contributors of that round"),
    )
    text = "Of a round at the setting above; what users send each other is sealed."
    return Sheet("Bytes", text, columns, _named(lambda entrant: _bytes(counted(entrant))))


def parameters_of(p: Any) -> str:
    """Return the numbers of a session but for d: users, colluders, thresholds, buffers, groups."""
    if hasattr(p, "selection"):
        chosen = p.selection
        return f"N = {chosen.N}, K = {chosen.K}, T = {chosen.T}; each round: {parameters_of(p.round)}"
    names = [name for name in ("N", "K", "S", "D", "U", "T", "t", "k", "W") if getattr(p, name, None) is not None]
    groups = f", groups of {', '.join(map(str, p.sizes))}" if hasattr(p, "sizes") else ""
    return ", ".join(f"{name} = {getattr(p, name)}" for name in names) + groups


def _bytes(run: Counted) -> tuple[str, ...]:
    sent = run.most(run.sent.__getitem__)
    times = f"{float(Fraction(sent, 4 * COMMON.d)):.2f}"
    received = run.most(run.received.__getitem__)
    numbers = (received, run.sent[SERVER], run.received[SERVER], run.sent[AUTHORITY], len(run.played.contributors))
    return (_shown(sent), times, *map(_shown, numbers))


def work() -> Sheet:
    """Return what the parties of the round that was run compute."""
    source = "calls counted while the round ran, the most of a user whose update is in the sum; "
    columns = (
        Column("mask elements, user", f"{source}elements of pseudorandom streams that were expanded"),
        Column("mask elements, server", "the same of the server"),
        Column("products, user", f"{source}products modulo q or R in products of matrices and weighted sums"),
        Column("products, server", "the same of the server, without the elimination of a matrix of U rows"),
        Column("agreements, user", f"{source}different pairs of X25519 keys"),
        Column("agreements, server", "the same of the server"),
        Column("Shamir shares, user", f"{source}shares of 32 bytes that were made"),
        Column("secrets, server", "secrets that the server put together from such shares"),
        Column("signatures, user", f"{source}made and verified"),
    )
    text = "Operations of the same rounds. Additions, hashes and ciphers of sealed boxes are not counted."
    return Sheet("Operations", text, columns, _named(lambda entrant: _work(counted(entrant))))


def _work(run: Counted) -> tuple[str, ...]:
    server = run.work.get(SERVER)

    def most(name: str) -> int:
        return run.most(lambda user: getattr(run.work[user], name) if user in run.work else 0)

    pairs = [(most(name), getattr(server, name, 0)) for name in ("mask_elements", "products", "agreements")]
    signatures = f"{most('signed')} and {most('verified')}" if most("signed") else "none"
    numbers = [_shown(number) for pair in pairs for number in pair]
    return (*numbers, _shown(most("shares")), _shown(getattr(server, "recovered", 0)), signatures)


# ------------------------------------------------------------------------------------------------------- formulas


@dataclass(frozen=True)
class Cost:
    """What the formulas give: bytes of the vectors that a user sends, mask elements, and products."""

    vectors: int
    user_masks: int
    server_masks: int
    user_products: int
    server_products: int


def formulas(s: Setting) -> Mapping[str, Cost]:
    """Return the costs of a round in which D users drop out before they upload, where a formula is known."""
    left = s.N - s.D
    length = lightsecagg_parameters(s).share_length
    coded = 4 * (s.d + s.N * length)
    pairs = heterosag_costs.secagg_user_masks(s.d, s.N).elements
    plus = heterosag_costs.secagg_user_masks(s.d, secagg_plus_parameters(s).k + 1).elements
    return {
        "secagg": Cost(4 * s.d, pairs, left * (1 + s.D) * s.d, 0, 0),
        "secagg-plus": Cost(4 * s.d, plus, left * s.d + s.D * (plus - s.d), 0, 0),
        "lightsecagg": Cost(coded, 0, 0, s.N * left * length, (left - s.T) * left * length),
        "basecagg": Cost(coded, 0, 0, (s.N + 1) * left * length, left * ((left - s.T) * length + s.d)),
        "heterosag": _heterosag(s),
    }


def _heterosag(s: Setting) -> Cost:
    p = heterosag_parameters(s)
    left = sorted(set(range(s.N)) - set(heterosag_lost(s)))
    users = [heterosag_costs.user_masks(p, user) for user in left]
    sent = max(heterosag_costs.masked_bytes(p, user) for user in left)
    return Cost(sent, max(one.elements for one in users), heterosag_costs.server_masks(p, left).elements, 0, 0)


def costs() -> Sheet:
    """Return the formulas at a larger setting."""
    s = LARGE
    columns = (
        Column("vectors sent, bytes", "4 d; 4 (d + N L) with shares of L = d / (U - T), rounded up; packed segments"),
        Column("mask elements, user", "of the pairs and of itself: N d; (k + 1) d; `heterosag.costs.user_masks`"),
        Column("mask elements, server", "(N - D)(1 + D) d; at most (N - D + D k) d; `heterosag.costs.server_masks`"),
        Column("products, user", "N U L to encode; U L more to weigh"),
        Column(
            "products, server",
            "(U - T) U L to decode, after an interpolation of U points; K d more to weigh K = U updates",
        ),
    )
    text = (
        f"Formulas at N = {s.N}, D = {s.D}, T = {s.T}, d = {s.d:,}; U = N - D, and k = {secagg_plus_parameters(s).k} "
        "neighbours in SecAgg+. Tests hold them against the rounds above. The rounds of Multi-RoundSecAgg cost what "
        "those of SecAgg do, and for BASA see its own page."
    )
    rows = {key: tuple(map(_shown, vars(cost).values())) for key, cost in formulas(s).items()}
    return Sheet("Costs of a larger round", text, columns, rows)


# ------------------------------------------------------------------------------------- dropouts and many rounds


def endurance() -> Sheet:
    """Return how many dropouts a round survives, and what many rounds tell."""
    columns = (
        Column("D, or S", "D of the parameters, in BASA the spare positions"),
        Column("before the upload", "the most with which rounds still gave a sum, found by running them (below)"),
        Column("before the last answer", "the same, for users that go after they uploaded"),
        Column("in the sum then", "how many contribute to the sum with that many dropouts before the upload"),
        Column("always together", "the smallest set of users that two sums do not tell apart, one of all users and one "
               "in which user 1 dropped out"),
    )  # fmt: skip
    text = (
        "How many users may go: they go in an order that is bad for the protocol where the order matters (the smallest "
        "group first in HeteroSAg, one of each batch in Multi-RoundSecAgg, a fixed one on the graph of SecAgg+). "
        "Where fewer can go than the parameters say, those that go leave a group too small, or break up batches. "
        "In BASA those that go time out with their keys. Users that are always together cannot be distinguished by any "
        "number of such sums; where this is 1, it depends on who is chosen whether "
        f"[models come out of many sums]({relative('explanation/reconstruction.md', PAGE)})."
    )
    return Sheet("Dropouts, and many rounds", text, columns, _named(_endurance))


def _endurance(entrant: Entrant) -> tuple[str, ...]:
    before = tolerated(entrant, entrant.uploads)
    after = str(tolerated(entrant, entrant.answers[-1], before)) if entrant.answers else "nobody answers"
    left = summed(entrant, entrant.spread[:before], entrant.uploads)
    assert left is not None
    return (str(promised(entrant.parameters(SMALL))), str(before), after, str(len(left)), str(together(entrant)))


def promised(p: Any) -> int:
    """Return how many dropouts parameters provide for: D, in BASA the spare positions, or those of a round."""
    found = next(getattr(p, name) for name in ("D", "S", "round") if hasattr(p, name))
    return found if isinstance(found, int) else promised(found)


@functools.cache
def together(entrant: Entrant) -> int:
    """Return the size of the smallest set of users whom two rounds do not tell apart."""
    sums = [summed(entrant, lost, entrant.uploads) for lost in ((), (1,))]
    return min(map(len, participation_classes([users for users in sums if users is not None])))


# ------------------------------------------------------------------------------------------------ what is learned


@dataclass(frozen=True)
class Learned:
    """What a coalition of some size learns at most beyond what it may, and in how many cases that was decided."""

    cases: int
    dimension: int
    example: str


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on a protocol at small parameters, by the number of colluders."""

    T: int
    parameters: str
    sums: str
    by_size: Mapping[int, Learned]

    @property
    def first(self) -> int | None:
        """How many users it takes to learn more, None when no number does."""
        return next((size for size, learned in sorted(self.by_size.items()) if learned.dimension), None)


def _first_users(N: int) -> list[tuple[int, ...]]:
    return [tuple(range(size)) for size in range(N + 1)]


def _verdict_of_secagg(p: secagg_protocol.Parameters) -> Iterator[Any]:
    graph = p.graph(None if p.complete else range(p.N))
    return secagg.audit(p, graph, _first_users(p.N), tuple(secagg.every_dropout(p, graph)))


def _verdict_of_lightsecagg() -> Iterator[Any]:
    p = lightsecagg_protocol.PRESETS["tiny"]
    return lightsecagg.audit(p, p.code, _first_users(p.N), tuple(lightsecagg.every_surviving_set(p)))


def _verdict_of_basecagg() -> Iterator[Any]:
    p = basecagg_protocol.PRESETS["tiny"]
    buffers = [basecagg.varied(p, users) for users in basecagg.every_user_set(p)]
    return basecagg.audit(p, p.code, _first_users(p.N), buffers, outside=1)


def _verdict_of_basa() -> Iterator[Any]:
    p = basa_cores.PRESETS["tiny"]
    situations = basa.every_settled(p.K, p.positions, p.T + 2)
    return basa.audit(p.ring, basa.RULES[p.timeouts], situations)


def _verdict_of_heterosag() -> Iterator[Any]:
    p = heterosag_plan.PRESETS["tiny"]
    plan = heterosag.Plan(p)
    for cells in heterosag.kinds(p).values():
        for happened, coalition in heterosag.every_case(plan, cells[0], (0, p.T, p.T + 1, p.t)):
            yield plan.decide((cells[0],), happened, coalition)


@functools.cache
def decided() -> Mapping[str, Verdicts]:
    """Return the verdicts at preset tiny; for SecAgg+ the same preset with two neighbours."""
    tiny, sparse = secagg_protocol.PRESETS["tiny"], _sparse()
    coded, buffered = lightsecagg_protocol.PRESETS["tiny"], basecagg_protocol.PRESETS["tiny"]
    queued, cells = basa_cores.PRESETS["tiny"], heterosag_plan.PRESETS["tiny"]
    parts = list(_verdict_of_secagg(sparse))
    few = [case.parts for case in parts if len(case.coalition) <= sparse.T]
    pieces, least = max(map(len, few)), min(len(part) for found in few for part in found)
    return {
        "secagg": _verdicts(tiny, "one", _verdict_of_secagg(tiny)),
        "secagg-plus": _verdicts(sparse, _in_parts(pieces, least), iter(parts)),
        "lightsecagg": _verdicts(coded, "one", _verdict_of_lightsecagg()),
        "basecagg": _verdicts(buffered, "one, weighted", _verdict_of_basecagg()),
        "basa": _verdicts(queued, "one, weighted", _verdict_of_basa()),
        "heterosag": _verdicts(cells, f"{len(cells.parts)}, each of a segment and a cell", _verdict_of_heterosag()),
    }


def _in_parts(pieces: int, least: int) -> str:
    """Say into what the sum of a sparse graph may fall."""
    alone = ": the sum of a part of one user is that user's update" if least == 1 else ""
    return f"one, in up to {pieces} parts of {least} or more users{alone}"


def _sparse() -> secagg_protocol.Parameters:
    p = secagg_protocol.PRESETS["tiny"]
    return secagg_protocol.Parameters(R=p.R, N=p.N, D=p.D, T=p.T, t=2, k=2, d=p.d)


def _verdicts(p: Any, sums: str, cases: Iterator[Any]) -> Verdicts:
    groups: dict[int, list[Any]] = {}
    for case in cases:
        groups.setdefault(len(case.coalition), []).append(case)
    return Verdicts(p.T, parameters_of(p), sums, {size: _worst(group) for size, group in sorted(groups.items())})


def _worst(group: Sequence[Any]) -> Learned:
    worst = max(group, key=lambda case: case.verdict.dimension)
    verdict = worst.verdict
    example = f"{verdict.functionals[0]} for {users_in_words(worst.coalition)}" if verdict.dimension else ""
    return Learned(len(group), verdict.dimension, example)


def verdicts() -> Sheet:
    """Return what is learned beyond the sum."""
    columns = (
        Column("decided at", "the preset tiny of the protocol; for SecAgg+ the same with a sparse graph"),
        Column("sums that may be known", "the cells of the plan, and the components of a sparse graph, in these cases"),
        Column("the server alone", "exact verdicts on the cores that run: numbers known beyond these sums, at most"),
        Column("with T users", "the same, in the worst case with that many colluders"),
        Column("with T + 1", "the same"),
        Column("more is learned from", "the smallest number of colluders with a verdict other than nothing"),
        Column("for example", "one combination of inputs that these learn"),
        Column("cases", "how many verdicts were reached for this row"),
    )
    text = (
        "What the server and colluders learn beyond the sum and their own inputs. The coalitions are the first s users "
        "for each s, against every dropout (in BASA all coalitions, in HeteroSAg all up to exchanges, of one cell of "
        "each kind); `secagg-spec privacy` decides all coalitions. Multi-RoundSecAgg has rounds of SecAgg. Active "
        "profiles run the same cores on the sets that were signed. [What a verdict "
        f"proves]({relative('explanation/privacy-verdicts.md', PAGE)})."
    )
    return Sheet("What is learned beyond the sum", text, columns, {key: _learned(v) for key, v in decided().items()})


def _learned(found: Verdicts) -> tuple[str, ...]:
    def row(size: int) -> str:
        learned = found.by_size.get(size)
        return "not decided" if learned is None else f"up to {learned.dimension}" if learned.dimension else "nothing"

    first = found.first
    return (
        found.parameters,
        found.sums,
        row(0),
        row(found.T),
        row(found.T + 1),
        NO + " number" if first is None else f"{first} users",
        found.by_size[first].example if first is not None else "",
        str(sum(learned.cases for learned in found.by_size.values())),
    )


# ------------------------------------------------------------------------------------------------ yes and no


def properties() -> Sheet:
    """Return what a protocol has or has not."""
    columns = (
        Column("quantises updates itself", "whether its parameters have levels (c_l, or K_g for each group)"),
        Column("stale updates", "whether its parameters have a largest staleness"),
        Column("groups to compare", "over how many sets of users the sums of one element are known"),
        Column("a median is possible", "whether these are three or more"),
        Column("users sign", "whether a user signed anything in the round that was run"),
        Column("keeps users together", "whether the smallest set always together has T + 2 users or more"),
    )
    here, default = ENTRANTS["heterosag"].parameters(COMMON), heterosag_plan.PRESETS["default"]
    text = (
        "No protocol here checks that an update is honest: whatever a user masks is in the sum. With three sums or "
        "more of each element the server can take a median instead, against Byzantine users. Groups of HeteroSAg that "
        f"share a cell share its sum: its {len(here.sizes)} groups here leave the server {_groups(here)} sums of each "
        f"element; {len(default.sizes)} groups, at its preset default, leave {_groups(default)}."
    )
    return Sheet("Byzantine users, quantisation, many rounds", text, columns, _named(_properties))


def _word(holds: bool) -> str:
    return YES if holds else NO


def _properties(entrant: Entrant) -> tuple[str, ...]:
    p = entrant.parameters(COMMON)
    quantises = hasattr(p, "c_l") or hasattr(p, "levels")
    groups = _groups(p)
    run = counted(entrant)
    signs = run.most(lambda user: run.work[user].signed if user in run.work else 0)
    return (
        _word(quantises),
        f"up to {p.tau_max} rounds old" if hasattr(p, "tau_max") else NO,
        str(groups),
        _word(groups >= 3),
        _word(bool(signs)),
        _word(together(entrant) >= COMMON.T + 2),
    )


def _groups(p: Any) -> int:
    """Return over how many sets of users the sums of one element are known, at least."""
    if not isinstance(p, heterosag_plan.Parameters):
        return 1
    return min(sum(cell.segment == segment for cell in p.parts) for segment in range(p.count))


# ------------------------------------------------------------------------------------------------------- HTML


def _section(sheet: Sheet) -> str:
    sources = "\n".join(f"- *{column.head}*: {column.source}." for column in sheet.columns)
    return (
        f"## {sheet.heading}\n\n{sheet.text}\n\n{_table(sheet)}\n\n"
        f'<details markdown="1"><summary>Where these columns come from</summary>\n\n{sources}\n\n</details>'
    )


def _table(sheet: Sheet) -> str:
    heads = "".join(map(_heading, sheet.columns))
    rows = "\n".join(_row(ENTRANTS[key], sheet, cells) for key, cells in sheet.rows.items())
    head = f'<thead><tr><th scope="col">protocol</th>{heads}</tr></thead>'
    return f'<div class="sheet">\n<table>\n{head}\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>'


def _heading(column: Column) -> str:
    source = escape(column.source.replace("`", ""))
    return f'<th scope="col" title="{source}">{escape(column.head)}</th>'


def _row(entrant: Entrant, sheet: Sheet, cells: Sequence[str]) -> str:
    assert len(cells) == len(sheet.columns)
    named = link(f"spec/{entrant.page}", PAGE, escape(title(entrant)))
    columns = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row">{named}</th>{columns}</tr>'
