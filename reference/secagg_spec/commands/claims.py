"""The command ``secagg-spec claims``: the claims of the papers, the verdict on each, and the proofs behind them."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import documents, resources
from secagg_spec.commands.options import Rules
from secagg_spec.ledger import bindings, entries, papers, proofs, roots, theorems
from secagg_spec.ledger.entries import Claim, Ledger
from secagg_spec.ledger.errors import LedgerError, ProofFailed
from secagg_spec.ledger.papers import Index
from secagg_spec.ledger.proofs import Finding, Outcome
from secagg_spec.ledger.roots import Root
from secagg_spec.terminal import Progress, working

_WIDTH = 110
_EPILOG = """verdicts:
  confirmed    the claim holds as written
  conditional  the claim fails as written, and holds under a condition that the
               paper does not state
  refuted      the claim fails as written; there is a counterexample and a
               repair
  imprecise    the claim has no single meaning, or not the one that holds, which
               the repair gives
  unconfirmed  experiments at the scale that was run did not confirm all of the
               claim
  open         not decided

exit codes:
  0  done; with --verify: every proof agrees with the ledger, and every
     digest of a theorem fits; with --texts: no difference; with --bind:
     every digest fits
  1  a proof fails or disagrees with the ledger, a digest does not fit, or a
     text and its index have different items
  2  wrong usage, or an unusable ledger or proof"""


def add_parser(commands: Any) -> None:
    """Add ``claims`` to the commands."""
    parser = commands.add_parser(
        "claims",
        description="Without an ID, print a summary of the ledger; with one, that claim in full.",
        epilog=_EPILOG,
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="a claim, such as BAS-EQ6")
    parser.add_argument(
        "--verify", action="store_true", help="run the proof of the claim, or the proofs of all chosen claims"
    )
    parser.add_argument(
        "--bind",
        action="store_true",
        help="show the claim, each theorem that carries a part of it, and the digest that binds them",
    )
    parser.add_argument("--all", action="store_true", help="print a table of all claims")
    parser.add_argument(
        "--paper", type=str.lower, metavar="NAME", help="only the claims of one paper, or of `derived`: our own results"
    )
    parser.add_argument(
        "--verdict", choices=entries.VERDICTS, metavar="VERDICT", help="only the claims with this verdict"
    )
    parser.add_argument(
        "--errata",
        action="store_true",
        help="the errors in the papers, the gravest first; with --all, --single, --list or --verify, only the claims "
        "that fail as written",
    )
    parser.add_argument("--single", action="store_true", help="only the claims that rest on one method")
    parser.add_argument(
        "--list", action="store_true", help="id, verdict, proof, method and second methods, for scripts"
    )
    parser.add_argument(
        "--index", action="store_true", help="the numbered items of each paper, or of --paper, and their claims"
    )
    parser.add_argument(
        "--texts", type=Path, metavar="DIR", help="with --index: compare it with the texts of the papers in DIR"
    )
    parser.set_defaults(run=main, rules=Rules(needs={"texts": ("index",)}))


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: done; 1: a proof or a text disagrees; 2: something is unusable."""
    try:
        _check(options)
        return _run(options)
    except LedgerError as error:
        print(f"secagg-spec claims: {error}", file=sys.stderr)
        return 2


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    narrowing = [f"--{name}" for name in ("all", "paper", "verdict", "errata", "single") if getattr(options, name)]
    if options.index and (options.id or options.verify or options.list or set(narrowing) - {"--paper"}):
        raise LedgerError("--index takes no ID, and no options except --paper and --texts")
    if options.errata and options.verdict:
        raise LedgerError(f"--errata and --verdict do not go together: errata are {', '.join(entries.ERRATA)}")
    if options.list and options.verify:
        raise LedgerError("--list and --verify do not go together")
    if options.bind and (options.id is None or options.verify or options.index):
        raise LedgerError("--bind takes one ID, and no --verify or --index")
    if options.id is not None and (options.list or set(narrowing) - {"--paper"}):
        refused = "--list" if options.list else next(name for name in narrowing if name != "--paper")
        raise LedgerError(f"{refused} takes no ID")


def _run(options: argparse.Namespace) -> int:
    with working("reading the ledger"):
        book = entries.load()
    if options.index:
        return _index(book, options.paper, options.texts)
    chosen = _chosen(book, options)
    if options.id is not None:
        claim = _claim(book, options.id)
        if claim not in chosen:
            raise LedgerError(f"{claim.id} is a claim of {claim.paper}, not of {options.paper}")
        if options.bind:
            return _bind(claim)
        return _verify_one(book, claim) if options.verify else _print(_in_full(book, claim))
    if options.verify:
        return _verify_all(chosen)
    return _print(_lines(book, chosen, options))


