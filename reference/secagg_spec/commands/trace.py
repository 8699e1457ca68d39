"""The command ``secagg-spec trace``: check the recorded messages of rounds, and say what the server learned."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.commands.options import write_json
from secagg_spec.conformance.adapter.plain import visible
from secagg_spec.conformance.adapter.values import writable_file
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.privacy import wording
from secagg_spec.protocols.steps import SERVER
from secagg_spec.traces import files, rounds
from secagg_spec.traces.files import Entry, Head, Sent
from secagg_spec.traces.learned import Learned, Seen, Sum
from secagg_spec.traces.rounds import Finding, Round, who

_SHOWN = 12
_EPILOG = f"""A trace is a file of JSON lines: a head for each round, then a line for each message that came to the
server or left it, in order (spec/traces.md). The workflows of secagg_spec.flower write one with trace=PATH. It holds
what the server saw, and no secret of a user. The format of --json: spec/trace.schema.json.

The protocols are {", ".join(rounds.PROTOCOLS)}.

exit codes:
  0  each message is one that a conforming party may send
  1  some message is none
  2  wrong usage, or a file that is not a trace"""


def add_parser(commands: Any) -> None:
    """Add ``trace`` to the commands."""
    parser = commands.add_parser(
        "trace",
        description="Check the messages of recorded rounds against the steps of their protocol. For each round, show\n"
        "the first message that no conforming party sends, by clause, and what the server learned of the inputs.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the trace")
    add("--colluders", metavar="USERS", help="users of all rounds that pool what they know with the server: 0,3")
    add("--json", type=Path, metavar="FILE", help="write the results of all rounds")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: every message may be sent; 1: some message may not."""
    if options.json is not None:
        writable_file("--json", options.json, options.file, begins='{\n "trace": "')
    if options.colluders is not None and not options.colluders.strip():
        raise ParameterError("--colluders", options.colluders, "users, as in 0,3; without the option there are none")
    colluders = wording.numbers("--colluders", options.colluders or "")
    results: list[dict[str, Any]] = []
    for round, learned in _rounds(options.file, colluders):
        print("\n".join([*([""] if results else []), *_lines(round, learned, colluders)]))
        results.append(_document(round, learned))
    wrong = sum(result["finding"] is not None for result in results)
    if len(results) > 1:
        print(f"\n{len(results)} rounds, {wrong} with a message that no conforming party sends")
    if options.json is not None:
        write_json(options.json, {"trace": str(options.file), "colluders": list(colluders), "rounds": results})
        print(f"\nall results are in {visible(str(options.json))}")
    return int(wrong > 0)


def _rounds(path: Path, colluders: Sequence[int]) -> Iterator[tuple[Round, Learned | None]]:
    """Yield each round with what the server learned in it."""
    seen: list[Seen] = []

    def watched(entries: Iterator[Head | Entry]) -> Iterator[Head | Entry]:
        for entry in entries:
            yield entry
            if isinstance(entry, Sent):
                seen[-1].take(entry)

    try:
        for round in rounds.check(watched(files.read(path, rounds.PROTOCOLS)), lambda new: seen.append(Seen(new))):
            _refuse_absent(path, round, colluders)
            yield round, seen[0].learned(colluders)
            del seen[0]
    except rounds.BadLine as bad:
        raise UsageError(f"{path}: {bad}") from None


def _refuse_absent(path: Path, round: Round, colluders: Sequence[int]) -> None:
    try:
        validate.users("--colluders", colluders, len(round.users))
    except ParameterError as error:
        raise UsageError(f"{path}: line {round.head.line}, round {round.head.round}: {error}") from None


# -------------------------------------------------------------------------------------------------- printed text


def _lines(round: Round, learned: Learned | None, colluders: Sequence[int]) -> Iterator[str]:
    head = round.head
    batches = f" in batches of {head.batch}" if head.batch else ""
    yield f"round {head.round} of session {head.session.hex()}: {head.protocol}, {len(round.users)} users{batches}"
    yield from _verdict(round)
    yield from _learned(learned, colluders)


