"""The command ``secagg-spec power``: what kills each mutant, and which of them a run would notice.

The answers come from the stored evidence (`kills`); ``--search`` searches again.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secagg_spec import system
from secagg_spec.commands import options
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine, kinds
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.conformance.mutation import kills
from secagg_spec.conformance.mutation.kills import DRAWN, NOTHING, TEST, VECTORS, Bug
from secagg_spec.errors import UsageError
from secagg_spec.terminal import Progress

if TYPE_CHECKING:
    from secagg_spec.conformance.mutation.search import Kill

_USAGE = """secagg-spec power [-k PATTERN] [--json FILE]
       secagg-spec power [--json FILE] -- ./adapter [arguments]
       secagg-spec power --search [-k PATTERN] [--fuzz N] [--seeds N]
                         [-- ./adapter [arguments]]
       secagg-spec power --regenerate [--anew] [-k PATTERN]
       secagg-spec power --edits"""
_EPILOG = """A mutant is the reference with one known bug, or with two that hide each other. What fails with the bug
kills the mutant. secagg-spec explain NAME shows the bug as a diff of the source.

Without an adapter: how many mutants vectors, drawn cases and tests kill, and with -k what kills each of those.

With an adapter: its mutation score. That is how many mutants a run with the operations, ranges, grades and policies
that it declares would notice. The command also says what to declare to notice more. The number is a lower bound: a
mutant counts only if a vector or a stored case that kills it lies inside what is declared.

--search looks again for what kills each mutant, which takes long. It first tries the vectors that decide a clause of
the mutant, or have a flag that names it, and all others if none of these kills it. In the same way, it first draws 20
cases of each check, and then all.

--edits says which mutants no longer fit the source, and why. It takes seconds.

