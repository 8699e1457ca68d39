"""Assemble the pages of the site in ``build/site-src``; ``mkdocs build --strict`` then turns them into HTML.

    python docs/build_site.py [--katex-from DIR] [--out DIR]

The pages of ``docs/`` and ``spec/`` are copied, each link rewritten to where its target stands on the site and each
mention of a clause linked to the clause. The API pages, the pages of requirements, of claims, of planted bugs and of
released implementations, and the list of decisions are generated. KaTeX comes from ``DIR`` (an unpacked package), else
from ``build/``, else once from npm.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import functools
import hashlib
import io
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from secagg_spec import ledger
from secagg_spec.conformance import kills, mutants
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.plain import clip, counted
from secagg_spec.conformance.report import LEGEND, MARKS, describe
from secagg_spec.conformance.targets import TARGETS, results
from secagg_spec.conformance.vectors import store
from secagg_spec.conformance.wire import RawLine, Request, UsageError
from secagg_spec.experiments import catalogue, figures
from secagg_spec.resources import PAGES, clauses

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "reference" / "secagg_spec"
EXPERIMENT_RESULTS = ROOT / "spec" / "experiments"
KATEX_VERSION = "0.16.47"
KATEX_SHA512 = "Eeo8Ys1doU1z+x8AZsPpQu+p/QcZBI5PeOo7QGQdy2x2m0MU/hYagBbGOmXwr5KVbEfVuWv9LpnQWeehogurjg=="
KATEX_FILES = ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js")
NO_API = ("conformance/targets", "conformance/starters", "_data")
TOP_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
REQUIREMENTS = "reference/requirements.md"
CLAIMS = "reference/claims.md"
RELEASED = "reference/targets.md"
EXPERIMENTS = "reference/experiments.md"
PLANTED = "reference/planted-bugs.md"
API = "reference/api"

_CLAUSE_LINE = re.compile(r"^- \[([A-Z]+-\d\d)\] ", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_LITERAL = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)|^\$\$.*?\$\$|^#+ .*?$|`[^`\n]*`|!?\[[^\]\n]*\](?:\([^)\n]*\))?|<[^>\n]+>",
    re.MULTILINE | re.DOTALL,
)
"""What is left as it is when mentions are linked: code, formulas, headings, links, tags."""


class SiteError(Exception):
    """The site cannot be assembled; the message is one line that says what is missing."""


# Where things stand on the site


def site_path(path: str) -> str | None:
    """Return where a file of the repository stands on the site, None when it is not there."""
    if path in TOP_PAGES:
        return TOP_PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("spec/") and path.endswith(".md"):
        return path
    if path.startswith("reference/secagg_spec/") and path.endswith(".py"):
        module = Path(path).relative_to("reference/secagg_spec")
        return f"{API}/{api_name(module)}.md" if is_public(module) else None
    return None


def relative(target: str, page: str) -> str:
    """Return the link from one page of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


@functools.cache
def clause_pages() -> Mapping[str, str]:
    """Return the page of the site on which each clause stands."""
    texts = {page: (ROOT / "spec" / page).read_text(encoding="utf-8") for page in PAGES}
    return {clause: f"spec/{page}" for page, text in texts.items() for clause in _CLAUSE_LINE.findall(text)}


def clause_link(clause: str, page: str) -> str:
    """Return a link to a clause, in Markdown."""
    target = clause_pages()[clause]
    return f"[{clause}]({'' if target == page else relative(target, page)}#{clause}){{ .mention }}"


# Pages that are copied


def convert(text: str, source: str, page: str) -> str:
    """Return the text of a page as it stands on the site."""
    text = _LINK.sub(lambda link: _moved(link, source, page), text)
    text = _between_literals(text, lambda part: _mention().sub(lambda hit: clause_link(hit.group(), page), part))
    return _CLAUSE_LINE.sub(r"- [](){ #\1 }[\1](#\1){ .clause } ", text)


