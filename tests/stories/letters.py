"""Letters, rules and stories.

A letter says all that the adversary decides about one act, so that a story can be played again without some of its
letters. A letter that cannot be played where it stands is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Which rules of the text the honest users keep, besides those that the steps themselves keep.

    Parameters
    ----------
    numbers : bool
        No number of a round, and no session, is begun twice (SES-01, SES-02).
    stored : bool
        A user that is restored has the newest state that it stored (section 13 of the conventions).
    back_to : tuple of str
        Without `stored`, before which steps an older state may be; all when left out.
    failed : bool
        A round that announced survivors counts with them, also when it failed.
    """

    numbers: bool = True
    stored: bool = True
    back_to: tuple[str, ...] = ()
    failed: bool = True

    def __str__(self) -> str:
        missing = [] if self.numbers else ["users forget numbers"]
        missing += [] if self.stored else [f"users go back to before {' or '.join(self.back_to) or 'any step'}"]
        missing += [] if self.failed else ["failed rounds do not count"]
        return ", ".join(missing) or "all rules kept"


@dataclass(frozen=True)
class Letter:
    """One act of the adversary.

    `number` is the round, session or stamp that is begun, or how many of its states a user goes back; `received` is the
    set that the server announces, `without` are the senders whose messages it withholds, and `age` is how many newer
    messages of the same sender it passes over. With `fresh`, the users that begin have other inputs than before; those
    of `without` begin in the semi-honest profile where profiles are mixed.
    """

    kind: str
    users: tuple[int, ...]
    number: int = 0
    received: tuple[int, ...] = ()
    without: tuple[int, ...] = ()
    age: int = 0
    fresh: bool = False

    def __str__(self) -> str:
        many = "users" if len(self.users) > 1 else "user"
        parts = [f"{many} {', '.join(map(str, self.users))}: {self.kind}"]
        if self.kind in ("begin", "train", "told", "restored"):
            parts[0] += f" {self.number}"
        if self.fresh:
            parts.append("with other inputs")
        if self.received:
            parts.append(f"on {{{', '.join(map(str, self.received))}}}")
        if self.without:
            named = ", ".join(map(str, self.without))
            parts.append(f"{named} in the semi-honest profile" if self.kind == "begin" else f"without {named}")
        if self.age:
            parts.append(f"replayed, {self.age} back")
        return ", ".join(parts)


@dataclass(frozen=True)
class Story:
    """The letters that were played, in their order, and what was learned beyond the text, in words."""

    letters: tuple[Letter, ...]
    leak: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"  {at + 1}. {letter}" for at, letter in enumerate(self.letters)]
        return "\n".join([*lines, *(f"  => {what}" for what in self.leak)])


def counted(letters: Sequence[Letter]) -> dict[str, int]:
    """Return how often each kind of letter was played."""
    found: dict[str, int] = {}
    for letter in letters:
        found[letter.kind] = found.get(letter.kind, 0) + 1
    return found
