"""Plays stories in a world, and shortens those that leak.

A *world* is a protocol with its parameters; a *play* is one story of it while it is told: it proposes letters, plays
them, and decides at the end. The engine knows neither protocols nor attacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tests.stories.letters import Letter, Rules, Story, counted
from tests.stories.sealed import recorded


class Play(Protocol):
    """One story while it is told."""

    def propose(self, random: Random) -> Letter:
        """Return a letter that may come next."""
        ...

    def take(self, letter: Letter) -> bool:
        """Play a letter, and return whether anything happened."""
        ...

    def leak(self) -> tuple[str, ...]:
        """Return what the adversary knows beyond the text, the plainest first; empty when there is nothing."""
        ...


@dataclass(frozen=True)
class World:
    """A protocol at parameters: how its stories begin, and how many letters they have."""

    name: str
    profile: str
    numbers: str
    open: Callable[[Rules, Random], Play]
    length: int = 40


@dataclass
class Tally:
    """What came out of many stories."""

    stories: int = 0
    letters: dict[str, int] = field(default_factory=dict)
    leaks: int = 0
    first: Story | None = None
    at: int = 0

    def take(self, story: Story) -> None:
        """Count a story."""
        self.stories += 1
        for kind, times in counted(story.letters).items():
            self.letters[kind] = self.letters.get(kind, 0) + times
        if story.leak:
            self.leaks += 1
            if self.first is None:
                self.first, self.at = story, self.stories


def tell(world: World, rules: Rules, seed: str) -> Story:
    """Return the story of a seed."""
    with recorded():
        play = world.open(rules, Random(f"values {seed}"))
        random = Random(f"letters {seed}")
        proposed = (play.propose(random) for _ in range(world.length))
        letters = tuple(letter for letter in proposed if play.take(letter))
        return Story(letters, play.leak())


def again(world: World, rules: Rules, letters: Iterable[Letter]) -> Story:
    """Return the story of given letters; those that cannot be played where they stand are left out."""
    with recorded():
        play = world.open(rules, Random("again"))
        played = tuple(letter for letter in letters if play.take(letter))
        return Story(played, play.leak())


def stories(world: World, rules: Rules, count: int, seed: int) -> Iterator[Story]:
    """Yield stories, a seed of its own for each."""
    for at in range(count):
        yield tell(world, rules, f"{world.name} {world.profile} {seed} {at}")


def played(world: World, rules: Rules, count: int, seed: int, *, until_leak: bool = False) -> Tally:
    """Return what comes out of many stories; with `until_leak`, those up to the first one that leaks."""
    tally = Tally()
    for story in stories(world, rules, count, seed):
        tally.take(story)
        if until_leak and story.leak:
            break
    return tally


def shortest(world: World, rules: Rules, letters: Sequence[Letter]) -> Story:
    """Return a story that still leaks, in which no letter, and no user of a letter, can be left out."""
    best = again(world, rules, letters)
    assert best.leak, "a story leaks no more when it is played again"
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _smaller(best.letters):
            story = again(world, rules, candidate)
            if story.leak and _size(story.letters) < _size(best.letters):
                best, shrunk = story, True
                break
    return best


def _smaller(letters: tuple[Letter, ...]) -> Iterator[list[Letter]]:
    from dataclasses import replace

    for width in (8, 4, 2, 1):
        for at in range(len(letters) - width, -1, -1):
            yield [*letters[:at], *letters[at + width :]]
    for at, letter in enumerate(letters):
        for user in letter.users if len(letter.users) > 1 else ():
            fewer = tuple(u for u in letter.users if u != user)
            yield [*letters[:at], replace(letter, users=fewer), *letters[at + 1 :]]
        if letter.without or letter.age:
            yield [*letters[:at], replace(letter, without=(), age=0), *letters[at + 1 :]]


def _size(letters: Sequence[Letter]) -> tuple[int, int]:
    return len(letters), sum(2 * len(letter.users) + len(letter.without) + letter.age for letter in letters)