def _moved(link: re.Match[str], source: str, page: str) -> str:
    """Return a link as seen from `page`; of a link to a file that is not on the site, the words alone."""
    words, target, anchor = link.groups(default="")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    there = site_path(path)
    if there is not None:
        return f"[{words}]({relative(there, page)}{anchor})"
    return words if (ROOT / path).exists() else link.group()


@functools.cache
def _mention() -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(clause_pages()) + r")\b")


def _between_literals(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for literal in _LITERAL.finditer(text):
        parts += [change(text[at : literal.start()]), literal.group()]
        at = literal.end()
    return "".join([*parts, change(text[at:])])


def copied() -> Iterator[tuple[str, str]]:
    """Yield each page that is copied: its path in the repository, and on the site."""
    yield from (_there(path) for path in sorted((ROOT / "docs").rglob("*.md")))
    yield from (_there(path) for path in sorted((ROOT / "spec").glob("*.md")))
    yield from TOP_PAGES.items()


def _there(path: Path) -> tuple[str, str]:
    source = path.relative_to(ROOT).as_posix()
    page = site_path(source)
    assert page is not None, source
    return source, page


def write_copies(out: Path) -> None:
    """Copy the pages and the assets; the list of decisions is filled in."""
    for source, page in copied():
        text = convert(_text(source), source, page)
        _write(out / page, text.replace("<!-- decisions -->", decisions()).replace("<!-- power -->", power()))
    shutil.copytree(ROOT / "docs" / "assets", out / "assets", dirs_exist_ok=True)


def _text(source: str) -> str:
    """Return the text of a page; of a page beside the README that is not written yet, one line."""
    path = ROOT / source
    if source in TOP_PAGES and not path.is_file():
        print(f"build_site: {source} is missing; its page says so", file=sys.stderr)
        return f"# {path.stem.capitalize()}\n\nThis page is not written yet.\n"
    return path.read_text(encoding="utf-8")


def decisions() -> str:
    """Return the list of decisions: the first heading of each file, in order."""
    files = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    return "\n".join(f"- [{_heading(path)}]({path.name})" for path in files)


def _heading(path: Path) -> str:
    first = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if first is None:
        raise SiteError(f"{path.relative_to(ROOT)} has no heading")
    return first.group(1).strip()


# API pages


def is_public(module: Path) -> bool:
    """Return whether a module, given by its path in the package, has an API page."""
    if module.as_posix().startswith(NO_API):
        return False
    return not any(part.startswith("_") for part in module.parts)


def api_name(module: Path) -> str:
    """Return the dotted name of a module, which is also the name of its page."""
    return ".".join(("secagg_spec", *module.with_suffix("").parts))


def modules() -> list[Path]:
    """Return the public modules, by their paths in the package."""
    return sorted(path for file in PACKAGE.rglob("*.py") if is_public(path := file.relative_to(PACKAGE)))


def summary(path: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else None
    return (docstring or "").split("\n\n")[0].replace("\n", " ")


def write_api(out: Path) -> None:
    """Write one page for each public module, and their index by package."""
    packages: dict[Path, list[Path]] = defaultdict(list)
    for module in modules():
        packages[module.parent].append(module)
        _write(out / API / f"{api_name(module)}.md", _api_page(api_name(module)))
    lines = ["# API", "", "The reference, module by module. Below each definition its source can be opened."]
    for package in sorted(packages):
        name = ".".join(("secagg_spec", *package.parts))
        lines += ["", f"## {name}", "", summary(PACKAGE / package / "__init__.py"), ""]
        lines += ["| module | |", "| --- | --- |"] + [_api_row(module) for module in packages[package]]
    _write(out / API / "index.md", "\n".join(lines) + "\n")


def _api_row(module: Path) -> str:
    text = summary(PACKAGE / module).replace("|", r"\|")
    return f"| [`{module.stem}`]({api_name(module)}.md) | {text} |"


def _api_page(name: str) -> str:
    return f"---\ntitle: {name}\n---\n[API](index.md)\n\n# `{name}`\n\n::: {name}\n"


# The page of requirements


def marked_tests() -> dict[str, list[str]]:
    """Return, for each clause, the tests that carry its marker."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for clause, test in _markers(ast.parse(path.read_text(encoding="utf-8"))):
            label = f"{name}::{test}" if test else name
            if label not in found[clause]:
                found[clause].append(label)
    return found


def _markers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each clause of each ``requirement(...)``, with the decorated test or class, empty for a whole module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from ((clause, node.name) for clause in _required(node.decorator_list))
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            yield from ((clause, "") for clause in _required([node.value]))


def _required(expressions: Sequence[ast.expr]) -> Iterator[str]:
    calls = (node for root in expressions for node in ast.walk(root) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "requirement":
            yield from (arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


Table: TypeAlias = Mapping[str, Sequence[str]]
KINDS = {
    "Checks of the kit": "check",
    "Test vectors": "vector",
    "Planted bugs": "planted bug",
    "Tests": "test",
}
"""What decides a clause, in the order of the page, with the word for one of it."""


def write_requirements(out: Path) -> None:
    """Write the page that lists each clause with the checks, vectors, planted bugs and tests that belong to it.

    Raises
    ------
    SiteError
        A clause is an orphan, or something names a clause that there is not.
    """
    tables = deciding()
    for fault in orphans(tables):
        raise SiteError(fault)
    lines = [_requirements_head(tables)]
    for page in PAGES:
        lines.append(f"## {_heading(ROOT / 'spec' / page)}\n")
        for clause, sentence in clauses().items():
            if clause_pages()[clause] == f"spec/{page}":
                lines += _requirement(clause, sentence, tables)
    _write(out / REQUIREMENTS, "\n".join(lines))


def deciding() -> dict[str, Table]:
    """Return, for each kind of what decides a clause, the entries of each clause."""
    tables: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in KINDS}
    for check in REGISTRY.values():
        for clause in check.clauses:
            tables["Checks of the kit"][clause].append(f"`{check.id}`: {check.text}")
    for book in store.load_all():
        for vector in book.vectors:
            for clause in vector.clauses:
                tables["Test vectors"][clause].append(f"`{vector.id}` ({book.name}.json): {_escaped(vector.comment)}")
    for mutant in mutants.load().values():
        for clause in mutant.clauses:
            tables["Planted bugs"][clause].append(f"`{mutant.name}`: {_escaped(mutant.effect)}")
    for clause, tests in marked_tests().items():
        tables["Tests"][clause] += [f"`{test}`" for test in tests]
    return {kind: dict(table) for kind, table in tables.items()}


def orphans(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield what is wrong: unknown clauses, clauses that nothing decides, clauses with MUST without a planted bug."""
    known = clauses()
    for kind, table in tables.items():
        for clause in table:
            if clause not in known:
                yield f"{table[clause][0]} names the clause {clause}, which the text does not have ({kind.lower()})"
    exempt = mutants.unbreakable()
    for clause, sentence in known.items():
        if clause not in tables["Tests"] and clause not in tables["Checks of the kit"]:
            yield f"{clause} is decided by no check and no test"
        if re.search(r"\bMUST\b", sentence) and clause not in tables["Planted bugs"] and clause not in exempt:
            yield f"{clause} has no planted bug, and spec/vectors/unbreakable.toml gives no reason"


def _requirements_head(tables: Mapping[str, Table]) -> str:
    known = clauses()
    numbers = {kind: sum(clause in table for clause in known) for kind, table in tables.items()}
    vectors = f"[test vectors]({relative('explanation/vectors.md', REQUIREMENTS)})"
    return (
        "# Requirements\n\n"
        f"Each clause of the text, and what decides it. Of the {len(known)} clauses, {numbers['Checks of the kit']} "
        "are decided by checks of the kit, on any implementation whose adapter declares the operations that they need; "
        f"{numbers['Test vectors']} by {vectors}, which need no kit; {numbers['Tests']} on the reference by its own "
        f"tests. For {numbers['Planted bugs']} of them a bug is planted on purpose, and found. No clause is left "
        "undecided.\n"
    )


def _requirement(clause: str, sentence: str, tables: Mapping[str, Table]) -> list[str]:
    """Return the entry of one clause; what decides it stands in a list that can be opened."""
    entries = {kind: [f"- {entry}" for entry in table.get(clause, ())] for kind, table in tables.items()}
    counts = ", ".join(_count(entries[kind], word) for kind, word in KINDS.items())
    reason = mutants.unbreakable().get(clause)
    body = [line for kind, lines in entries.items() if lines for line in (f"**{kind}**", "", *lines, "")]
    body += ["**No planted bug**", "", _escaped(reason), ""] if reason else []
    return [
        f"### {clause}\n",
        f"{sentence} [In the text]({relative(clause_pages()[clause], REQUIREMENTS)}#{clause}){{ .mention }}\n",
        f'??? note "{counts}"',
        *(f"    {line}".rstrip() for line in ("", *body)),
    ]


def _count(items: Sequence[str], word: str) -> str:
    return f"{len(items) or 'no'} {word}{'' if len(items) == 1 else 's'}"


# The page of claims


def write_claims(out: Path) -> None:
    """Write the page that shows each claim of the ledger, by paper."""
    book = ledger.load()
    lines = [
        "# Claims of the papers\n",
        f"What the papers claim, in our words, and the verdict that a program reaches. [How]({_claims_how()}).\n",
    ]
    for paper, title in book.papers.items():
        lines.append(f"## {title}\n")
        for claim in book.of(paper):
            lines += _claim(claim)
    _write(out / CLAIMS, "\n".join(lines))


def _claims_how() -> str:
    return relative("explanation/claims.md", CLAIMS)


def _claim(claim: ledger.Claim) -> list[str]:
    """Return the entry of one claim; data stand as code, so that nothing in them is markup."""
    fields = {
        "condition": _escaped(claim.condition),
        "fails for": _as_code(claim.counterexample),
        "repair": _escaped(claim.repair),
        "numbers": _as_code(claim.numbers),
        "note": _escaped(claim.note),
        "evidence": f"`proofs/{claim.proof}.py`" if claim.proof else f"none: {_escaped(claim.no_proof)}",
        "clauses": ", ".join(clause_link(clause, CLAIMS) for clause in claim.clauses),
    }
    head = f"### {claim.id}: {claim.verdict}\n\n{_escaped(claim.statement)} *({_escaped(claim.place)})*\n"
    return [head, *(f"- {name}: {text}" for name, text in fields.items() if text), ""]


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~^$])", r"\\\1", text)


