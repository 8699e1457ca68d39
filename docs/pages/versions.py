"""The versions of the text: the page that tells what each changed, and what stands of them on the other pages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from docs.pages.common import (
    CHANGES,
    REQUIREMENTS,
    VERSIONS,
    SiteError,
    count,
    escaped,
    mention,
    relative,
    write,
)
from docs.pages.formats import files
from secagg_spec import history, resources
from secagg_spec.conformance.running import repros
from secagg_spec.conformance.sdk.secagg_adapter import PROTOCOL
from secagg_spec.history import History, HistoryError, State, Text, Version

SHOWN = 16
"""So many digits of the digest stand on each page."""
KINDS = {
    "added": "added",
    "changed": "with other words",
    "moved": "moved to another page",
    "withdrawn": "withdrawn",
}
"""What a version does to a clause, in the order of the page."""


@functools.cache
def book() -> History:
    """Return the history of the text.

    Raises
    ------
    SiteError
        It cannot be used, or it and the text disagree.
    """
    try:
        found = history.load()
    except HistoryError as error:
        raise SiteError(str(error)) from None
    for fault in history.faults(found, history.text()):
        raise SiteError(fault)
    return found


# On the pages of the text.


def edition(found: History, now: Text, page: str) -> str:
    """Return the line with which a page of the text begins: version, release, digest."""
    return (
        f"Version {now.number} of the text, {found.present.standing}. Reports that are made with it name the digest "
        f"`{now.digest[:SHOWN]}…`. [What changed]({relative(VERSIONS, page)}#{anchor(found.present)})\n{{ .edition }}"
    )


def since(found: History, clause: str) -> str:
    """Say in which later version a clause came or got its words; nothing of the first version."""
    first = found.clauses[clause][0].since
    came = [f"new in {first}"] if first != found.versions[0].number else []
    return ", ".join([*came, *(f"changed in {number}" for number in found.changed(clause))])


def withdrawn_lines(found: History, name: str) -> list[str]:
    """Return the lines that keep, at the end of a page, the anchors of clauses that are no longer on it."""
    ended = {id: state for id, state in found.withdrawn().items() if state.page == name}
    left = [id for id, pages in found.moved().items() if name in pages]
    entries = {id: withdrawn(state, f"spec/{name}") for id, state in ended.items()}
    entries |= {id: f"No longer here: see {mention(id, f'spec/{name}')}." for id in left}
    if not entries:
        return []
    lines = (f"- [](){{ #{id} tabindex=-1 aria-hidden=true }}{id}: {entries[id]}" for id in sorted(entries))
    return ["", "## Withdrawn and moved requirements", "", *lines]


def withdrawn(state: State, page: str) -> str:
    """Say when and why a clause was withdrawn, and what replaces it."""
    instead = ", ".join(mention(id, page) for id in state.instead)
    replaced = f" Instead: {instead}." if instead else " Nothing replaces it."
    return f"withdrawn in {state.since}. {escaped(state.withdrawn.rstrip('.'))}.{replaced}"


# The page of versions.


def anchor(version: Version) -> str:
    """Return the anchor of a version on its page."""
    return f"version-{version.number.replace('.', '-')}"


def write_versions(out: Path) -> None:
    """Write the page that tells what each version changed.

    Raises
    ------
    SiteError
        The history of the text cannot be used, or it and the text disagree.
    """
    write(out / VERSIONS, "\n".join(rendered(book(), history.text())))


def rendered(found: History, now: Text) -> Iterator[str]:
    """Yield the lines of the page."""
    yield _head(found, now)
    for version in reversed(found.versions):
        yield from _version(found, version, now)
    yield _FORMATS
    yield from (f"| {name} | {number} |" for name, number in formats().items())


def _head(found: History, now: Text) -> str:
    example = next(iter(now.clauses))
    return f"""# Versions of the text

This is version {now.number}, {found.present.standing}, with {len(now.clauses)} requirements on {len(now.pages)} pages.
`secagg-spec text` says the same of what is installed. How numbers are given, and what changed in the software as well,
stands in [the changes]({relative(CHANGES, VERSIONS)}).

**Which text judged.** A report has the digest of the text in the member `text` of its header. Where it is the digest of
a version below, the report was made with that version, to the last letter.

**One address for good.** A requirement may come to another page, or be withdrawn. Its entry among [the
requirements]({relative(REQUIREMENTS, VERSIONS)}) stays, under an address that ends in
`reference/requirements/#{example.lower()}`, and leads to the words that hold now. Cite that one. An id is never used
again.

**What counts as a change.** Other words of a requirement; where a line ends does not count. Steps, tables and formulas
bind where a requirement points to them, so a version also lists the pages on which such words changed.
"""


_FORMATS = """
## Formats

| what | version |
| --- | --- |"""


def formats() -> Mapping[str, str]:
    """Return the versions of what programs exchange, each from where it is defined."""
    named = {each["title"]: each["properties"].get("schema", {}).get("const") for each in files().values()}
    found = {"The adapter protocol": ".".join(map(str, PROTOCOL))}
    found |= {escaped(title): f"`{name}`" for title, name in named.items() if name}
    return found | {"A failing case that was stored": f"`{repros.SCHEMA}`"}


def _version(found: History, version: Version, now: Text) -> Iterator[str]:
    changed = history.changes(found, version, now)
    yield f"\n## {version.number}, {version.standing} {{ #{anchor(version)} }}\n"
    yield f"Digest of the text{'' if version.text else ' as it stands'}: `{version.text or now.digest}`\n"
    for kind, words in KINDS.items():
        if ids := getattr(changed, kind):
            yield from _kind(found, version, ids, f"{count(ids, 'requirement')} {words}")
    if changed.pages:
        links = ", ".join(_page(page) if page in resources.PAGES else f"`{page}`" for page in changed.pages)
        yield f"Other words changed on: {links}.\n"


def _kind(found: History, version: Version, ids: Sequence[str], title: str) -> Iterator[str]:
    """Yield a block that can be opened, open but for the first version, with ids by page."""
    yield f'???{"" if version == found.versions[0] else "+"} note "{title}"\n'
    tell: Callable[[str], str] = functools.partial(_told, found, version)
    for page in _pages(found, version, ids):
        here = [id for id in ids if _state(found, version, id).page == page]
        yield f"    - {_page(page) if page in resources.PAGES else page}: {', '.join(map(tell, here))}"
    yield ""


def _pages(found: History, version: Version, ids: Sequence[str]) -> list[str]:
    """Return the pages of some clauses in a version, in reading order; pages that are no more come last."""
    pages = {_state(found, version, id).page for id in ids}
    return [*(page for page in resources.PAGES if page in pages), *sorted(pages - {*resources.PAGES})]


def _state(found: History, version: Version, id: str) -> State:
    return next(state for state in found.clauses[id] if state.since == version.number)


def _told(found: History, version: Version, id: str) -> str:
    """Return a link to a clause, and of one that was withdrawn what replaces it."""
    state = _state(found, version, id)
    link = mention(id, VERSIONS)
    return (
        f"{link} ({', '.join(mention(other, VERSIONS) for other in state.instead) or 'nothing'} instead)"
        if (state.withdrawn)
        else link
    )


def _page(page: str) -> str:
    return f"[{resources.title(page)}]({relative(f'spec/{page}', VERSIONS)})"
