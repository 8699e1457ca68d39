"""The history of the text: its versions, and the states of each id that was ever assigned.

``spec/history.toml`` is written by ``secagg-spec text --regenerate`` and read here. The words of a clause may change
freely until their version is released. The release seals them. From then on a new wording is a change of the next
version, and an assigned id stays in the file, at least as withdrawn.

Source: spec/conventions.md, section 1; spec/history.schema.json.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path

from secagg_spec import __version__, documents, resources, schemas
from secagg_spec.errors import ParameterError

FILE = "history.toml"
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,4299})(\.(0|[1-9][0-9]{0,4299})){2}")
COMMAND = "secagg-spec text --regenerate"
_HEAD = f"""# The versions of the text, and what became of each id that was ever given out: `{COMMAND}` writes this
# file. By hand come the day of a release, `released = "2000-12-31"`, which that command then seals, and the end of a
# clause, {{ since = "0.0.0", page = "page.md", withdrawn = "why", instead = ["ID-00"] }}, behind what it was in an
# earlier version, or in place of what it is in this one.
"""


class HistoryError(Exception):
    """The history is unusable, or contradicts the text; the message is one line."""


def _of(kind: type, **given: object) -> None:
    """Refuse an argument of another class (ERR-02)."""
    for name, value in given.items():
        if not isinstance(value, kind):
            raise ParameterError(name, type(value).__name__, f"of the class {kind.__name__}")


@dataclass(frozen=True)
class Version:
    """A version of the text; only its number is known before it is released and sealed.

    `text` is the digest that a report names. `pages` holds a digest of the words of each page outside its clauses.
    `seal` is a digest of everything that the history says about this version.
    """

    number: str
    released: str = ""
    text: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""

    @property
    def standing(self) -> str:
        """Whether the version is released, in words."""
        return f"released on {self.released}" if self.released else "not released"


@dataclass(frozen=True)
class State:
    """The state of a clause from a version on: its page and a digest of its words, or why it was withdrawn."""

    since: str
    page: str
    words: str = ""
    withdrawn: str = ""
    instead: tuple[str, ...] = ()

    def same(self, other: State) -> bool:
        """Return whether another state says the same, regardless of the version; `ParameterError` for no state."""
        _of(State, other=other)
        return replace(self, since=other.since) == other


@dataclass(frozen=True)
class History:
    """All versions, the oldest first, and the states of each id, the oldest first.

    Raises `HistoryError` where there is no version, or no state of an id.
    """

    versions: tuple[Version, ...]
    clauses: Mapping[str, tuple[State, ...]]

    def __post_init__(self) -> None:
        if not self.versions:
            raise HistoryError("there is no version")
        for id, states in self.clauses.items():
            if not states:
                raise HistoryError(f"{schemas.shown(id)}: there is no state")

    @property
    def present(self) -> Version:
        """The version of the present text."""
        return self.versions[-1]

    def changed(self, id: str) -> list[str]:
        """Return the versions in which the words of a clause changed; raises `HistoryError` for an unknown id."""
        if not isinstance(id, str) or id not in self.clauses:
            raise HistoryError(f"there is no clause {schemas.shown(id)}")
        pairs = itertools.pairwise(self.clauses[id])
        return [new.since for old, new in pairs if new.words not in ("", old.words)]

    def withdrawn(self) -> dict[str, State]:
        """Return the last state of each withdrawn clause, by id."""
        return {id: states[-1] for id, states in self.clauses.items() if states[-1].withdrawn}

    def moved(self) -> dict[str, set[str]]:
        """Return the earlier pages of each clause that moved between pages."""
        pages = {id: {state.page for state in states} - {states[-1].page} for id, states in self.clauses.items()}
        return {id: found for id, found in pages.items() if found}


@dataclass(frozen=True)
class Text:
    """The present text: its version, its clauses with page and words, its pages without clauses, its digest."""

    number: str
    clauses: Mapping[str, State]
    pages: Mapping[str, str]
    digest: str


@dataclass(frozen=True)
class Changes:
    """What a version changed: ids by kind of change, and the pages whose words outside clauses changed."""

    added: Sequence[str]
    changed: Sequence[str]
    moved: Sequence[str]
    withdrawn: Sequence[str]
    pages: Sequence[str]


def words(text: str) -> str:
    """Return a digest of words, ignoring line breaks and repeated spaces; `ParameterError` for what is no text."""
    _of(str, text=text)
    return hashlib.sha256(" ".join(text.split()).encode(errors="surrogatepass")).hexdigest()[:32]


@cache
def text() -> Text:
    """Return the text of this package."""
    pages = resources.clause_pages()
    clauses = {id: State(__version__, pages[id], words(said)) for id, said in resources.clauses().items()}
    around = {page: words(resources.around(page)) for page in resources.PAGES}
    return Text(__version__, clauses, around, resources.text_digest())


# ---------------------------------------------------------------------------------------------------- reading


@cache
def load() -> History:
    """Return the history of the text of this package.

    Raises
    ------
    HistoryError
        The file is unusable.
    """
    return read(resources.root("spec") / FILE, validated=False)


def read(path: Path, *, validated: bool = True) -> History:
    """Return the history in a file.

    A test ensures that the text's own file fits the schema. Many commands read it, and it is therefore not `validated`
    again unless it cannot be used.

    Raises
    ------
    HistoryError
        The file is absent or not TOML, breaks the schema, or contradicts itself.
    ParameterError
        The path is none.
    """
    _of(Path, path=path)
    try:
        content = documents.read_toml(path)
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path.name}: cannot be used: {' '.join(str(error).split())}") from None
    if validated or content.keys() != {"version", "clauses"}:
        _validate(path, content)
    try:
        versions = tuple(Version(**entry) for entry in content["version"])
        found = History(versions, {id: tuple(map(_state, states)) for id, states in content["clauses"].items()})
        fault = next(_contradictions(found), None)
    except (AttributeError, HistoryError, LookupError, TypeError, ValueError):
        _validate(path, content)
        raise
    if fault is not None:
        raise HistoryError(f"{path.name}: {fault}")
    return found


def _validate(path: Path, content: Mapping[str, object]) -> None:
    """Refuse a file that breaks the schema."""
    schema = schemas.load(resources.root("spec") / "history.schema.json")
    for where, fault in schemas.faults(content, schema):
        raise HistoryError(f"{path.name}: {''.join(f'{part}: ' for part in where)}{fault}")


def _state(entry: Mapping[str, object]) -> State:
    found = State(**entry)  # type: ignore[arg-type]
    return replace(found, instead=tuple(found.instead))


def order(number: str) -> tuple[int, ...]:
    """Return the sort key of a version; raises `HistoryError` for what is no version, such as 0.1.0."""
    if not isinstance(number, str) or not _NUMBER.fullmatch(number):
        raise HistoryError(f"{schemas.shown(number)} is no version, such as 0.1.0")
    return tuple(map(int, number.split(".")))


def _contradictions(book: History) -> Iterator[str]:
    numbers = [version.number for version in book.versions]
    yield from (f"{b} does not come after {a}" for a, b in itertools.pairwise(numbers) if order(a) >= order(b))
    for version in book.versions[:-1]:
        if not version.seal:
            yield f"{version.number} is not the last version, and was never released"
    for version in book.versions:
        if version.released and not _is_day(version.released):
            yield f"{version.number}: released is {schemas.shown(version.released)}, and must be a day like 2000-12-31"
    for id, states in book.clauses.items():
        yield from (f"{id}: {fault}" for fault in _broken(id, states, [*numbers, __version__], book.clauses))
    for version in book.versions:
        if version.seal and version.seal != seal(book, version):
            yield f"version {version.number} was altered after its release: put back the sealed entries"


def _is_day(text: object) -> bool:
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _broken(id: str, states: Sequence[State], numbers: Sequence[str], known: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with the states of one id."""
    yield from (f"there is no version {state.since}" for state in states if state.since not in numbers)
    for before, after in itertools.pairwise(states):
        if order(before.since) >= order(after.since):
            yield f"{after.since} does not come after {before.since}"
        if before.withdrawn:
            yield f"it was withdrawn in {before.since}, and an id is never used again"
    for other in states[-1].instead:
        if other == id or other not in known:
            yield f"{other} is no clause that could replace it"


