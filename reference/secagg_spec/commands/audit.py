"""The command ``secagg-spec audit-participation``: which models the sums of a real deployment reveal, and when."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from secagg_spec.arithmetic import validate
from secagg_spec.commands.options import Rules, write_json
from secagg_spec.conformance.adapter.plain import shown, visible
from secagg_spec.conformance.adapter.values import writable_file
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.privacy import participation, wording
from secagg_spec.privacy.participation import Account, Class, Combined, Found, Term, written
from secagg_spec.protocols.heterosag.plan import MATRICES, PRESETS
from secagg_spec.selection import logs, metrics
from secagg_spec.selection.participation import MAX_USERS, Log, Roster, whole_number
from secagg_spec.simulate.heterosag import read_parameters
from secagg_spec.simulate.matrices import MOST
from secagg_spec.simulate.narration import counted
from secagg_spec.terminal import working

_Read = TypeVar("_Read")
_SHOWN = 10
_LINE = 120
_EPILOG = """The log is a table of comma-separated values with one of the headers

  round,users            the users of a round, separated by spaces
  round,user             one user of a round a line
  round,segment,users    a cell of a segment of a round, of HeteroSAg

or JSON by spec/participation.schema.json. The users of a round are the survivors that the server announced, even if
the round then failed: their sum may have been revealed in part or in full. A round without announced survivors is a
line without users; every round between the first and the last must be present (spec/multi-round.md, section 7).
The format of --json: spec/audit.schema.json.

exit codes:
  0  no user is recoverable, and the strong privacy is at least --privacy, or no
     round has a sum
  1  some user is recoverable, or the strong privacy is below --privacy
  2  wrong usage, or a file that is not a log"""

_RULES = Rules(
    needs=dict.fromkeys(("groups", "subgroups", "matrix", "colluders"), ("heterosag",)),
    apart=(("users", "roster"), ("user", "all")),
)


def add_parser(commands: Any) -> None:
    """Add ``audit-participation`` to the commands."""
    parser = commands.add_parser(
        "audit-participation",
        description="Read the survivors of each round. Say exactly which models can be computed from all sums if\n"
        "models do not change, after which round and by which combination, and how many users stay together.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("log", type=Path, metavar="LOG", help="the log, a table or JSON")
    add("--users", metavar="N", help="the users are the numbers 0 to N - 1 (those that the log names)")
    add("--roster", type=Path, metavar="FILE", help="the users are the lines of a file")
    add("--user", metavar="NAME", help="show the whole combination of one user, or why there is none")
    add("--all", action="store_true", help=f"show all recoverable users, not only the first {_SHOWN}")
    add("--privacy", metavar="M", help="also fail if fewer than M users are in the same sums")
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the findings in exact fractions, with the combinations that are shown",
    )
    _add_plan(parser)
    parser.set_defaults(run=main, rules=_RULES)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "a log of survivors of HeteroSAg", "a log of survivors, with the plan of segments"
    ).add_argument
    add(
        "--heterosag", choices=list(PRESETS), metavar="PRESET", help=f"the parameters: {', '.join(PRESETS)}; changed by"
    )
    add("--groups", type=int, metavar="G", help="number of groups, of sizes as equal as possible")
    add("--subgroups", metavar="L,L,…", help="subgroups of each group, or one number for all")
    add("--matrix", choices=MATRICES, help="the segment selection matrix")
    add("--colluders", type=int, metavar="T", help="users that may collude with the server")
    parser.set_defaults(levels=None, dropouts=None, threshold=None, length=MOST)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no user is recoverable and enough users stay together; else 1."""
    if options.json is not None:
        writable_file("--json", options.json, options.log, options.roster, begins='{\n "verdict": "')
    least = None if options.privacy is None else _number("--privacy", options.privacy, validate.MAX_COUNT)
    log = _log(options)
    user = None if options.user is None else _user(log.roster, options.user)
    with working("looking for combinations of sums"):
        found = participation.account(log)
        shown = list(found.found)[: None if options.all else _SHOWN] if user is None else []
        lines = list(_lines(found, least, shown, user))
    print("\n".join(lines))
    if options.json is not None:
        document = _document(found, shown, user)
        write_json(options.json, document)
        print(f"\n{_written(document)} in {visible(str(options.json))}")
    return int(bool(found.found) or _low(found, least))


