"""The options of the commands that load the checks, apart from what runs: no help waits until they are loaded."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from secagg_spec.commands import options
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS

_JOBS = min(os.cpu_count() or 2, 8)
PAGE = Path("demo.html")
_CHECK = "secagg-spec check [options] -- ./adapter [arguments]"
_CHECK_ENDS = """check does not judge values; secagg-spec conform does

exit codes:
  0  the adapter can be judged
  1  a step failed
  2  wrong usage
  3  the adapter could not be started, or did not answer hello correctly"""
_FUZZ = """secagg-spec fuzz [options] --target NAME
       secagg-spec fuzz [options] -- ./adapter [arguments]"""
_FUZZ_ENDS = """In round r, from 0, each check has 2**r times 5 cases, at most 2,000, drawn with the seed
SEED * 1,000,000 + r: secagg-spec conform --seed and --fuzz with these numbers draws them again. A check
that failed is left out of later rounds. An interrupt (Ctrl-C, SIGTERM) ends the command, and it prints what
it found so far.

exit codes:
  0  no check failed, or all failures were expected
  1  a check failed, or an expectation is stale: its check passed in a round of
     many cases as conform asks for, or failed otherwise
  2  wrong usage, or a file that cannot be used or written
  3  the adapter could not be used, or a check could not be run, and none
     failed
  4  nothing ran
  130, 143  interrupted, and no check had failed"""
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)?")
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
REFERENCE = "reference"
PROTOCOLS = tuple(NUMBERS)
"""The protocols that have sessions."""
_ROUND = """secagg-spec round [options] --server IMPL [--server IMPL …]
                         --user IMPL [--user IMPL …]
       secagg-spec round [options] --server -- ./a [arguments]
                         --user -- ./b [arguments]"""
_ROUND_ENDS = f"""IMPL is `{REFERENCE}`, the name of a target, or a command line as one word: --user './b --fast'. In
the second form a command line follows `--` unquoted, and ends where the next `--server --` or `--user --`
begins; options come first. Each server plays with each user implementation, and if there are several, also with
all of them alternating. The reference plays the roles that are not named; only BASA has an authority. Protocols:
{", ".join(PROTOCOLS)}. In the two asynchronous protocols a round is a session
of one or two buffers or epochs, with late updates and timeouts; in the others a round has dropouts.

exit codes:
  0  every round went as the text demands
  1  some round did not
  2  wrong usage, or an implementation does not declare a party that it should
     play
  3  an implementation could not be used
  4  nothing was played
  130, 143  interrupted, and no round had a fault"""
_SIDES = ("--server", "--user", "--authority")
_REPLAY = """secagg-spec replay FILE [--timeout S] [--start-timeout S]
                          -- ./adapter [arguments]"""
_REPLAY_ENDS = """prints FIXED, FAILED, UNKNOWN or ERROR; exit codes:
  0  FIXED: the case passes now
  1  FAILED: the case still fails
  2  wrong usage, or the file cannot be used
  3  UNKNOWN: the case passes alone, but it failed by requests before it;
     or no answer decides it, as one outside the declared ranges;
     ERROR: the adapter could not be used"""
_DIFF = "secagg-spec diff [--markdown] OLD.json NEW.json"
_DIFF_ENDS = """Worse are: a check that passed or failed as expected, and now fails, is not run, is not offered or is
absent; a check that began to fail; an expectation that became stale; a target that is now absent or unusable.

exit codes:
  0  nothing got worse
  1  something got worse
  2  wrong usage, or a report that cannot be used"""
_VECTORS = """secagg-spec vectors [-k PATTERN] [--file FILE]
       secagg-spec vectors [options] --target NAME [--target NAME …]
       secagg-spec vectors [options] -- ./adapter [arguments]
       secagg-spec vectors --regenerate [--renew]"""
_VECTORS_ENDS = """exit codes:
  0  all vectors that the adapter declares passed
  1  a vector failed
  2  wrong usage, or a file that cannot be used
  3  an adapter could not be used
  4  nothing ran"""
_JUDGED = ("target", "adapter")
_VECTORS_RULES = options.Rules(
    needs={"timeout": _JUDGED, "start_timeout": _JUDGED, "renew": ("regenerate",)}, only={"regenerate": ("renew",)}
)
_PROMOTE = """secagg-spec promote REPRO --id NAME --clause CLAUSE [--clause …]
                           [--comment TEXT] [--into FILE [--flag FLAG …]
                           [--covers TEXT]]"""
_PROMOTE_ENDS = """The reference's answer is the outcome. The vector goes into spec/vectors/findings.json, or into FILE.
A file that spec/vectors/flags.toml lists takes the flags that stand there: what the vector is for.
The steps of one session become a script of its party."""
_EXPLAIN = """secagg-spec explain [--all] ID
       secagg-spec explain WORD [WORD …]"""
_EXPLAIN_ENDS = """An ID is a clause (LSA-09), a check (lightsecagg.mask/exact), a test vector, a flag of vectors, a
mutant (the reference with one known bug), an operation, a policy, a reject code, a verdict, or a claim of the
papers (BAS-EQ6). Other words, such as leak, flower or theorem 1, are looked for in clauses, claims, errata, checks,
targets, verdicts and the glossary.

