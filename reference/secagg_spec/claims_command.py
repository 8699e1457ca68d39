"""The command ``secagg-spec claims``: what the papers claim, with the verdict on each, and the proofs behind them."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from secagg_spec import ledger
from secagg_spec.ledger import Claim, Finding, Ledger, LedgerError, Outcome, ProofFailed

_WIDTH = 110
_EPILOG = """verdicts:
  confirmed    it holds as it stands
  conditional  it holds under a condition that it does not state
  refuted      it fails as it stands: there is a counterexample, and a repair
  imprecise    what is written has no single meaning; the repair gives the one that holds
  unconfirmed  experiments neither confirm nor refute it at the scale at which they were run
  open         not decided

exit codes:
  0  done; with --verify: every proof finds what the ledger says, where there is one
  1  a proof fails, or finds something else
  2  wrong usage, or a ledger or proof that cannot be used"""


def add_parser(commands: Any) -> None:
    """Add ``claims`` to the commands."""
    parser = commands.add_parser(
        "claims",
        help="list what the papers claim, and run the proofs behind the verdicts",
        description="Without an ID, print a table of all claims; with one, that claim in full.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="a claim, such as BAS-EQ6")
    parser.add_argument("--verify", action="store_true", help="run the proof behind the claim, or all proofs")
    parser.add_argument("--paper", metavar="NAME", help="only the claims of one paper")
    parser.add_argument("--list", action="store_true", help="print id, verdict and proof of each claim, for scripts")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command; 0 when done, 1 when a proof disagrees, 2 when something cannot be used."""
    try:
        return _run(options)
    except LedgerError as error:
        print(f"secagg-spec claims: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    book = ledger.load()
    chosen = tuple(book.claims.values()) if options.paper is None else book.of(options.paper)
    if options.id is not None:
        claim = book.claim(options.id)
        if claim not in chosen:
            raise LedgerError(f"{claim.id} is a claim of {claim.paper}, not of {options.paper}")
        if options.list:
            raise LedgerError("--list takes no ID")
        return _verify_one(book, claim) if options.verify else _print(_in_full(book, claim))
    if options.list and options.verify:
        raise LedgerError("--list and --verify do not go together")
    if options.verify:
        return _verify_all(chosen)
    return _print(_script_lines(chosen) if options.list else _table(book, chosen))


def _print(lines: Iterator[str]) -> int:
    for line in lines:
        print(line)
    return 0


# ------------------------------------------------------------------------------------------------------ showing


def _script_lines(claims: Sequence[Claim]) -> Iterator[str]:
    yield from ("\t".join((claim.id, claim.verdict, claim.proof or "-")) for claim in claims)


def _table(book: Ledger, claims: Sequence[Claim]) -> Iterator[str]:
    width = max(len(claim.id) for claim in claims)
    for paper in dict.fromkeys(claim.paper for claim in claims):
        yield f"{paper}: {book.papers[paper]}"
        for claim in (claim for claim in claims if claim.paper == paper):
            start = f"  {claim.id:<{width}}  {claim.verdict:<11}  "
            yield start + textwrap.shorten(claim.statement, _WIDTH - len(start), placeholder=" …")
        yield ""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in ledger.VERDICTS}
    yield f"{len(claims)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    yield "one in full: secagg-spec claims ID; its proof: secagg-spec claims ID --verify"


def _in_full(book: Ledger, claim: Claim) -> Iterator[str]:
    yield f"{claim.id}  {claim.verdict}"
    fields = {
        "paper": book.papers[claim.paper],
        "place": claim.place,
        "kind": claim.kind,
        "claim": claim.statement,
        "condition": claim.condition,
        "fails for": _data(claim.counterexample),
        "repair": claim.repair,
        "numbers": _data(claim.numbers),
        "note": claim.note,
        "evidence": f"proofs/{claim.proof}.py" if claim.proof else f"none: {claim.no_proof}",
        "clauses": ", ".join(claim.clauses) or "none of the text so far",
    }
    for name, text in fields.items():
        if text:
            yield from textwrap.wrap(text, _WIDTH, initial_indent=f"  {name:<10} ", subsequent_indent=" " * 13)


def _data(data: Mapping[str, Any] | None) -> str:
    return "; ".join(f"{name} = {_value(value)}" for name, value in (data or {}).items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------------------------------------- verifying


def _verify_one(book: Ledger, claim: Claim) -> int:
    _print(_in_full(book, claim))
    if not claim.proof:
        print("\nthere is no proof to run")
        return 0
    print(f"\n{ledger.load_proof(claim.proof).text}\n")
    try:
        outcome = ledger.verify(claim, say=lambda line: print(f"  {line}"))
    except ProofFailed as error:
        print(f"\nthe proof FAILS: {error}")
        return 1
    return _print_outcome(outcome)


def _print_outcome(outcome: Outcome) -> int:
    finding = outcome.finding
    print()
    for line in textwrap.wrap(f"found: {finding.found}", _WIDTH):
        print(line)
    for name, data in (("fails for", finding.counterexample), ("numbers", finding.numbers)):
        if data:
            _print(iter(textwrap.wrap(f"{name}: {_data(data)}", _WIDTH, subsequent_indent="  ")))
    agrees = not outcome.differences
    print(f"verdict reached: {finding.verdict}{', as in the ledger' if agrees else ''}")
    for difference in outcome.differences:
        print(f"DISAGREES with the ledger: {difference}")
    return int(not agrees)


def _verify_all(claims: Sequence[Claim]) -> int:
    """Run each proof once; a line for each claim."""
    findings: dict[str, dict[str, Finding] | str] = {}
    for name in dict.fromkeys(claim.proof for claim in claims if claim.proof):
        try:
            findings[name] = ledger.run(ledger.load_proof(name))
        except ProofFailed as error:
            findings[name] = f"the proof FAILS: {error}"
    wrong = 0
    width = max(len(claim.id) for claim in claims)
    for claim in claims:
        said, bad = _judged(claim, findings)
        wrong += bad
        print(f"{claim.id:<{width}}  {claim.verdict:<11}  {said}")
    decided = sum(bool(claim.proof) for claim in claims)
    rest = f"; {len(claims) - decided} without a proof" if decided < len(claims) else ""
    print(f"{decided - wrong} of {decided} verdicts stand{rest}")
    return int(wrong > 0)


def _judged(claim: Claim, findings: Mapping[str, dict[str, Finding] | str]) -> tuple[str, bool]:
    """Say what became of a claim, and whether that is bad."""
    if not claim.proof:
        return f"no proof: {claim.no_proof}", False
    found = findings[claim.proof]
    if isinstance(found, str):
        return found, True
    if claim.id not in found:
        return f"proofs/{claim.proof}.py does not decide it", True
    differences = Outcome(claim, found[claim.id]).differences
    return ("; ".join(differences) if differences else f"proofs/{claim.proof}.py agrees"), bool(differences)