def seal(book: History, version: Version) -> str:
    """Return the digest of everything that a history says about a version.

    Raises
    ------
    ParameterError
        An argument is of another class.
    HistoryError
        A number of a version is none.
    """
    _of(History, book=book)
    _of(Version, version=version)
    then = {id: _at(states, version.number) for id, states in book.clauses.items()}
    said = {id: [s.since, s.page, s.words, s.withdrawn, *s.instead] for id, s in sorted(then.items()) if s}
    meant = [version.number, version.released, version.text, dict(version.pages), said]
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()


def _at(states: Sequence[State], number: str) -> State | None:
    """Return the state of a clause in a version."""
    until = [state for state in states if order(state.since) <= order(number)]
    return until[-1] if until else None


# ---------------------------------------------------------------------------------------------------- changes


def changes(book: History, version: Version, now: Text) -> Changes:
    """Return what a version changed; `now` is the present text, for a version that is not sealed yet.

    Raises
    ------
    ParameterError
        An argument is of another class.
    HistoryError
        The history has no such version.
    """
    _of(History, book=book)
    _of(Version, version=version)
    _of(Text, now=now)
    if version not in book.versions:
        raise HistoryError(f"the history has no version {schemas.shown(version.number)} like this one")
    kinds: dict[str, list[str]] = {kind: [] for kind in ("added", "changed", "moved", "withdrawn")}
    for id, states in book.clauses.items():
        for kind in _kinds(states, version.number):
            kinds[kind].append(id)
    before = book.versions.index(version) - 1
    new = version.pages or now.pages
    old = book.versions[before].pages if before >= 0 else new
    return Changes(**kinds, pages=[page for page in {**old, **new} if old.get(page) != new.get(page)])