def _verdict(round: Round) -> Iterator[str]:
    if round.finding is not None:
        yield from _found(round.finding)
        return
    late = f"; {len(round.late)} came too late to count" if round.late else ""
    yield f"  each message is one that a conforming party may send{late}"
    if round.complete:
        yield "  complete: the server has the sum"
    else:
        why = f": {round.ended}" if round.ended else ""
        yield f"  incomplete: it ends in {round.now}{why}"


def _found(finding: Finding) -> Iterator[str]:
    yield f"  FAIL     line {finding.line}, {finding.phase}: {finding.what}"
    others = [who(party) for party in finding.blamed if party != finding.party]
    yield f"           party:   {who(finding.party)}" + (f", or one of {', '.join(others)}" if others else "")
    yield f"           clauses: {', '.join((finding.rule, *finding.clauses))}; reject code {finding.code}"
    yield "           the rest of the round was not checked"


def _learned(learned: Learned | None, colluders: Sequence[int]) -> Iterator[str]:
    knower = "the server" if not colluders else f"the server with {wording.users(colluders)}"
    if learned is None:
        yield f"  what {knower} learned is not computed: the round is too large"
        return
    known = [_sum(each) for each in learned.sums] + [f"{text} (of different elements)" for text in learned.other]
    if not known:
        yield f"  {knower} learned nothing of the inputs"
    elif len(known) == 1:
        yield f"  {knower} learned {known[0]} and nothing else (rank {learned.dimension} of {learned.unknown})"
    else:
        yield f"  {knower} learned, with rank {learned.dimension} of {learned.unknown}:"
        yield from (f"    {text}" for text in islice(known, _SHOWN))
        if len(known) > _SHOWN:
            yield f"    and {len(known) - _SHOWN} more (--json has all)"
    if learned.seeds or learned.pairs:
        pairs = f", and the masks of {len(learned.pairs)} pairs of users" if learned.pairs else ""
        yield f"  it can compute the self masks of {wording.users(learned.seeds) if learned.seeds else 'nobody'}{pairs}"


def _sum(one: Sum) -> str:
    where = f" in {one.where}" if one.where else ""
    if len(one.users) == 1 and one.plain:
        return f"the model of {wording.users(one.users)} alone{where}"
    if one.plain:
        return f"the sum of {wording.users(one.users)}{where}"
    factors = list(one.factors.items())
    terms = " + ".join(f"{factor}*x_{user}" for user, factor in factors[:_SHOWN])
    return f"{terms}{' + …' if len(factors) > _SHOWN else ''}{where}"


# ----------------------------------------------------------------------------------------------------------- JSON


def _document(round: Round, learned: Learned | None) -> dict[str, Any]:
    head, finding = round.head, round.finding
    document: dict[str, Any] = {
        "line": head.line,
        "protocol": head.protocol,
        "session": head.session.hex(),
        "round": head.round,
        "users": len(round.users),
        "complete": round.complete,
        "ended": round.ended,
        "late": round.late,
        "finding": None,
        "learned": None,
    }
    if finding is not None:
        named = {"party": _party(finding.party), "blamed": [_party(party) for party in finding.blamed]}
        clauses = {"clauses": [finding.rule, *finding.clauses]}
        where = {"line": finding.line, "phase": finding.phase}
        document["finding"] = {**where, **named, **clauses, "code": finding.code, "what": finding.what}
    if learned is not None:
        document["learned"] = {
            "dimension": learned.dimension,
            "unknown": learned.unknown,
            "sums": [{"users": each.users, "factors": each.by_user, "where": each.where} for each in learned.sums],
            "other": learned.other,
            "alone": learned.alone,
            "self_masks": learned.seeds,
            "pairwise_masks": learned.pairs,
        }
    return document


def _party(party: int) -> int | str:
    return "server" if party == SERVER else party