exit codes:
  0  every mutant is killed; with an adapter: the answer is given;
     with --edits: every mutant fits the source
  1  nothing kills a mutant, or spec/power.json has no row for it, or has a row
     for a mutant that does not exist; with --edits: a mutant does not fit
  2  wrong usage, or a file that cannot be used or written
  3  the adapter could not be used"""
_COLUMNS = (VECTORS, DRAWN, TEST, NOTHING)
_FUZZ, _SEEDS, _MOST_SEEDS = 100, 3, 1000
_SHOWN, _NEAR = 8, 5
_PAUSE = 30.0
"""Seconds after which an unfinished table is written."""

_RULES = options.Rules(
    needs={"fuzz": ("search",), "seeds": ("search",), "anew": ("regenerate",), "start_timeout": ("adapter",)},
    only={
        "edits": (),
        "regenerate": ("pattern", "anew"),
        "search": ("pattern", "fuzz", "seeds", "adapter", "start_timeout"),
    },
)


def add_parser(commands: Any) -> None:
    """Add ``power`` to the commands."""
    parser = commands.add_parser(
        "power",
        description="Say what kills each mutant, and which mutants a run on your adapter would notice.",
        usage=_USAGE,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "-k", dest="pattern", metavar="PATTERN", help="only mutants with this in their name, clauses, kind or protocol"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the answer as JSON")
    parser.add_argument("--search", action="store_true", help="search again for what kills each mutant")
    parser.add_argument("--fuzz", type=values.count, metavar="N", help=f"with --search: cases per check ({_FUZZ})")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        metavar="N",
        help=f"with --search: seeds for each mutant ({_SEEDS})",
    )
    parser.add_argument("--regenerate", action="store_true", help="renew spec/power.json, in a checkout")
    parser.add_argument("--edits", action="store_true", help="only say which mutants no longer fit the source")
    parser.add_argument("--anew", action="store_true", help="with --regenerate: keep no row, even if it still holds")
    options.add_start_timeout(parser)
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=main, rules=_RULES)


def _seeds(text: str) -> int:
    if (number := values.count(text, "seeds")) > _MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"{values.cut(text)} is more than {_MOST_SEEDS} seeds")
    return number


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if given.adapter and given.pattern and not given.search:
        raise UsageError("-k goes with an adapter only together with --search")
    if given.edits:
        return _edits()
    if given.json:
        begins = '{\n "caught": ' if given.adapter else '{\n "schema": "secagg-spec-power/'
        values.writable_file("--json", given.json, *values.files_of(given.adapter), begins=begins)
    chosen = _chosen(given.pattern)
    if given.regenerate:
        return _regenerate(chosen, given.anew)
    caps = None
    if given.adapter:
        try:
            caps = _declared(given.adapter, given.start_timeout)
        except AdapterUnusable as unusable:
            print(f"the adapter cannot be used: {shown(str(unusable))}", file=sys.stderr)
            return 3
    if given.search:
        return _search(chosen, given, caps)
    return _summary(chosen, given) if caps is None else _reach(caps, given)


def _edits() -> int:
    """Print which edits of the source cannot be made."""
    found = list(engine.faults())
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        count = "1 mutant no longer fits" if len(found) == 1 else f"{len(found)} mutants no longer fit"
        print(f"\n{count} the source. For each of them, change old and new in its file so that it is", file=sys.stderr)
        print("the same bug in the new source, or remove it if the new source cannot have it. Then", file=sys.stderr)
        print("secagg-spec power --regenerate -k NAME says whether something still kills it.", file=sys.stderr)
        return 1
    print("all mutants fit the source")
    return 0


def _chosen(pattern: str | None) -> list[Mutant]:
    chosen = [mutant for mutant in mutants.load().values() if _matches(mutant, pattern)]
    if not chosen:
        near = difflib.get_close_matches(str(pattern).lower(), mutants.REGISTRY, _NEAR)
        meant = f"; the nearest names are {', '.join(near)}" if near else ""
        raise UsageError(f"-k {pattern}: no mutant has this in its name, clauses, kind or protocol{meant}")
    return chosen


def _matches(mutant: Mutant, pattern: str | None) -> bool:
    about = f"{mutant.name} {' '.join(mutant.clauses)} {mutant.kind} {mutant.protocol}"
    return pattern is None or pattern.lower() in about.lower()


def _declared(command: Sequence[str], start_timeout: float) -> Capabilities:
    connection = ProcessConnection(command, start_timeout=start_timeout)
    try:
        return greet(connection.ask)
    finally:
        connection.close()


def _write(path: Path | None, body: Any) -> bool:
    """Write an answer as JSON if asked for; return whether that succeeded."""
    if path is None:
        return True
    try:
        system.write_whole(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        print(f"secagg-spec power: --json {path}: {error.strerror}", file=sys.stderr)
        return False
    return True


# ---------------------------------------------------------------------------------------------- the stored table


def _summary(chosen: Sequence[Mutant], given: argparse.Namespace) -> int:
    """Print what kills the mutants according to the stored table."""
    table = kills.load()
    rows = [_row(mutant, table) for mutant in chosen]
    strange = [] if given.pattern else [name for name in table if name not in mutants.REGISTRY]
    if given.pattern:
        print("\n".join(line for bug in rows for line in _about(bug)))
    else:
        print("\n".join(_overview(rows)))
    bad = [bug.name for bug in rows if bug.found == NOTHING]
    if bad:
        print(f"\nspec/power.json holds nothing that kills {_few(bad)}", file=sys.stderr)
    if strange:
        print(f"\nspec/power.json has rows for mutants that do not exist: {_few(strange)}", file=sys.stderr)
    if bad or strange:
        print("In a checkout, secagg-spec power --regenerate makes what is missing.", file=sys.stderr)
    body = {"schema": kills.SCHEMA, "counts": _counts(rows), "bugs": [_plain(bug) for bug in rows]}
    if not _write(given.json, body):
        return 2
    return 1 if bad or strange else 0


def _few(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def _row(mutant: Mutant, table: Mapping[str, Bug]) -> Bug:
    """Return the row of a mutant; a row without evidence if the table has none."""
    return table.get(mutant.name) or Bug(**{**vars(kills.described(mutant)), "test": ""})


def _plain(bug: Bug) -> dict[str, Any]:
    cases = [{"check": case.check, "needs": [need.as_json() for need in case.needs]} for case in bug.cases]
    return {**bug.as_json(), "found": bug.found} | ({"cases": cases} if cases else {})


def _counts(rows: Iterable[Bug]) -> dict[str, dict[str, int]]:
    """Count the mutants by how they are killed, by protocol and by kind."""
    counts: dict[str, dict[str, int]] = {}
    for bug in rows:
        for group in ("all", bug.protocol, bug.kind):
            of_group = counts.setdefault(group, dict.fromkeys(("bugs", *_COLUMNS), 0))
            of_group["bugs"] += 1
            of_group[bug.found] += 1
    return counts


def _overview(rows: Sequence[Bug]) -> Iterator[str]:
    counts, double = _counts(rows), sum(bool(bug.parts) for bug in rows)
    killed = len(rows) - counts["all"][NOTHING]
    yield f"mutation score: {killed} of {len(rows)} mutants are killed"
    yield f"{double} of them are two bugs that hide each other. What kills them:\n"
    groups = [*dict.fromkeys(kinds.PROTOCOLS.values()), "", *kinds.KINDS, "", "all"]
    yield f"{'':<14}{'mutants':>7}{'vectors':>10}{'drawn cases':>14}{'tests':>8}"
    for group in groups:
        numbers = counts.get(group)
        if not group:
            yield ""
        elif numbers:
            columns = f"{numbers[VECTORS]:>10}{numbers[DRAWN]:>14}{numbers[TEST]:>8}"
            late = f"{numbers[NOTHING]:>6} by NOTHING" if numbers[NOTHING] else ""
            yield f"{group:<14}{numbers['bugs']:>7}{columns}{late}"
    yield ""
    yield from (f"{kind:<12} {meaning}" for kind, meaning in kinds.KINDS.items())
    drawn = [bug for bug in rows if bug.found == DRAWN]
    if drawn:
        yield f"\nKilled by drawn cases only: requests until a check fails (median of {kills.SEEDS} seeds), the check\n"
        yield from (f"{bug.name:<38}{bug.calls:>6}   {bug.cases[0].check}{_some_seeds(bug)}" for bug in drawn)
    yield "\nWhat kills a mutant: secagg-spec power -k NAME. Its diff: secagg-spec explain NAME."
    yield "What a run would notice: secagg-spec power -- ./adapter"


def _some_seeds(bug: Bug) -> str:
    return "" if bug.seeds == kills.SEEDS else f" (with {bug.seeds} of {kills.SEEDS} seeds)"


def _about(bug: Bug) -> Iterator[str]:
    """Yield the lines about one mutant."""
    yield f"{bug.name}   [{', '.join(bug.clauses)}]   {bug.protocol}, {bug.kind}"
    facts = {
        "effect": bug.effect,
        "idea": bug.source,
        "consists of": ", ".join(bug.parts),
        "vectors": ", ".join(bug.vectors),
        "cases of": ", ".join(dict.fromkeys(case.check for case in bug.cases)),
        "test": bug.test if bug.found == TEST else "",
        "calls": f"{bug.calls} until a check failed (median){_some_seeds(bug)}" if bug.calls else "",
        "killed by": "NOTHING" if bug.found == NOTHING else "",
    }
    for name, fact in facts.items():
        if fact:
            yield textwrap.fill(
                fact, 118, initial_indent=f"    {name + ':':<13}", subsequent_indent=" " * 17, break_on_hyphens=False
            )


def _reach(caps: Capabilities, given: argparse.Namespace) -> int:
    """Print what a run on an adapter would notice."""
    from secagg_spec.conformance.mutation import coverage  # noqa: PLC0415 - loads all checks

    found = coverage.could_have_caught(caps)
    print(
        f"{shown(caps.name)} {shown(caps.version)}, mutation score: with what it declares, a run of all checks and "
        f"vectors would notice {found.n} of {found.m} mutants."
    )
    for protocol, (n, m) in sorted(found.protocols.items(), key=lambda entry: -entry[1][0]):
        if n:
            print(f"  {protocol:<14}{n:>5} of {m}")
    if found.declare:
        print("\nTo notice more, declare:")
        for advice in found.declare:
            print(f"  {advice.declare:<60} {advice.more:>4} more")
    print("\nA mutant counts if a stored vector or case that kills it lies inside what is declared.")
    return 0 if _write(given.json, found.as_json()) else 2


# --------------------------------------------------------------------------------------------------- regenerate


def _regenerate(chosen: Sequence[Mutant], anew: bool) -> int:
    """Renew the rows of some mutants; keep valid rows unless `anew` is set."""
    from secagg_spec.conformance.mutation import evidence, search  # noqa: PLC0415 - as above

    if not search.can_test():
        raise UsageError("--regenerate needs a checkout, pytest, and a system that can fork")
    table = {name: bug for name, bug in _old().items() if name in mutants.REGISTRY}
    made, saved = 0, time.monotonic()
    progress = Progress()
    progress("mutants", 0)
    for done, (bug, new) in enumerate(evidence.gathered(chosen, {} if anew else table), 1):
        table[bug.name] = bug
        made += new
        if new:
            progress.end()
            print(f"{done}/{len(chosen)}  {bug.name}: {bug.found}", flush=True)
        if new and time.monotonic() > saved + _PAUSE:
            _save(table)
            saved = time.monotonic()
        progress("mutants", done / len(chosen))
    progress.end()
    _save(table)
    print(f"{made} rows of {len(chosen)} made, {len(chosen) - made} kept: {kills.path()}")
    lost = [f"{mutant.name}: {mutant.test} passes\n" for mutant in chosen if table[mutant.name].test != mutant.test]
    lost += [f"{mutant.name}: NOTHING kills it\n" for mutant in chosen if table[mutant.name].found == NOTHING]
    print("".join(lost), end="")
    return 1 if lost else 0


def _old() -> Mapping[str, Bug]:
    return kills.load() if kills.path().is_file() else {}


def _save(rows: Mapping[str, Bug]) -> None:
    """Write the table in the order of the catalogue."""
    system.write_whole(kills.path(), kills.text(rows[name] for name in mutants.REGISTRY if name in rows))
    kills.load.cache_clear()


# ------------------------------------------------------------------------------------------------------- search


def _search(chosen: Sequence[Mutant], given: argparse.Namespace, caps: Capabilities | None) -> int:
    found = []
    from secagg_spec.conformance.mutation.search import hunt  # noqa: PLC0415 - as above

    progress = Progress()
    progress("mutants", 0)
    for kill in hunt(chosen, given.fuzz or _FUZZ, given.seeds or _SEEDS, caps):
        progress.end()
        print(_line(kill, caps is not None), flush=True)
        found.append(kill)
        progress("mutants", len(found) / len(chosen))
    progress.end()
    return _conclude(found, caps)


def _line(kill: Kill, for_adapter: bool) -> str:
    head = f"{kill.mutant.name:<32} {', '.join(kill.mutant.clauses):<24} "
    parts = []
    if kill.vectors:
        parts.append(f"vector {kill.vectors[0]}{_more(kill.vectors)}")
    if kill.checks:
        parts.append(f"check {kill.checks[0]}{_more(kill.checks)} after {kill.calls} calls")
    if kill.test:
        parts.append(f"test {kill.test}")
    if kill.alive and _untested(kill, for_adapter):
        parts.append(f"only by the test {kill.mutant.test}")
    nothing = "out of reach of what is declared" if for_adapter else "ALIVE"
    return f"{head}{'; '.join(parts) or nothing}   ({kill.mutant.effect})"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _untested(kill: Kill, for_adapter: bool) -> bool:
    """Return whether only a test kills a mutant, and that test cannot run here."""
    from secagg_spec.conformance.mutation.search import can_test  # noqa: PLC0415 - as above

    return bool(kill.mutant.test) and (for_adapter or not can_test())


def _conclude(found: Sequence[Kill], caps: Capabilities | None) -> int:
    alive = [kill for kill in found if kill.alive]
    by_vectors, by_checks = (sum(bool(getattr(kill, kind)) for kill in found) for kind in ("vectors", "checks"))
    if caps is not None:
        print(
            f"\n{shown(caps.name)} {shown(caps.version)}: with the operations, ranges and policies that it declares, "
            f"runs that pass would notice {len(found) - len(alive)} of {len(found)} mutants: "
            f"{by_vectors} by vectors, {by_checks} by checks"
        )
        return 0
    untested = [kill for kill in alive if _untested(kill, False)]
    print(
        f"\n{len(found) - len(alive)} of {len(found)} mutants are killed: {by_vectors} by vectors, {by_checks} by "
        f"checks, {sum(bool(kill.test) for kill in found)} by tests of their own; {len(alive) - len(untested)} alive"
        + (f"; {len(untested)} need the tests of a checkout" if untested else "")
    )
    return 1 if len(alive) > len(untested) else 0
