"""What ``secagg-spec explain`` finds by words: terms, verdicts, targets, clauses, claims and errata, checks.

What is searched are the texts themselves, with the ids and the places of claims (`index`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from secagg_spec import resources
from secagg_spec.commands import index, meanings
from secagg_spec.conformance.adapter.plain import clip

MOST = 10
"""The most hits that are listed."""
_WIDTH, _SHORT = 100, 4
_IN_TITLE, _TOGETHER = 3, 2
_LITTLE = {*re.findall(r"\w+", "a an and are do does for how in is it my of or the to what when which who why")}
"""Words that are looked for only where nothing else is asked."""


@dataclass(frozen=True)
class Hit:
    """Something that can be explained: what it is, its id, where it stands, what it says, what to run next."""

    kind: str
    id: str
    place: str
    says: str
    next: str
    more: str = ""

    @cached_property
    def _title(self) -> Sequence[str]:
        return _words(f"{self.id} {self.place}")

    @cached_property
    def _all(self) -> Sequence[str]:
        return [*self._title, *_words(f"{self.kind} {self.says} {self.more}")]

    @cached_property
    def _text(self) -> str:
        return f"{self.id} {self.place} {self.kind} {self.says} {self.more}".lower()

    def score(self, asked: Sequence[str]) -> int:
        """Return how well this fits some words: 0 if it lacks one, more for those of its title and for neighbours."""
        words = [_Word(word) for word in asked]
        if not all(word.begins in self._text and any(map(word.fits, self._all)) for word in words):
            return 0
        titled = sum(any(map(_Word(word).fits, self._title)) for word in asked)
        together = sum(_together(asked, words) for words in (self._title, self._all)) if len(asked) > 1 else 0
        return 1 + _IN_TITLE * titled + _TOGETHER * together

    def names(self, asked: str) -> bool:
        """Return whether this has a word as it is asked for, with its hyphens and signs."""
        return re.search(rf"(?<!\w){re.escape(asked.lower())}(?!\w)", self._text) is not None

    def lines(self) -> Iterator[str]:
        """Yield what it is, and what to run next."""
        about = f"{self.kind}{self.place and f' of {self.place}'}: {self.says}"
        yield f"  {clip(f'{self.id}   {about}', _WIDTH - 2)}"
        yield f"      {self.next}"


@dataclass(frozen=True)
class _Word:
    """A word that is asked for; a longer one fits each word that begins with it, whatever its number."""

    word: str

    @property
    def begins(self) -> str:
        """How each word begins that it fits."""
        return self.word[:-1] if len(self.word) >= _SHORT and self.word.endswith("s") else self.word

    def fits(self, other: str) -> bool:
        if len(self.word) < _SHORT or self.word.isdigit():
            return other == self.word
        return other.startswith(self.begins)


def _words(text: str) -> Sequence[str]:
    return re.findall(r"[a-z]+|\d+", text.lower())


def _together(asked: Sequence[str], words: Sequence[str]) -> bool:
    parts = [_Word(word) for word in asked]
    starts = range(len(words) - len(parts) + 1)
    return any(all(part.fits(words[at + i]) for i, part in enumerate(parts)) for at in starts)


def hits(asked: str) -> Sequence[Hit]:
    """Return what has all words that are asked for, the best first; of several words, leave out those found nowhere."""
    nowhere = unknown(asked)
    words = [word for word in _sought(asked) if word not in nowhere]
    scores = {one: one.score(words) for one in _everything()} if words else {}
    return sorted((one for one in scores if scores[one]), key=lambda one: -scores[one])


def verbatim(asked: str) -> Sequence[Hit]:
    """Return what has one word that is not all letters, such as X25519, as it is asked for; the best first."""
    return [one for one in hits(asked) if one.names(asked)]


def unknown(asked: str) -> Sequence[str]:
    """Return which of several words nothing has."""
    known = list(_everything()) if len(asked.split()) > 1 else []
    return [word for word in _sought(asked) if known and not any(one.score([word]) for one in known)]


def _sought(asked: str) -> Sequence[str]:
    return [word for word in _words(asked) if word not in _LITTLE] or _words(asked)


def found(asked: str, best: Sequence[Hit]) -> Iterator[str]:
    """Yield the lines that list the best hits."""
    nowhere = ", ".join(unknown(asked))
    words = "the word" if len(asked.split()) == 1 else "the other words" if nowhere else "the words"
    yield f"{asked!r} is no id{nowhere and f', and nothing has {nowhere}'}; these have {words}:"
    yield ""
    for hit in best[:MOST]:
        yield from hit.lines()
    if best[MOST:]:
        yield f"  … and {len(best) - MOST} more; more words find fewer"


def _everything() -> Iterator[Hit]:
    """Yield all that is searched; among equals the first comes first."""
    for term, meaning, more in resources.rows_of(glossary(), "word"):
        page = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", more)
        yield Hit("term", term, "", meaning, f"the site has more on the page: {page}")
    yield from (Hit("target", name, "", about, _conform(name)) for name, about in index.load().targets.items())
    for name, when in meanings.verdicts().items():
        yield Hit("verdict", name, "", when, f"secagg-spec explain {name}")
    failing = meanings.failing()
    for clause, said in resources.clauses().items():
        failed = f"Failed by {'; '.join(failing[clause])}." if clause in failing else ""
        yield Hit("clause", clause, "", said, f"secagg-spec explain {clause}", failed)
    for id, claim in index.load().claims.items():
        yield Hit(claim.kind, id, claim.place, claim.says, f"secagg-spec claims {id}", claim.paper)
    for check in index.load().checks.values():
        yield Hit("check", check.id, "", check.text, f"secagg-spec explain {check.id}")


def _conform(target: str) -> str:
    return f"secagg-spec conform --brief --target {target}"


def glossary() -> str:
    """Return the glossary of the site; nothing where it is absent."""
    above = resources.root("spec").parent
    places = (above / "docs" / "explanation" / "glossary.md", above / "glossary.md")
    return next((path.read_text(encoding="utf-8") for path in places if path.is_file()), "")