def _lines(book: Ledger, chosen: Sequence[Claim], options: argparse.Namespace) -> Iterator[str]:
    if options.list:
        return _script_lines(chosen)
    if options.errata and not (options.all or options.single):
        return _errata(book, options.paper)
    narrowed = options.all or options.paper or options.verdict or options.single
    return _table(book, chosen) if narrowed else _summary(book)


def _claim(book: Ledger, name: str) -> Claim:
    if name.upper() in resources.clauses():
        raise LedgerError(f"{name} is a clause of the text, not a claim: secagg-spec explain {name.upper()}")
    return book.claim(name.upper() if name.upper() in book.claims else name)


def _chosen(book: Ledger, options: argparse.Namespace) -> tuple[Claim, ...]:
    claims = tuple(book.claims.values()) if options.paper is None else book.of(options.paper)
    if options.verdict is not None:
        claims = tuple(claim for claim in claims if claim.verdict == options.verdict)
    if options.errata:
        wrong = book.errata()
        claims = tuple(claim for claim in claims if claim in wrong)
    if options.single:
        claims = tuple(claim for claim in claims if claim.proof and not claim.second)
    return claims


def _print(lines: Iterator[str]) -> int:
    for line in lines:
        print(line)
    return 0


# ------------------------------------------------------------------------------------------------------ showing


def _summary(book: Ledger) -> Iterator[str]:
    """Count the claims by paper and verdict, and by method."""
    yield "What the papers claim, and the verdicts that programs reach (spec/ledger.md).\n"
    yield from _matrix(book)
    claims = tuple(book.claims.values())
    proved = [claim for claim in claims if claim.proof]
    single = sum(not claim.second for claim in proved)
    programs = len({claim.proof for claim in proved})
    yield f"\n{len(claims)} claims; {len(proved)} are decided by the {programs} programs of proofs/"
    yield f"{len(proved) - single} are also decided by a second method, {single} by one method only (--single)"
    yield f"{len(book.of(entries.OURS))} are results of this project, found in no paper (--paper {entries.OURS})"
    yield f"\nthe {len(book.errata())} that fail as written, by the errors behind them: secagg-spec claims --errata"
    yield "all claims, or those of one paper: secagg-spec claims --all, secagg-spec claims --paper basecagg"
    yield "one in full: secagg-spec claims BAS-EQ6; its proof, run now: secagg-spec claims BAS-EQ6 --verify"
    yield "the numbered items of each paper: secagg-spec claims --index"


def _matrix(book: Ledger) -> Iterator[str]:
    names = [*(paper for paper in book.papers if paper != entries.OURS), entries.OURS]
    width = max(map(len, names))
    yield " " * (width + 2) + "".join(f"{verdict:>13}" for verdict in entries.VERDICTS) + f"{'all':>7}"
    for name in names:
        yield f"  {name:<{width}}" + _counts(book.of(name))
    yield f"  {'all':<{width}}" + _counts(tuple(book.claims.values()))


def _counts(claims: Sequence[Claim]) -> str:
    counts = [sum(claim.verdict == verdict for claim in claims) for verdict in entries.VERDICTS]
    return "".join(f"{count or '·':>13}" for count in counts) + f"{len(claims):>7}"


def _script_lines(claims: Sequence[Claim]) -> Iterator[str]:
    for claim in claims:
        yield "\t".join(
            (claim.id, claim.verdict, claim.proof or "-", claim.method or "-", ",".join(claim.second) or "-")
        )


def _table(book: Ledger, claims: Sequence[Claim]) -> Iterator[str]:
    width = max((len(claim.id) for claim in claims), default=0)
    for paper in dict.fromkeys(claim.paper for claim in claims):
        yield f"{paper}: {book.papers[paper]}"
        for claim in (claim for claim in claims if claim.paper == paper):
            start = f"  {claim.id:<{width}}  {claim.verdict:<11}  "
            yield start + textwrap.shorten(claim.statement, _WIDTH - len(start), placeholder=" …")
        yield ""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in entries.VERDICTS}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    yield f"{len(claims)} claims: {listed}" if claims else "no claim matches"
    yield "one in full: secagg-spec claims ID; its proof: secagg-spec claims ID --verify"


def _errata(book: Ledger, paper: str | None) -> Iterator[str]:
    """Show each root with what fails, the smallest case, what holds instead, what to do now, and what follows."""
    if paper == entries.OURS:
        raise LedgerError(f"--errata: {paper} is no paper")
    found = [root for root in roots.load(book) if paper in (None, root.paper)]
    lead = sum(root.lead is not None for root in found)
    slips = sum(len(root.follow) for root in found if root.lead is None)
    yield f"{lead} errors, the gravest first, and {slips} slips and names; what each severity means: spec/ledger.md"
    for name in dict.fromkeys(root.paper for root in found):
        source = book.sources[name]
        yield f"\n{name}: {book.papers[name]}"
        for what, text in vars(source).items():
            yield from _wrapped(text, f"  {what:<10} ", " " * 13)
    for root in found:
        yield f"\n{root.severity:<11}  {root.paper}: {root.id}"
        yield from _slips(root) if root.lead is None else _error(root, root.lead)