# -------------------------------------------------------------------------------------------------------- input


def _number(option: str, text: str, most: int) -> int:
    found = whole_number(text)
    return validate.integer(option, text if found is None else found, 1, most)


def _user(roster: Roster, name: str) -> int:
    try:
        return roster.number(name)
    except ParameterError as error:
        raise ParameterError("--user", name, error.allowed) from None


def _log(options: argparse.Namespace) -> Log:
    """Return the log of the options, with the cells of a HeteroSAg plan if there is one."""
    count = None if options.users is None else _number("--users", options.users, MAX_USERS)
    roster = None if count is None else Roster(count)
    if options.roster is not None:
        roster = _opened(options.roster, logs.read_roster, "--roster ")
    if options.heterosag is None:
        return _read(options.log, roster)
    options.preset, options.users = options.heterosag, count if roster is None else roster.count
    plan = read_parameters(options, run=False)
    return participation.expand(_read(options.log, roster or Roster(plan.N)), plan)


def _read(path: Path, roster: Roster | None) -> Log:
    return _opened(path, lambda path: logs.read(path, roster), "")


def _opened(path: Path, read: Callable[[Path], _Read], option: str) -> _Read:
    try:
        return read(path)
    except OSError as error:
        raise UsageError(f"{option}{path}: {error.strerror}") from None


# -------------------------------------------------------------------------------------------------- printed text


def _lines(found: Account, least: int | None, shown: Sequence[int], user: int | None) -> Iterator[str]:
    yield _verdict(found)
    yield from _below(found, least)
    yield ""
    yield from _about(found)
    if user is not None:
        yield ""
        yield from _one(found, user)
    elif shown:
        yield ""
        yield from _table(found, shown)


def _verdict(found: Account) -> str:
    roster = found.log.roster
    if found.found:
        first = next(iter(found.found.values()))
        count = f"{len(found.found)} of {roster.count} users {'is' if len(found.found) == 1 else 'are'} recoverable"
        which = "" if len(found.found) == 1 else f"; the first, {_who(roster, (first.user,))},"
        return f"{count}{which} after round {found.log.number(first.at)}"
    if found.smallest is None:
        return "no model is recoverable: nobody is in a sum"
    others = found.strong - 1
    if not others:
        alone = _who(roster, found.smallest.users)
        return f"no model is recoverable, but nobody stays together with {alone} in all sums"
    each = f"at least {others} other{'' if others == 1 else 's'}"
    rest = " or in no sum" if found.absent or not roster.closed else ""
    return f"no model is recoverable; each user is always summed together with {each}{rest}"


def _below(found: Account, least: int | None) -> Iterator[str]:
    if found.smallest is not None and _low(found, least):
        below = f"the strong privacy is {found.strong}, below --privacy {least}"
        yield f"{below}: {_fewest(found, found.smallest)}"


def _low(found: Account, least: int | None) -> bool:
    """Whether fewer users stay together than asked for; a log without users has no privacy to compare."""
    return least is not None and found.smallest is not None and found.strong < least


def _fewest(found: Account, smallest: Class) -> str:
    """Return the smallest class as text."""
    return "such as " + _who(found.log.roster, smallest.users) + _where(found, smallest.segment)


def _where(found: Account, segment: int) -> str:
    return f", in segment {segment}" if found.log.cells else ""


def _about(found: Account) -> Iterator[str]:
    log = found.log
    segments = f", {counted(len(log.segments), 'segment')}" if log.cells else ""
    yield f"log: {_rounds(found)}; {counted(log.roster.count, 'user')}{segments}"
    if not log.roster.closed:
        yield "users: those that the log names; users who never took part are unknown (give --users or --roster)"
    elif found.absent:
        yield f"in no sum: {_who(log.roster, found.absent)}"
    if found.smallest is None:
        yield "strong and weak privacy: no round has a sum, so there is none"
    else:
        fewest = _fewest(found, found.smallest)
        yield f"strong privacy: {found.strong}, the fewest users that are in the same sums: {fewest}"
        low, high = found.weak.low, found.weak.high
        fewest = str(low) if low == high else f"between {low} and {high}"
        yield f"weak privacy: {fewest}, the fewest users in a combination of sums"
    taking = log.taking_part
    gap, mean = metrics.fairness_gap(taking), metrics.cardinality(taking)
    yield f"fairness gap: {_size(gap)}, cardinality: {_size(mean)}"