def _as_code(data: Mapping[str, object] | None) -> str:
    return "; ".join(f"`{name} = {json.dumps(value, ensure_ascii=False)}`" for name, value in (data or {}).items())


# The page of released implementations


def write_released(out: Path) -> None:
    """Write the page that shows what released implementations gave: their clauses, and each failure.

    Raises
    ------
    SiteError
        The results of a target are not stored.
    """
    try:
        known = results.load(ROOT / "docs" / "results")
    except UsageError as error:
        raise SiteError(str(error)) from None
    lines = [_released_head(), *_matrix(known)]
    for result in known.values():
        lines += _released(result)
    _write(out / RELEASED, "\n".join(lines))


def _released_head() -> str:
    return (
        "# Released implementations\n\n"
        "What the kit found in software that others released, each in a pinned version, behind an adapter of this "
        "project that runs in an environment of its own. The results are stored in `docs/results`; `make targets` "
        f"judges all of them again. A failure is one against [the text]({relative('spec/adapter.md', RELEASED)}), "
        "which these releases never promised to keep. Each has an entry with its reason, and a run fails when a "
        "release no longer fails so.\n"
    )


def _matrix(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table of clauses by target, with the marks that the command shows."""
    rows = [clause for clause in clauses() if any(clause in result["clauses"] for result in known.values())]
    return [
        "## Clauses\n",
        f"{LEGEND}\n",
        "| clause | " + " | ".join(f"[{name}](#{name})" for name in known) + " |",
        "| --- |" + " :-: |" * len(known),
        *(
            f"| {clause_link(clause, RELEASED)} | "
            + " | ".join(_mark(result["clauses"].get(clause, results.NOT_OFFERED)) for result in known.values())
            + " |"
            for clause in rows
        ),
        "",
    ]


def _mark(words: str) -> str:
    plain = words.removesuffix(" (composed)")
    return MARKS[plain] + ("+" if plain != words else "")


def _released(result: Mapping[str, Any]) -> list[str]:
    """Return the section of one target: what it declares, and what it fails."""
    about, checks = result["implementation"], result["checks"]
    failed = [check for check in checks if check["failure"]]
    operations = [
        f"`{name}`" + ("+" if declared.get("composed") else "") for name, declared in about["operations"].items()
    ]
    policy = [f"`{name}` is `{value}`" for name, value in about["policy"].items()]
    return [
        f"## {result['target']} {{ #{result['target']} }}\n",
        (
            f"{_escaped(TARGETS[result['target']].about)}. Of the {len(checks)} checks and test vectors that fit what "
            f"its adapter declares, {len(checks) - len(failed)} pass.\n"
        ),
        f"- version: {_escaped(about['version'])}",
        f"- declares: {', '.join(operations)}" + (f"; {', '.join(policy)}" if policy else ""),
        "",
        f'??? note "{_count(failed, "finding")}"',
        *(f"    {line}".rstrip() for check in failed for line in _finding(check)),
        "",
    ]


def _finding(check: Mapping[str, Any]) -> list[str]:
    """Return one failure: its check and clauses, what happens in the smallest case, and why."""
    failure, known = check["failure"], clauses()
    case = describe(_request(failure["requests"][-1])) if failure["requests"] else ""
    return [
        "",
        f"`{check['check']}`: {check['verdict']}",
        "",
        *(f"- {clause_link(clause, RELEASED)}: {known[clause]}" for clause in check["clauses"]),
        f"- what happens: {_escaped(clip(failure['message'], 300))}",
        *([f"- smallest case: ``{case}``"] if case else []),
        f"- why: {_escaped(check['expected_failure'])}",
    ]


def _request(stored: Mapping[str, Any] | str) -> Request:
    if isinstance(stored, str):
        return RawLine(data=stored.encode())
    return Request(stored["op"], stored["params"], stored.get("rand"))


# The planted bugs


_FOUND = {kills.VECTORS: "vectors", kills.DRAWN: "drawn cases only", kills.TEST: "a test", kills.NOTHING: "nothing"}
"""The words for what finds a planted bug, in the order of the columns."""


def power() -> str:
    """Return how many planted bugs are found by what, by protocol, as a table."""
    counts = {protocol: Counter(bug.found for bug in bugs) for protocol, bugs in _by_protocol().items()}
    total = sum(counts.values(), Counter[str]())
    used = [kind for kind in _FOUND if total[kind]]
    lines = [
        f"| protocol | bugs | {' | '.join(f'by {_FOUND[kind]}' for kind in used)} |",
        "| --- " * (len(used) + 2) + "|",
    ]
    for protocol, found in (*counts.items(), ("all", total)):
        lines.append(f"| {protocol} | {found.total()} | {' | '.join(str(found[kind]) for kind in used)} |")
    pairs = sum(bool(bug.parts) for bug in kills.load().values())
    return "\n".join([*lines, "", f"{pairs} of them are two bugs that hide each other."])


def _by_protocol() -> Mapping[str, Sequence[kills.Bug]]:
    groups: dict[str, list[kills.Bug]] = defaultdict(list)
    for bug in kills.load().values():
        groups[bug.protocol].append(bug)
    return dict(sorted(groups.items()))


def write_planted_bugs(out: Path) -> None:
    """Write the page that lists the planted bugs, by protocol, with what finds each."""
    how = relative("explanation/power.md", PLANTED)
    lines = [
        "# Planted bugs\n",
        f"The reference with one known fault, or with two that hide each other, and what finds it. [How]({how}).",
        "",
    ]
    for protocol, bugs in _by_protocol().items():
        lines += [f"## {protocol}", "", "| bug | clauses | kind | effect | found by |", "| --- " * 5 + "|"]
        lines += [_planted_row(bug) for bug in bugs] + [""]
    _write(out / PLANTED, "\n".join(lines))


def _planted_row(bug: kills.Bug) -> str:
    clauses_of = ", ".join(clause_link(clause, PLANTED) for clause in bug.clauses)
    cases = f"`{bug.cases[0].check}`, {bug.calls} requests (median)" if bug.cases else ""
    found = {
        kills.VECTORS: ", ".join(f"`{id}`" for id in bug.vectors[:3]) + (" …" if len(bug.vectors) > 3 else ""),
        kills.DRAWN: cases,
        kills.TEST: f"`{bug.test.rpartition('::')[2]}`",
        kills.NOTHING: "nothing",
    }[bug.found]
    parts = f" ({', '.join(f'`{part}`' for part in bug.parts)})" if bug.parts else ""
    return f"| `{bug.name}`{parts} | {clauses_of} | {bug.kind} | {_escaped(bug.effect)} | {found} |"


# The page of experiments


def write_experiments(out: Path) -> None:
    """Write the page that shows every figure of the papers, and what the stored run of each experiment gave.

    Raises
    ------
    SiteError
        An experiment has no stored result.
    """
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXPERIMENT_RESULTS.glob("*.json"))]
    missing = set(catalogue.MODULES) - {content["experiment"] for content in stored}
    if missing:
        raise SiteError(f"spec/experiments has no result of {min(missing)}: make reproduce stores it")
    lines = [_experiments_head(), *_figures()]
    for content in stored:
        lines += _experiment(content)
    _write(out / EXPERIMENTS, "\n".join(lines))


def _experiments_head() -> str:
    how, text = (relative(page, EXPERIMENTS) for page in ("how-to/reproduce-a-figure.md", "spec/experiments.md"))
    return (
        "# Experiments\n\nEvery figure and table of the papers, and each theorem that is run: what stands for it here, "
        "and what it gave. A statement of a paper is an inequality with a bound that was fixed before the run; its "
        f"verdict is that of the 95 % interval over seeds ([the text]({text}#6-statements-and-verdicts)). "
        f"[Run one yourself]({how}).\n"
    )


def _figures() -> Iterator[str]:
    yield "| figure | shows | here |\n| --- | --- | --- |"
    for figure in figures.load():
        yield f"| {figure.name} | {_escaped(figure.shows)} | {_stands(figure)} |"
    yield ""


def _stands(figure: figures.Figure) -> str:
    """Return what stands for a figure, with links to what is on the site."""
    if figure.experiment:
        return f"[{figure.experiment}](#{figure.experiment})"
    claims = ", ".join(f"[{claim}]({relative(CLAIMS, EXPERIMENTS)}#{_anchor(claim)})" for claim in figure.claims)
    return claims or (f"`{figure.command}`" if figure.command else _escaped(figure.reason))


def _anchor(claim: str) -> str:
    return f"{claim}-{ledger.load().claim(claim).verdict}".lower()


def _experiment(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the entry of one stored result: what was run, each statement with its verdict, and the pictures."""
    name, preset = content["experiment"], content["preset"]
    anchor = name if preset == "default" else f"{name}-{preset}"
    yield f"## {name}{'' if preset == 'default' else f', {preset}'} {{ #{anchor} }}\n"
    yield f"{_escaped(content['title'])} ({', '.join(content['figures'])}). {_escaped(catalogue.load(name).about)}\n"
    settings = ", ".join(f"{key} = {value}" for key, value in content["settings"].items())
    yield f"`{settings}`\n"
    yield "| claim | statement | mean | 95 % interval | bound | verdict |\n| --- | --- | --- | --- | --- | --- |"
    yield from (_judged_row(statement) for statement in content["statements"])
    yield ""
    yield f"{_sums(content)} {_seconds(content['seconds'])}\n"
    for picture in sorted((ROOT / "docs" / "assets" / "experiments").glob(f"{anchor}.*.svg")):
        what = picture.name.split(".")[1].replace("-", " ")
        yield f"![{name}: {what}]({relative(f'assets/experiments/{picture.name}', EXPERIMENTS)})\n"


def _judged_row(statement: Mapping[str, Any]) -> str:
    interval = statement["interval"]
    ends = f"{interval['low']:.3g} to {interval['high']:.3g}"
    bound = f"{'≥' if statement['relation'] == '>=' else '≤'} {statement['bound']:.3g}"
    said = f"{_escaped(statement['text'])} ({_escaped(statement['measure'])})"
    return f"| {statement['claim']} | {said} | {interval['mean']:.3g} | {ends} | {bound} | {statement['verdict']} |"


def _sums(content: Mapping[str, Any]) -> str:
    """Say in how many rounds the whole protocol ran, and in how many the shortcut."""
    used = [one for one in content["aggregators"] if one["protocol"] + one["shortcut"]]
    parts = [
        f"{one['name']}: {counted(one['protocol'], 'round')} with all messages, {one['shortcut']} by the sum of "
        f"quantised updates, {counted(one['moved'], 'number')} moved to a bound."
        for one in used
    ]
    return " ".join(parts)


def _seconds(seconds: Mapping[str, float]) -> str:
    """Say how long training and aggregation took; nothing where nothing was trained."""
    if not seconds["training"]:
        return ""
    return f"Training took {seconds['training']:.0f} s of processor time, aggregation {seconds['aggregation']:.0f} s."


# KaTeX


def write_katex(out: Path, given: Path | None) -> None:
    """Copy the style, the scripts and the fonts of KaTeX into the assets."""
    package = given or fetch_katex(ROOT / "build" / f"katex-{KATEX_VERSION}")
    source = package / "dist" if (package / "dist").is_dir() else package
    missing = [name for name in (*KATEX_FILES, "fonts") if not (source / name).exists()]
    if missing:
        raise SiteError(f"{package} is not an unpacked KaTeX package: {missing[0]} is missing")
    target = out / "assets" / "katex"
    for name in KATEX_FILES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
    shutil.copytree(source / "fonts", target / "fonts", dirs_exist_ok=True)


def fetch_katex(folder: Path) -> Path:
    """Return `folder` with the pinned package unpacked in it; it is fetched by npm when it is not there."""
    if folder.is_dir():
        return folder
    archive = _npm_pack(f"katex@{KATEX_VERSION}")
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != KATEX_SHA512:
        raise SiteError(f"the package that npm gave for katex@{KATEX_VERSION} is not the pinned one (SHA-512 differs)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unpacked = Path(scratch, "katex")
        _unpack(archive, unpacked)
        with contextlib.suppress(OSError):  # another run has put it there in the meantime
            unpacked.rename(folder)
    return folder


def _npm_pack(package: str) -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise SiteError(f"npm is missing: it fetches {package}, which renders the formulas (or give --katex-from DIR)")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", "--loglevel=error", "--fetch-retries=1", "--pack-destination", scratch, package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not archives:
            reason = next((line for line in done.stderr.splitlines() if "error" in line.lower()), "no reason given")
            raise SiteError(f"npm could not fetch {package}: {reason.strip()}")
        return archives[0].read_bytes()


def _unpack(archive: bytes, folder: Path) -> None:
    """Write the files of ``package/dist`` and the licence; nothing is taken that would stand elsewhere."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar.getmembers():
            name = posixpath.normpath(member.name).removeprefix("package/")
            if member.isfile() and (name.startswith("dist/") or name == "LICENSE"):
                content = tar.extractfile(member)
                assert content is not None
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())


# All of it


def build(out: Path, katex: Path | None) -> None:
    """Assemble the pages in `out`, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_katex(out, katex)
    write_copies(out)
    write_api(out)
    write_requirements(out)
    write_planted_bugs(out)
    write_claims(out)
    write_released(out)
    write_experiments(out)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 when something that it needs is missing."""
    parser = argparse.ArgumentParser(description="Assemble the pages of the site.")
    parser.add_argument("--katex-from", type=Path, metavar="DIR", help="an unpacked KaTeX package")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site-src", metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        build(options.out, options.katex_from)
    except SiteError as error:
        print(f"build_site: {error}", file=sys.stderr)
        return 2
    print(f"build_site: {sum(1 for _ in options.out.rglob('*.md'))} pages in {os.path.relpath(options.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