def _kinds(states: Sequence[State], number: str) -> Iterator[str]:
    """Yield the kinds of change that a version made to a clause."""
    at = next((at for at, state in enumerate(states) if state.since == number), None)
    if at is None:
        return
    state, before = states[at], states[at - 1] if at else None
    if state.withdrawn:
        yield "withdrawn"
    elif before is None:
        yield "added"
    else:
        yield from ("changed",) if state.words != before.words else ()
        yield from ("moved",) if state.page != before.page else ()


# ---------------------------------------------------------------------------------------------------- writing


def renewed(book: History, now: Text) -> History:
    """Return the history, brought up to date with the present text.

    Raises
    ------
    HistoryError
        An id vanished or is reused, a released version would change, or a version is not the next one.
    ParameterError
        An argument is of another class.
    """
    _of(Text, now=now)
    book = opened(book, now.number)
    for fault in _lost(book, now):
        raise HistoryError(_late(book.present) if book.present.seal else fault)
    clauses = {id: _states(states, now.clauses.get(id)) for id, states in book.clauses.items()}
    clauses |= {id: (state,) for id, state in now.clauses.items() if id not in book.clauses}
    new = replace(book, clauses=clauses)
    return _sealed(new, now) if book.present.released else new


def opened(book: History, number: str) -> History:
    """Return the history with a version as its last.

    Raises
    ------
    HistoryError
        The version is not the next one, or no version.
    ParameterError
        The history is of another class.
    """
    _of(History, book=book)
    if number == book.present.number:
        return book
    if order(number) <= order(book.present.number):
        raise HistoryError(f"the text has version {number}, and {FILE} has {book.present.number} already")
    if not book.present.seal:
        raise HistoryError(
            f"the text has version {number}, and {book.present.number} has no seal: set the version back "
            f"and release it first, or write {number} for {book.present.number} throughout {FILE}"
        )
    return replace(book, versions=(*book.versions, Version(number)))