def _rounds(found: Account) -> str:
    log = found.log
    if not log.rounds:
        return "no rounds"
    first, last = log.number(0), log.number(log.rounds - 1)
    count = f"{log.rounds} rounds, {first} to {last}" if log.rounds > 1 else f"1 round, {first}"
    if not found.empty:
        return count
    return f"{count}, {len(found.empty)} without survivors: {wording.runs([log.number(at) for at in found.empty])}"


def _name(roster: Roster, user: int) -> str:
    """Return the name of a user, safe to print on a terminal (CNF-70)."""
    return shown(roster.name(user))


def _who(roster: Roster, users: Sequence[int], most: int = 8) -> str:
    """Return users as text."""
    word = "user" if len(users) == 1 else "users"
    if roster.names is None:
        return f"{word} {wording.runs(users, most)}"
    more = f", … ({len(users)} in all)" if len(users) > most else ""
    return f"{word} {', '.join(_name(roster, user) for user in users[:most])}{more}"


def _size(number: Fraction) -> str:
    """Return a fraction, with an approximate value if the fraction is long."""
    exact = written(number)
    if number.denominator == 1 and len(exact) < 12:
        return exact
    return f"{exact} (about {_rough(number)})" if len(exact) < 24 else f"about {_rough(number)}"


def _rough(number: Fraction) -> str:
    try:
        return f"{float(number):.4g}"
    except OverflowError:
        return f"10^{len(written(Fraction(int(number)))) - 1}"


