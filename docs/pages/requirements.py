"""The pages of requirements: each clause with what decides it, by pages of the text, and a list of all."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from docs.pages import frameworks, versions
from docs.pages.common import (
    REQUIREMENTS,
    ROOT,
    VERSIONS,
    SiteError,
    clause_pages,
    escaped,
    relative,
    write,
)
from secagg_spec import resources
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.vectors import store
from secagg_spec.history import History
from secagg_spec.resources import PAGES, clauses


def marked_tests() -> dict[str, list[str]]:
    """Return, for each clause, the tests that carry its marker."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for clause, test in _markers(ast.parse(text)) if "requirement(" in text else ():
            label = f"{name}::{test}" if test else name
            if label not in found[clause]:
                found[clause].append(label)
    return found


def _markers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each clause of each ``requirement(...)``, with the decorated test or class, empty for a whole module."""
    for node in _definitions(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from ((clause, node.name) for clause in _required(node.decorator_list))
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            yield from ((clause, "") for clause in _required([node.value]))


def _definitions(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, and those of its classes."""
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body)


def _required(expressions: Sequence[ast.expr]) -> Iterator[str]:
    calls = (node for root in expressions for node in ast.walk(root) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "requirement":
            yield from (arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


Table: TypeAlias = Mapping[str, Sequence[str]]
KINDS = {
    "Checks of the kit": "check",
    "Test vectors": "vector",
    "Mutants": "mutant",
    "Tests": "test",
}
"""What decides a clause, in the order of the page, with the word for one of it."""
FOLDER = REQUIREMENTS.removesuffix(".md")
"""What decides the clauses of each page of the text stands in this folder."""
_MANY = 40
"""Of more entries than these only the names are listed."""


def write_requirements(out: Path) -> None:
    """Write the pages that list each clause with the checks, vectors, mutants and tests that belong to it.

    Raises
    ------
    SiteError
        A clause is an orphan, or something names a clause that there is not.
    """
    tables = deciding()
    for fault in orphans(tables):
        raise SiteError(fault)
    for page in PAGES:
        write(out / FOLDER / page, "\n".join(_details(page, tables)))
    write(out / REQUIREMENTS, "\n".join(_index(tables)))


def address(clause: str, page: str) -> str:
    """Return the link from a page of the site to the entry of a clause."""
    return f"{relative(f'{FOLDER}/{Path(clause_pages()[clause]).name}', page)}#{clause.lower()}"


def _on(page: str) -> Sequence[str]:
    """Return the clauses of a page of the text."""
    return [clause for clause in clauses() if clause_pages()[clause] == f"spec/{page}"]


@functools.cache
def deciding() -> dict[str, Table]:
    """Return, for each kind of what decides a clause, the entries of each clause."""
    tables: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in KINDS}
    for check in REGISTRY.values():
        for clause in check.clauses:
            tables["Checks of the kit"][clause].append(f"`{check.id}`: {check.text}")
    for book in store.load_all():
        for vector in book.vectors:
            for clause in vector.clauses:
                tables["Test vectors"][clause].append(f"`{vector.id}` ({book.name}.json): {escaped(vector.comment)}")
    for mutant in mutants.load().values():
        for clause in mutant.clauses:
            tables["Mutants"][clause].append(f"`{mutant.name}`: {escaped(mutant.effect)}")
    for clause, tests in marked_tests().items():
        tables["Tests"][clause] += [f"`{test}`" for test in tests]
    return {kind: dict(table) for kind, table in tables.items()}


def orphans(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield what is wrong: unknown clauses, clauses that nothing decides, clauses with MUST without a mutant."""
    known = clauses()
    for kind, table in tables.items():
        for clause in table:
            if clause not in known:
                yield f"{table[clause][0]} names the clause {clause}, which the text does not have ({kind.lower()})"
    exempt = mutants.unbreakable()
    for clause, sentence in known.items():
        if clause not in tables["Tests"] and clause not in tables["Checks of the kit"]:
            yield f"{clause} is decided by no check and no test"
        if re.search(r"\bMUST\b", sentence) and clause not in tables["Mutants"] and clause not in exempt:
            yield f"{clause} has no mutant, and spec/vectors/unbreakable.toml gives no reason"


def _index(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield the list of all clauses; each keeps the address that it had when all entries stood on one page."""
    known = clauses()
    numbers = {kind: sum(clause in table for clause in known) for kind, table in tables.items()}
    vectors = f"[test vectors]({relative('explanation/vectors.md', REQUIREMENTS)})"
    yield (
        "# Requirements\n\n"
        f"Each clause of the text, and what decides it. Of the {len(known)} clauses, {numbers['Checks of the kit']} "
        "are decided by checks of the kit, on any implementation whose adapter declares the operations that they need; "
        f"{numbers['Test vectors']} by {vectors}, which need no kit; {numbers['Tests']} on the reference by its own "
        f"tests. {numbers['Mutants']} of them are broken by a mutant each, and something kills it. No clause is left "
        "undecided.\n"
    )
    yield "| clauses of | clauses | with checks | with vectors | with mutants | with tests |"
    yield "| --- |" + " ---: |" * (len(KINDS) + 1)
    for page in PAGES:
        here = _on(page)
        cells = (sum(clause in table for clause in here) for table in tables.values())
        yield f"| [{resources.title(page)}](requirements/{page}) | {len(here)} | {' | '.join(map(str, cells))} |"
    yield (
        "\n## Every clause\n\n"
        f"A clause keeps its address here, such as `{FOLDER}/#{next(iter(known)).lower()}`, also when it comes to "
        "another page or is withdrawn; it leads to the entry of the clause. Cite a clause by it. [What each version "
        f"changed]({relative(VERSIONS, REQUIREMENTS)})\n"
    )
    for page in PAGES:
        yield f"### {resources.title(page)}\n"
        yield " ".join(f"[{one}]({address(one, REQUIREMENTS)}){{ #{one.lower()} .moved }}" for one in _on(page)) + "\n"
    yield from _withdrawn(versions.book())


def who_fails(clause: str, page: str) -> str:
    """Return a sentence that says which frameworks fail a clause, each with a link to its finding."""
    found = frameworks.failing().get(clause, {})
    names = (
        f"[{frameworks.words()[name]['name']}]({relative(frameworks.page(name), page)}#{one.anchor})"
        for name, one in found.items()
    )
    return f"Failed by {', '.join(names)}." if found else ""


def _withdrawn(book: History) -> Iterator[str]:
    """Yield the entries of the clauses that are no more, which keep their addresses."""
    ended = sorted(book.withdrawn().items())
    yield from ("## Withdrawn\n",) if ended else ()
    for clause, state in ended:
        yield f"### {clause}\n"
        yield f"This requirement was {versions.withdrawn(state, REQUIREMENTS)}\n"


def _details(page: str, tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield the page of the clauses of one page of the text: what each says, who fails it, and what decides it."""
    at = f"{FOLDER}/{page}"
    yield f"# Requirements: {resources.title(page)}\n"
    yield (
        f"The clauses of [this page of the text]({relative(f'spec/{page}', at)}), and what decides each. "
        f"[All requirements]({relative(REQUIREMENTS, at)})\n"
    )
    for clause in _on(page):
        yield f"## {clause}\n"
        yield f"{clauses()[clause]} [In the text]({relative(clause_pages()[clause], at)}#{clause}){{ .mention }}\n"
        if failed := who_fails(clause, at):
            yield f"{failed}\n"
        yield from _entries(clause, tables)


def _entries(clause: str, tables: Mapping[str, Table]) -> Iterator[str]:
    for kind, table in tables.items():
        if entries := table.get(clause, ()):
            yield f'??? note "{kind}: {len(entries)}"\n'
            yield from _listed(entries)
            yield ""
    if reason := mutants.unbreakable().get(clause):
        yield f"No mutant: {escaped(reason)}\n"


def _listed(entries: Sequence[str]) -> Sequence[str]:
    """Return the lines of a list; of many entries only their names."""
    if len(entries) > _MANY:
        return [f"    {', '.join(map(name, entries))}"]
    return [f"    - {entry}" for entry in entries]


def name(entry: str) -> str:
    """Return the name with which an entry begins, as code."""
    found = re.match(r"`[^`]+`", entry)
    assert found is not None, entry
    return found.group()