def _error(root: Root, lead: Claim) -> Iterator[str]:
    fields = {
        "fails": root.fails,
        "claimed": f"{lead.statement} ({lead.place}: {lead.id}, {lead.verdict})",
        "in words": _quoted(lead),
        "fails for": _data(lead.counterexample),
        "instead": root.instead,
        "now": lead.matters,
        "see it": root.command,
    }
    for name, text in fields.items():
        yield from _wrapped(text, f"  {name:<10} ", " " * 13)
    for claim in root.follow:
        yield f"  {'follows' if claim is root.follow[0] else '':<10} {claim.id}, {claim.verdict}: {claim.place}"


def _slips(root: Root) -> Iterator[str]:
    for claim in root.follow:
        condition = f"it holds if {claim.condition}; " if claim.condition else ""
        yield from _wrapped(f"{claim.id}, {claim.place}: {condition}{claim.repair}", "  ", " " * 13)


def _in_full(book: Ledger, claim: Claim) -> Iterator[str]:
    yield f"{claim.id}  {claim.verdict}"
    fields = {
        "paper": book.papers[claim.paper],
        "place": claim.place,
        "formulas": book.formulas(claim),
        "kind": claim.kind,
        "claim": claim.statement,
        "in words": _quoted(claim),
        "condition": claim.condition,
        "fails for": _data(claim.counterexample),
        "repair": claim.repair,
        "matters": claim.matters,
        "root": claim.root,
        "new": claim.new,
        "decides": claim.decides,
        "numbers": _data(claim.numbers),
        "note": claim.note,
        "evidence": f"proofs/{claim.proof}.py" if claim.proof else f"none: {claim.no_proof}",
        "method": _methods(claim),
        "scope": claim.scope,
        "clauses": ", ".join(claim.clauses) or "none",
        "theorems": "; ".join(f"{bound.theorem}: {bound.covers}" for bound in claim.formal),
    }
    for name, text in fields.items():
        if text:
            yield from _wrapped(text, f"  {name:<10} ", " " * 13)


def _quoted(claim: Claim) -> str:
    """Return the words of the paper in quotation marks; empty if none are quoted."""
    return claim.quote and f'"{claim.quote}"'


def _wrapped(text: str, first: str, rest: str) -> Iterator[str]:
    """Yield the lines of a text; never break an id at its hyphen."""
    yield from textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _methods(claim: Claim) -> str:
    """Say by which method a claim is decided, and by which second methods."""
    if not claim.method:
        return ""
    first = f"{claim.method}: {proofs.METHODS[claim.method]}"
    others = "; ".join(f"{method}: {proofs.METHODS[method]}" for method in claim.second)
    return f"{first}; checked by {others}" if others else f"{first}; by this method only"