def _table(found: Account, shown: Sequence[int]) -> Iterator[str]:
    roster, log = found.log.roster, found.log
    where = "s[t] the sum of round t" + (" over the listed users" if log.cells else "")
    yield f"x[i] is the model of user i, {where}; the error is for models that drift by at most 1:"
    rows = [["user", "round", *(["segment"] if log.cells else []), "error", "how it is recovered"]]
    for one in found.combined(shown):
        rows.append(
            [
                _name(roster, one.found.user),
                str(log.number(one.found.at)),
                *([str(one.found.segment)] if log.cells else []),
                _rough(one.drift),
                _formula(log, one),
            ]
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        yield "  " + "  ".join([f"{text:>{width}}" for text, width in zip(row[:-1], widths, strict=True)] + row[-1:])
    rest = len(found.found) - len(shown)
    if rest:
        yield f"  and {rest} more (--all shows them, --user NAME shows one in full)"


def _formula(log: Log, one: Combined) -> str:
    """Return a combination if it is short, else its length."""
    if one.digits < 6 and len(one.terms) <= 20:
        terms = " ".join(_term(log, term, at == 0) for at, term in enumerate(one.terms))
        line = f"x[{_name(log.roster, one.found.user)}] = {terms}"
        if len(line) <= _LINE - 30:
            return line
    return f"{len(one.terms)} sums, factors of up to {one.digits} digit{'' if one.digits == 1 else 's'}"


def _term(log: Log, term: Term, first: bool) -> str:
    size = written(abs(term.factor))
    sign = ("-" if term.factor < 0 else "") if first else ("- " if term.factor < 0 else "+ ")
    return f"{sign}{'' if size == '1' else size + ' '}{_sum(log, term)}"


def _sum(log: Log, term: Term) -> str:
    name = f"s[{log.number(term.at)}]"
    if not log.cells:
        return name
    members = (
        ", ".join(_name(log.roster, user) for user in term.users) if log.roster.names else wording.runs(term.users, 4)
    )
    return f"{name}{{{members}}}"


# ------------------------------------------------------------------------------------------------------- one user


def _one(found: Account, user: int) -> Iterator[str]:
    """Show one user in full: the combination, or the evidence that there is none."""
    log, name = found.log, _name(found.log.roster, user)
    if user in found.found:
        [one] = found.combined([user])
        yield f"user {name} is recoverable after round {log.number(one.found.at)}{_where(found, one.found.segment)}:"
        yield f"x[{name}] ="
        for at, term in enumerate(one.terms):
            yield f"  {_term(log, term, at == 0)}"
        yield f"off by at most {_size(one.drift)} times the drift of the models"
        if one.found.at:
            yield "not recoverable before that round:"
            yield from _unseen(found, user, one.found.segment, f"up to round {log.number(one.found.at - 1)}")
        return
    yield f"user {name} is not recoverable:"
    for segment in range(len(log.segments)):
        yield from _unseen(found, user, segment, "of the log" + _where(found, segment))


def _unseen(found: Account, user: int, segment: int, which: str) -> Iterator[str]:
    roster = found.log.roster
    changes = found.unseen(user, segment)
    if list(changes) == [user]:
        yield f"  no sum {which} has it"
        return
    own = changes.pop(user)
    shown = [
        f"x[{_name(roster, user)}] by {own:+d}"
        if len(str(own)) < 12
        else f"x[{_name(roster, user)}] by {_rough(Fraction(own))}"
    ]
    shown += [f"x[{_name(roster, other)}] by {_change(change)}" for other, change in list(changes.items())[:_SHOWN]]
    more = len(changes) - _SHOWN
    rest = f", and {counted(more, 'other')} (all are in --json)" if more > 0 else ""
    yield f"  no sum {which} changes when all of these change together: {', '.join(shown)}{rest}"


def _change(change: int) -> str:
    return f"{change:+d}" if change.bit_length() < 40 else f"about {_rough(Fraction(change))}"


# ----------------------------------------------------------------------------------------------------------- JSON


def _document(found: Account, shown: Sequence[int], user: int | None) -> dict[str, Any]:
    log, name = found.log, found.log.roster.name
    in_full = set(shown) | ({user} & set(found.found) if user is not None else set())
    document: dict[str, Any] = {
        "verdict": _verdict(found),
        "first_round": log.first,
        "rounds": log.rounds,
        "users": log.roster.count,
        "roster_given": log.roster.closed,
        "without_sum": [log.number(at) for at in found.empty],
        "in_no_sum": [name(user) for user in found.absent],
        "strong_privacy": found.strong,
        "smallest_class": [name(user) for user in found.smallest.users] if found.smallest else [],
        "smallest_class_segment": found.smallest.segment if found.smallest and log.cells else None,
        "weak_privacy": [found.weak.low, found.weak.high],
        "fairness_gap": written(metrics.fairness_gap(log.taking_part)),
        "cardinality": written(metrics.cardinality(log.taking_part)),
        "recoverable": [_entry(found, one, one.user in in_full) for one in found.found.values()],
    }
    if user is not None:
        document["unseen"] = [_shift(found, user, segment) for segment in range(len(log.segments))]
    return document


def _written(document: dict[str, Any]) -> str:
    """Say how much the file holds."""
    every = document["recoverable"]
    count = sum("combination" in one for one in every)
    if count == len(every):
        return "all findings are"
    return f"the findings, with combinations for {count} of {len(every)} recoverable users (--all: for all), are"


def _entry(found: Account, one: Found, in_full: bool) -> dict[str, Any]:
    log = found.log
    entry: dict[str, Any] = {"user": log.roster.name(one.user), "after_round": log.number(one.at)}
    if log.cells:
        entry["segment"] = one.segment
    if in_full:
        [combined] = found.combined([one.user])
        entry["drift"] = written(combined.drift)
        entry["combination"] = [_part(log, term) for term in combined.terms]
    return entry


def _part(log: Log, term: Term) -> dict[str, Any]:
    users = {"users": [log.roster.name(user) for user in term.users]} if log.cells else {}
    return {"round": log.number(term.at), **users, "factor": written(term.factor)}


def _shift(found: Account, user: int, segment: int) -> dict[str, Any]:
    changes = found.unseen(user, segment)
    return {
        "segment": segment,
        "changes": {found.log.roster.name(other): written(Fraction(change)) for other, change in changes.items()},
    }