exit codes:
  0  found
  2  there is no such id, and nothing has these words; the nearest ids
     are named"""


def add_demo(commands: Any) -> None:
    """Add ``demo`` to the commands."""
    parser = commands.add_parser(
        "demo",
        description="Judge released frameworks and one in JavaScript, live, in one to two minutes on two cores.",
        epilog="The exit code is that of secagg-spec conform.",
    )
    parser.add_argument("--full", action="store_true", help="all checks with 100 cases each, and every failure printed")
    parser.add_argument("--html", type=Path, default=PAGE, metavar="FILE", help=f"the report ({PAGE})")
    parser.add_argument(
        "--jobs", type=options.jobs, default=_JOBS, metavar="N", help=f"number of judging processes (here {_JOBS})"
    )
    parser.set_defaults(run=options.later("demo"))


def add_check(commands: Any) -> None:
    """Add ``check`` to the commands."""
    parser = commands.add_parser(
        "check",
        description="Start an adapter; test its handshake, honesty, framing and determinism; say what is wrong.",
        usage=_CHECK,
        epilog=_CHECK_ENDS,
    )
    options.add_timeouts(parser, answer=5.0, start=20.0)
    parser.add_argument("adapter", nargs="+", help="the command that starts your adapter, after --")
    parser.set_defaults(run=options.later("check"))


def add_fuzz(commands: Any) -> None:
    """Add ``fuzz`` to the commands."""
    parser = commands.add_parser(
        "fuzz",
        description="Run the checks round after round, each round with more and new cases, until the time is over.",
        usage=_FUZZ,
        epilog=_FUZZ_ENDS,
    )
    parser.add_argument("--target", metavar="NAME", help="a known implementation")
    parser.add_argument("--time", type=duration, metavar="T", help="how long: 90s, 10m, 2h (60s, without --rounds)")
    parser.add_argument("--rounds", type=rounds, metavar="N", help="how many rounds (as many as the time allows)")
    options.add_pattern(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the cases (0)")
    parser.add_argument("--stop", action="store_true", help="end with the first check that fails")
    options.add_timeouts(parser)
    parser.add_argument(
        "--expect", type=Path, metavar="FILE", help="expected failures (TOML); your adapter is named adapter"
    )
    parser.add_argument(
        *("--repro", "--out"), type=Path, default=Path("repro"), metavar="DIR", help="folder for failing cases (repro)"
    )
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=options.later("fuzz"))


def duration(text: str) -> float:
    """Parse a duration in seconds: a number followed by s, m or h.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a duration, or not above 0 and below a million seconds.
    """
    found = _TIME.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < seconds < values.MOST_SECONDS:
        wanted = "a duration such as 90s, 10m or 2h, above 0 and below a million seconds"
        raise argparse.ArgumentTypeError(f"{values.cut(text)} is not {wanted}")
    return seconds


def rounds(text: str) -> int:
    """Parse a number of rounds, as `values.count` parses a number of cases."""
    return values.count(text, "rounds")


def add_round(commands: Any) -> None:
    """Add ``round`` to the commands."""
    parser = commands.add_parser(
        "round",
        description="Play rounds with drawn inputs and dropouts between implementations (spec/adapter.md, sessions).",
        usage=_ROUND,
        epilog=_ROUND_ENDS,
    )
    parser.add_argument("--server", action="append", default=[], metavar="IMPL", help="implementation of the server")
    parser.add_argument("--user", action="append", default=[], metavar="IMPL", help="implementation of the users")
    parser.add_argument(
        "--authority", default=REFERENCE, metavar="IMPL", help="implementation of the authority (reference)"
    )
    parser.add_argument(
        *("--protocol", "-p"), action="append", default=[], metavar="NAME", help="a protocol (all that are declared)"
    )
    parser.add_argument("--rounds", type=rounds, default=20, metavar="N", help="rounds for each pair (20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of inputs and dropouts (0)")
    options.add_timeouts(parser)
    parser.add_argument(
        "--repro", type=Path, default=Path("repro"), metavar="DIR", help="folder for the requests of a fault (repro)"
    )
    parser.set_defaults(run=options.later("round"))


def joined(arguments: Sequence[str]) -> list[str]:
    """Rewrite the arguments: each ``--server -- A x`` of ``round`` becomes ``--server 'A x'``."""
    if list(arguments[:1]) != ["round"]:
        return list(arguments)
    begins = [at for at in range(len(arguments) - 1) if arguments[at] in _SIDES and arguments[at + 1] == "--"]
    if not begins:
        return list(arguments)
    result = list(arguments[: begins[0]])
    for begin, end in zip(begins, [*begins[1:], len(arguments)], strict=True):
        result += [arguments[begin], shlex.join(arguments[begin + 2 : end])]
    return result


def add_replay(commands: Any) -> None:
    """Add ``replay`` to the commands."""
    parser = commands.add_parser(
        "replay",
        description="Send a stored failing case to an adapter, and judge the answers.",
        usage=_REPLAY,
        epilog=_REPLAY_ENDS,
    )
    parser.add_argument("file", type=Path, help="the .jsonl file of the failure, or its .expected.json")
    options.add_timeouts(parser)
    parser.add_argument("adapter", nargs="+", help="the command that starts the adapter, after --")
    parser.set_defaults(run=options.later("replay"))


def add_diff(commands: Any) -> None:
    """Add ``diff`` to the commands."""
    parser = commands.add_parser(
        "diff",
        description="Compare two reports written by secagg-spec conform --json.",
        usage=_DIFF,
        epilog=_DIFF_ENDS,
    )
    parser.add_argument("old", type=Path, metavar="OLD.json", help="the older report")
    parser.add_argument("new", type=Path, metavar="NEW.json", help="the newer report")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.set_defaults(run=options.later("diff"))


def add_vectors(commands: Any) -> None:
    """Add ``vectors`` to the commands."""
    parser = commands.add_parser(
        "vectors",
        description="List the test vectors in spec/vectors, or run those that an adapter declares.",
        usage=_VECTORS,
        epilog=_VECTORS_ENDS,
    )
    options.add_targets(parser)
    parser.add_argument("-k", dest="pattern", metavar="PATTERN", help="only ids, clauses, flags, operations with this")
    parser.add_argument("--file", type=Path, metavar="FILE", help="another file of vectors")
    options.add_timeouts(parser)
    asked = "ask the reference for all results of spec/vectors again, write the files, and exit"
    parser.add_argument("--regenerate", action="store_true", help=asked)
    parser.add_argument("--renew", action="store_true", help="with --regenerate: a vector that changed gets a new id")
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=options.later("vectors"), rules=_VECTORS_RULES)


def add_promote(commands: Any) -> None:
    """Add ``promote`` to the commands."""
    parser = commands.add_parser(
        "promote",
        description="Turn a stored failure into a permanent test vector.",
        usage=_PROMOTE,
        epilog=_PROMOTE_ENDS,
    )
    parser.add_argument("repro", type=Path, help="the .jsonl file of the failure, or its .expected.json")
    parser.add_argument("--id", required=True, metavar="NAME", help="the id: lowercase words joined by hyphens")
    parser.add_argument("--clause", action="append", required=True, metavar="CLAUSE", help="a clause that decides it")
    parser.add_argument(
        "--comment", metavar="TEXT", help="what is wrong in the case (as the reference or the failure says it)"
    )
    parser.add_argument("--into", type=Path, metavar="FILE", help="the file of vectors (spec/vectors/findings.json)")
    parser.add_argument("--flag", action="append", default=[], metavar="FLAG", help="a flag of FILE in flags.toml")
    parser.add_argument("--covers", metavar="TEXT", help="what a new FILE that flags.toml lists is about")
    parser.set_defaults(run=options.later("promote"))


def add_explain(commands: Any) -> None:
    """Add ``explain`` to the commands."""
    parser = commands.add_parser(
        "explain",
        description="Say what an id means, where to find it, and what decides it; or find what has some words.",
        usage=_EXPLAIN,
        epilog=_EXPLAIN_ENDS,
    )
    about = "an id from a report, a table or the text; or words"
    parser.add_argument("words", nargs="+", metavar="ID", help=about)
    parser.add_argument("--all", action="store_true", help="name the tests of a clause too")
    parser.set_defaults(run=options.later("explain", ""))