def _data(data: Mapping[str, Any] | None) -> str:
    return "; ".join(f"{name} = {_value(value)}" for name, value in (data or {}).items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _bind(claim: Claim) -> int:
    """Show a claim beside its theorems, with the digests that bind them (CLM-19); return 1 if one does not fit."""
    if not claim.formal:
        raise LedgerError(f"--bind: {claim.id} names no theorem")
    known = theorems.load()
    print(f"{claim.id}  {claim.verdict}")
    for name in ("statement", "condition", "repair"):
        _print(_wrapped(getattr(claim, name), f"  {name:<10} ", " " * 13))
    for bound in claim.formal:
        theorem = known[bound.theorem]
        print(f"\n{theorem.name}\n")
        for name, text in (("carries", bound.covers), ("says", theorem.says), ("idealises", theorem.idealises)):
            _print(_wrapped(text, f"  {name:<10} ", " " * 13))
        print(textwrap.indent("\n\n".join(["", *theorem.definitions.values(), theorem.statement]), "  "))
        now = bindings.digest(claim, bound, theorem)
        print(f"\n  digest     {now}, {'as stored' if now == bound.digest else f'and not {bound.digest} as stored'}")
    return int(any(bindings.stale([claim], known)))


# ---------------------------------------------------------------------------------------------------- the index


def _index(book: Ledger, paper: str | None, texts: Path | None) -> int:
    """Show the index of each paper, or of one, and its differences from the text; return 1 if there are any."""
    indices = _indices(book, paper)
    differences = None if texts is None else _differences(book, indices, texts)
    for index in indices:
        print(f"{index.paper}: {book.papers[index.paper]}")
        _print(_kinds(index))
        print()
    count = sum(len(index.numbered) for index in indices)
    print(f"{count} numbered items, each with the claims that judge it or the reason why it has none")
    if differences is None:
        print("compared with the papers' texts: secagg-spec claims --index --texts DIR")
        return 0
    for line in differences:
        print(f"DIFFERS: {line}")
    print(f"compared with the texts: {len(differences) or 'no'} difference{'' if len(differences) == 1 else 's'}")
    return int(bool(differences))


def _indices(book: Ledger, paper: str | None) -> Sequence[Index]:
    indices = papers.load(book)
    if paper is None:
        return tuple(indices.values())
    if paper not in indices:
        raise LedgerError(f"--index: {paper} has no index; the papers that have one are {', '.join(indices)}")
    return (indices[paper],)


def _differences(book: Ledger, indices: Sequence[Index], folder: Path) -> Sequence[str]:
    if not folder.is_dir():
        raise LedgerError(f"--texts {folder}: there is no such folder")
    return [line for index in indices for line in index.differences(_text(folder, index), book.of(index.paper))]


def _kinds(index: Index) -> Iterator[str]:
    for kind in dict.fromkeys(item.kind for item in index.items):
        items = [item for item in index.items if item.kind == kind]
        judged = sum(bool(item.claims) for item in items)
        rest = f", {len(items) - judged} with a reason" if judged < len(items) else ""
        yield f"  {kind:<12} {len(items):>3}, {judged} with claims{rest}"
        for item in items:
            claims = ", ".join(item.claims) or f"none: {item.reason}"
            yield from _wrapped(claims, f"    {item.name.partition(' ')[2]:>6}  ", " " * 12)


def _text(folder: Path, index: Index) -> str:
    try:
        return documents.read_text(folder / index.text)
    except OSError as error:
        raise LedgerError(f"--texts {folder}: {index.text} cannot be read: {error.strerror}") from None
    except documents.NotText as error:
        raise LedgerError(f"--texts {folder}: {index.text} {error}") from None


# ---------------------------------------------------------------------------------------------------- verifying


def _verify_one(book: Ledger, claim: Claim) -> int:
    _print(_in_full(book, claim))
    if not claim.proof:
        print("\nthere is no proof to run")
        return 0
    print(f"\n{proofs.load_proof(claim.proof).text}\n")
    try:
        outcome = proofs.verify(claim, say=lambda line: print(f"  {line}"))
    except ProofFailed as error:
        print(f"\nthe proof FAILS: {error}")
        return 1
    return _print_outcome(outcome)


def _print_outcome(outcome: Outcome) -> int:
    finding, loose = outcome.finding, list(bindings.stale([outcome.claim]))
    print()
    _print(_wrapped(finding.found, "found: ", "  "))
    second = f"; checked by {', '.join(finding.second)}" if finding.second else ""
    print(f"method: {finding.method}{second}")
    for name, data in (("fails for", finding.counterexample), ("numbers", finding.numbers)):
        if data:
            _print(_wrapped(_data(data), f"{name}: ", "  "))
    agrees = not outcome.differences
    print(f"verdict reached: {finding.verdict}{', as in the ledger' if agrees else ''}")
    for difference in [*outcome.differences, *loose]:
        print(f"DISAGREES with the ledger: {difference}")
    return int(not agrees or bool(loose))


def _verify_all(claims: Sequence[Claim]) -> int:
    """Run each proof once; print a line for each claim."""
    findings: dict[str, dict[str, Finding] | str] = {}
    for name in Progress().follow([*dict.fromkeys(claim.proof for claim in claims if claim.proof)]):
        try:
            findings[name] = proofs.run(proofs.load_proof(name))
        except ProofFailed as error:
            findings[name] = f"the proof FAILS: {error}"
    wrong = 0
    width = max((len(claim.id) for claim in claims), default=0)
    for claim in claims:
        said, bad = _judged(claim, findings)
        wrong += bad
        print(f"{claim.id:<{width}}  {claim.verdict:<11}  {said}")
    decided = sum(bool(claim.proof) for claim in claims)
    rest = f"; {len(claims) - decided} without a proof" if decided < len(claims) else ""
    print(f"{decided - wrong} of {decided} verdicts stand{rest}")
    return int(wrong > 0)


def _judged(claim: Claim, findings: Mapping[str, dict[str, Finding] | str]) -> tuple[str, bool]:
    """Return the result for a claim, and whether it is bad."""
    if not claim.proof:
        return f"no proof: {claim.no_proof}", False
    found = findings[claim.proof]
    if isinstance(found, str):
        return found, True
    if claim.id not in found:
        return f"proofs/{claim.proof}.py does not decide it", True
    differences = [*Outcome(claim, found[claim.id]).differences, *bindings.stale([claim])]
    return ("; ".join(differences) if differences else f"proofs/{claim.proof}.py agrees"), bool(differences)