def _lost(book: History, now: Text) -> Iterator[str]:
    for id, states in book.clauses.items():
        if id not in now.clauses and not states[-1].withdrawn:
            end = f'{{ since = "{now.number}", page = "{states[-1].page}", withdrawn = "why", instead = [] }}'
            place = "in place of" if states[-1].since == now.number else "behind"
            yield f"{id} vanished from the text: put it back, or withdraw it in {FILE} by {end} {place} its last state"
        if id in now.clauses and states[-1].withdrawn:
            yield f"{id} was withdrawn in {states[-1].since}, and an id is never used again: give the clause a new one"


def _states(old: tuple[State, ...], new: State | None) -> tuple[State, ...]:
    """Return the states of a clause; add the present state only if it says something new."""
    if new is None:
        return old
    kept = tuple(state for state in old if state.since != new.since)
    return kept if kept and kept[-1].same(new) else (*kept, new)


def _sealed(book: History, now: Text) -> History:
    """Return the history with its last version sealed; that version may be sealed already."""
    last = replace(book.present, text=now.digest, pages=dict(now.pages))
    last = replace(last, seal=seal(book, last))
    if book.present.seal and last != book.present:
        raise HistoryError(_late(last))
    return replace(book, versions=(*book.versions[:-1], last))


def _late(last: Version) -> str:
    return (
        f"the text changed after {last.number} was released: raise the version in "
        f"reference/secagg_spec/__init__.py, then run {COMMAND}"
    )


def faults(book: History, now: Text) -> Iterator[str]:
    """Yield each disagreement between the history and the text, in one line that says what to do.

    Raises `ParameterError` for an argument of another class, when the first one is asked for.
    """
    try:
        new = renewed(book, now)
    except HistoryError as error:
        yield str(error)
        return
    for id, states in new.clauses.items():
        if states != book.clauses.get(id):
            yield f"{FILE} is out of date for {id}: run {COMMAND}"
    if new.versions != book.versions:
        yield f"{FILE} is out of date for version {now.number}: run {COMMAND}"


def written(book: History) -> str:
    """Return a history as the text of its file; raises `ParameterError` for what is no history."""
    _of(History, book=book)
    versions = "".join(f"\n[[version]]\n{_fields(version)}" for version in book.versions)
    clauses = "".join(f"{id} = {_list(states)}\n" for id, states in sorted(book.clauses.items()))
    return f"{_HEAD}{versions}\n[clauses]\n{clauses}"


def _fields(version: Version) -> str:
    names = ("number", "released", "text", "seal")
    lines = [f"{name} = {json.dumps(getattr(version, name))}\n" for name in names if getattr(version, name)]
    pages = [f"{json.dumps(page)} = {json.dumps(said)}\n" for page, said in version.pages.items()]
    return "".join([*lines, *(["[version.pages]\n"] if pages else []), *pages])


def _list(states: Sequence[State]) -> str:
    """Return the states of a clause as TOML: one state on one line, several states on a line each."""
    tables = [f"{{ {', '.join(_pairs(state))} }}" for state in states]
    return f"[{tables[0]}]" if len(tables) == 1 else "[\n" + "".join(f"  {table},\n" for table in tables) + "]"


def _pairs(state: State) -> Iterator[str]:
    yield f"since = {json.dumps(state.since)}"
    yield f"page = {json.dumps(state.page)}"
    if state.withdrawn:
        withdrawn = json.dumps(state.withdrawn, ensure_ascii=False)
        yield f"withdrawn = {withdrawn.replace(chr(127), chr(92) + 'u007f')}"  # JSON allows it, and TOML does not
        yield f"instead = {json.dumps(list(state.instead))}"
    else:
        yield f"words = {json.dumps(state.words)}"
