"""Builds the machine-checked proofs, refuses gaps, compares their statements with what is stored, and plants mutants.

check.py             build in build/formal, compare, and print which clause and claim each theorem carries
check.py --mutants   and see that each mutant of mutants.toml is refused, and each kind of vector with a wrong result
                     (--only FILE or OPERATION: those of it, on what lies in build/formal where it is of these files)
check.py --write     store statements.txt again
check.py --if-there  without a prover, say so and end with 0

Exit codes: 0 right, 1 a fault, 77 no prover. The theorems and the clauses that they carry stand in theorems.toml, the
claims in the ledger, spec/claims.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "formal"
LEDGER = HERE.parents[1] / "spec" / "claims"
"""The claims: their entries name the theorems that carry a part of them."""
PACKAGES = "coq libcoq-mathcomp-fingroup libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics"
"""The prover, as Debian names it; .ci/run reads this line."""
INSTALL = f"On Debian 12: apt-get install -y --no-install-recommends {PACKAGES}"
VERSION = "8.16"
"""The version of the prover that the files are written for, with MathComp 1.15."""
LIBRARIES = "From mathcomp Require Import all_ssreflect all_fingroup all_algebra ring zify."
OPTIONS = ("-w", "none", "-Q", ".", "secagg")
FORBIDDEN = re.compile(
    r"\b(Admitted|Admit|admit|give_up|Abort|Axioms?|Parameters?|Conjectures?|Primitive|Redirect|Extraction|Load"
    r"|bypass_check|Unset\s+(?!Strict\b|Printing\b)\w+|Set\s+(?!Implicit\b|Printing\b)\w+)\b|type-in-type|#\["
)
"""What no file may hold outside comments: what leaves a gap, or loosens what the prover checks."""
MISPRINT = re.compile(r"Syntax error|was not found in the current|Unknown (?:scope|interpretation)")
"""What the prover says of a text that is no statement, so that its refusal says nothing."""


def _examples() -> ModuleType:
    """Load examples.py, which need not be on the path."""
    found = importlib.util.spec_from_file_location("formal_examples", HERE / "examples.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


EXAMPLES = _examples()
"""What writes the examples from vectors."""


@dataclass(frozen=True)
class Theorem:
    """A theorem: its file, its name, the definitions that it rests on, what it carries, idealises and does not say."""

    file: str
    name: str
    says: str
    definitions: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    idealises: str = ""
    unsaid: str = ""

    @property
    def full_name(self) -> str:
        """The name that no other file can hide."""
        return f"{self.file}.{self.name}"


@dataclass(frozen=True)
class Mutant:
    """A fault: in `file` the text `old`, which stands there once, becomes `new`.

    Where this drops or weakens a premise, `needed` is the theorem that shows by a counterexample that it is needed.
    """

    file: str
    old: str
    new: str
    needed: str = ""


def theorems() -> list[Theorem]:
    """Return the table of theorems, in the order of the files, with the claims of the ledger that name each."""
    table, carried = [], claims()
    for entry in _read("theorems.toml")["theorem"]:
        name = f"{entry['file']}.{entry['name']}"
        if "claims" in entry:
            raise ValueError(f"theorems.toml: {name}: the claims that name a theorem stand in spec/claims, as `formal`")
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        table.append(Theorem(**fields, claims=tuple(carried.get(name, ()))))
    return table


def claims() -> dict[str, list[str]]:
    """Return the claims of the ledger that name each theorem."""
    carried: dict[str, list[str]] = {}
    for path in sorted(LEDGER.glob("*.toml")):
        for claim in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]:
            for bound in claim.get("formal", ()):
                carried.setdefault(bound["theorem"], []).append(claim["id"])
    return carried


def idealised() -> dict[str, str]:
    """Return what each kind of idealisation of the table means."""
    kinds: dict[str, str] = _read("theorems.toml")["idealises"]
    return kinds


def mutants() -> list[Mutant]:
    """Return the mutants."""
    return [Mutant(**entry) for entry in _read("mutants.toml")["mutant"]]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def required() -> dict[str, list[str]]:
    """Return the names of the files, without ending, with those that each requires."""
    requires: dict[str, list[str]] = {}
    for path in sorted(HERE.glob("*.v")):
        lines = re.findall(r"^From secagg Require Import (.*)\.$", path.read_text(encoding="utf-8"), re.MULTILINE)
        requires[path.stem] = " ".join(lines).split()
    return requires


def levels() -> list[list[str]]:
    """Return the names of the files in levels: each file requires files of the levels before only."""
    requires = required()
    found: list[list[str]] = []
    while missing := [name for name in requires if name not in chain(*found)]:
        ready = [name for name in missing if set(requires[name]) <= set(chain(*found))]
        if not ready:
            raise ValueError(f"{', '.join(missing)}: these require each other, or a file that is not there")
        found.append(ready)
    return found


def files() -> list[str]:
    """Return the names of the files so that each comes after those that it requires."""
    return list(chain(*levels()))


def resting(file: str) -> list[str]:
    """Return a file, and those that rest on it, in the order of `files`; those of examples come last."""
    found, requires = {file}, required()
    for name in files():
        if found & {*requires[name]}:
            found.add(name)
    return [
        *(name for name in files() if name in found),
        *(name for name, (needs, _) in EXAMPLES.FILES.items() if found & {*needs.split()}),
    ]


def without_comments(text: str) -> str:
    """Return a text of the prover without its comments, which may be nested."""
    kept, depth = [], 0
    for piece in re.split(r"(\(\*|\*\))", text):
        depth += (piece == "(*") - (piece == "*)")
        if not depth and piece != "*)":
            kept.append(piece)
    return "".join(kept)


def gaps() -> list[str]:
    """Return each forbidden word, with the file in which it stands."""
    return [
        f"{path.name}: {match.group()} is not allowed"
        for path in sorted(HERE.glob("*.v"))
        for match in FORBIDDEN.finditer(without_comments(path.read_text(encoding="utf-8")))
    ]


def questions() -> tuple[str, str]:
    """Return two files for the prover: one that prints the statements, one that asks on what each theorem rests."""
    table = theorems()
    head = f"{LIBRARIES}\nFrom secagg Require {' '.join([*files(), *EXAMPLES.FILES])}.\nSet Printing Width 110.\n"
    known = dict.fromkeys(name for theorem in table for name in theorem.definitions)
    shown = [f"Print secagg.{name}." for name in known] + [f"Check {theorem.full_name}." for theorem in table]
    closed = [f"Print Assumptions {name}." for name in (*(t.full_name for t in table), *_all_examples())]
    return head + "\n".join(shown) + "\n", head + "\n".join(closed) + "\n"


def _all_examples() -> list[str]:
    return [f"{name}.examples" for name in EXAMPLES.FILES]


def lacking() -> str:
    """Return "" where there is the prover that the files are written for, else what is missing."""
    if not shutil.which("coqc"):
        return "there is no coqc"
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=False).stdout  # noqa: S607
    if not version.startswith(f"{VERSION}."):
        return f"coqc is of version {version.split(' ')[0].strip() or 'unknown'}, and {VERSION} is needed"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "libraries.v").write_text(f"{LIBRARIES}\n")
        return "the libraries of MathComp are missing" if coqc("libraries", Path(folder)).returncode else ""


def coqc(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the prover on a file of a folder, for at most 600 s of processor time: a loaded machine changes no result."""
    command = ["sh", "-c", 'ulimit -t 600; exec coqc "$@"', "sh", *OPTIONS, f"{name}.v"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def build() -> list[str]:
    """Build all files in a new folder, each when those that it requires are there; return the prover's first fault."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(HERE, BUILD, ignore=lambda _, names: [name for name in names if not name.endswith(".v")])
    EXAMPLES.write(BUILD)
    requires = required()
    left = {name: requires[name] for name in files()}
    left |= {name: needs.split() for name, (needs, _) in EXAMPLES.FILES.items()}
    done: set[str] = set()
    running: dict[Future[subprocess.CompletedProcess[str]], str] = {}
    with ThreadPoolExecutor(2) as pool:
        while left or running:
            for name in [name for name, needs in left.items() if done >= {*needs}]:
                running[pool.submit(coqc, name, BUILD)] = name
                del left[name]
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                name, ran = running.pop(ended), ended.result()
                if ran.returncode:
                    return [f"{name}.v: {ran.stderr.strip()[-1500:]}"]
                done.add(name)
    return []


def ask(name: str, text: str) -> str:
    """Return what the prover answers to a file beside those that were built."""
    (BUILD / f"{name}.v").write_text(text, encoding="utf-8")
    ran = coqc(name, BUILD)
    if ran.returncode:
        raise ValueError(f"{name}.v: {ran.stderr.strip()[-1500:]}")
    return ran.stdout


def refused(mutant: Mutant) -> str:
    """Return "" when the prover refuses the mutant, else what is wrong."""
    text = (HERE / f"{mutant.file}.v").read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"{mutant.file}.v: {mutant.old!r} stands there {text.count(mutant.old)} times"
    with tempfile.TemporaryDirectory() as folder:
        for path in BUILD.glob("*.vo"):
            shutil.copy(path, folder)
        (Path(folder) / f"{mutant.file}.v").write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        EXAMPLES.write(Path(folder))
        for name in resting(mutant.file):
            ran = coqc(name, Path(folder))
            if MISPRINT.search(ran.stderr):
                return f"{mutant.file}.v: {mutant.new!r} is a misprint, and no fault: {ran.stderr.strip()[-300:]}"
            if ended := ran.returncode:
                return "" if ended > 0 else f"{mutant.file}.v: the prover came to no end with {mutant.new!r}"
    return f"{mutant.file}.v: the prover takes {mutant.new!r} in place of {mutant.old!r}"


def spoilt(operation: str) -> str:
    """Return "" when the prover refuses a wrong result in the first example of an operation, else what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        for path in BUILD.glob("*.vo"):
            shutil.copy(path, folder)
        EXAMPLES.write(Path(folder), operation)
        for name, (_, families) in EXAMPLES.FILES.items():
            if operation in families and (ended := coqc(name, Path(folder)).returncode):
                return "" if ended > 0 else f"{operation}: the prover came to no end"
    return f"{operation}: the prover takes a wrong result"


def taken(only: list[str]) -> list[str]:
    """Try the mutants and the wrong results, or those of some files and operations; return what the prover took."""
    chosen = [mutant for mutant in mutants() if not only or mutant.file in only]
    wrong = [operation for operation in EXAMPLES.operations() if not only or operation in only]
    if unknown := {*only} - {*(mutant.file for mutant in chosen), *wrong}:
        known = sorted({*(mutant.file for mutant in mutants()), *EXAMPLES.operations()})
        raise ValueError(f"--only: {', '.join(sorted(unknown))}: the names are {', '.join(known)}")
    with ThreadPoolExecutor(2) as pool:
        results, vectors = list(pool.map(timed(refused), chosen)), list(pool.map(timed(spoilt), wrong))
    print(f"{results.count('')} of {len(results)} mutants are refused.")
    print(f"{vectors.count('')} of {len(vectors)} wrong results in vectors are refused.")
    return [fault for fault in results + vectors if fault]


def timed(decide: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a function that says what came of each fault, and after how many seconds."""

    def decided(fault: Any) -> str:
        start = time.monotonic()
        found = decide(fault)
        name = f"{fault.file}: {fault.new!r}" if isinstance(fault, Mutant) else fault
        print(f"{time.monotonic() - start:4.0f} s  {'TAKEN  ' if found else 'refused'}  {name}", flush=True)
        return found

    return decided


def built() -> bool:
    """Return whether what lies in build/formal is of these files."""
    return all(
        (BUILD / path.name).is_file()
        and (BUILD / path.name).read_bytes() == path.read_bytes()
        and (BUILD / f"{path.stem}.vo").is_file()
        for path in HERE.glob("*.v")
    )


def statements(stored: Path, *, write: bool) -> list[str]:
    """Compare the statements with the stored ones, or store them; return the faults."""
    shown, closed = questions()
    printed, rests = ask("Statements", shown), ask("Assumptions", closed)
    faults = []
    count, proved = len(theorems()) + len(EXAMPLES.FILES), rests.count("Closed under the global context")
    if proved != count or "Axioms:" in rests:
        faults.append(f"{proved} of {count} theorems, and files of examples, are closed:\n{rests}")
    if write:
        stored.write_text(printed, encoding="utf-8")
    elif printed != stored.read_text(encoding="utf-8"):
        (BUILD / "statements.txt").write_text(printed, encoding="utf-8")
        faults.append("the statements in build/formal/statements.txt are not those of proofs/formal/statements.txt")
    return faults


def table() -> str:
    """Return which clauses and claims each theorem carries, and what it idealises."""
    rows = [("theorem", "clauses", "claims", "idealises")]
    rows += [(t.full_name, " ".join(t.clauses), " ".join(t.claims), t.idealises) for t in theorems()]
    wide = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *(f"{kind}: {meaning}" for kind, meaning in idealised().items())])


def main(arguments: list[str] | None = None) -> int:
    """Check all of it, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", action="store_true", help="plant the mutants of mutants.toml too")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="with --mutants: those of a file or an operation"
    )
    parser.add_argument("--write", action="store_true", help="store statements.txt again")
    parser.add_argument("--if-there", action="store_true", help="end with 0 where there is no prover")
    chosen = parser.parse_args(arguments)
    if chosen.only and not chosen.mutants:
        parser.error("--only goes with --mutants")
    if faults := gaps():
        print("\n".join(faults))
        return 1
    if reason := lacking():
        print(f"The theorems in proofs/formal were NOT checked: {reason}. {INSTALL}")
        return 0 if chosen.if_there else 77
    try:
        if not (chosen.only and built()):
            faults = build() or statements(HERE / "statements.txt", write=chosen.write)
        if not faults and chosen.mutants:
            faults = taken(chosen.only)
    except ValueError as error:
        faults = [str(error)]
    if faults:
        print("\n".join(faults))
        return 1
    if chosen.only:
        return 0
    print(f"{table()}\n\n{EXAMPLES.said(EXAMPLES.write(BUILD))}\nChecked: {len(theorems())} theorems, all closed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
