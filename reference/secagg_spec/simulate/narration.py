"""Prints a round: who sends what to whom in each step, and what the server learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import (
    AUTHORITY,
    SERVER,
    Event,
    Network,
    Randomness,
    Role,
    Step,
    run_synchronous,
    sizes,
)
from secagg_spec.terminal import Progress, painted

_SKIPPED = {"parameters", "session", "round", "phase", "ballot", "roster", "signatures"}
_NAMES = {"past": "remembered requests"}
"""States with another name in the printed text."""


class Conclusion(Protocol):
    """Knows whether a sum is right."""

    def compared(self, chosen: Sequence[int], aggregate: UintArray) -> str:
        """Say what was summed, once the sum was found to be right in all elements."""
        ...


def play(
    network: Network,
    dropouts: Mapping[str, Sequence[int]],
    randomness: Mapping[int, Randomness],
    inputs: Conclusion,
    result: Callable[[Any], tuple[Sequence[int], UintArray]],
    protocol: str,
    opened: Callable[[Any], str] | None = None,
) -> int:
    """Run a round and print it; `result` reads contributors and sum from the server's state, `opened` adds a line.

    The last lines say in plain words what came out. Return 0 when the round gave the right sum, 1 when too few users
    were left.
    """
    ended = ""
    try:
        run_synchronous(network, dropouts, randomness, followed)
    except TooFewSurvivors as failed:
        ended = str(failed)
    for line in narrate(network.transcript, len(network.states) - 1):
        print(line)
    lost = [user for users in dropouts.values() for user in users]
    if ended:
        print(failed_round(ended, lost))
        return 1
    server = network.states[SERVER]
    print(f"  {opened(server)}" if opened else "", end="\n" if opened else "")
    chosen, aggregate = result(server)
    print(f"\n{inputs.compared(chosen, aggregate)}\n")
    elements = f"{len(aggregate)} of {len(aggregate)} elements equal the plain sum"
    print(
        "\n".join(ended_well(lost, f"the sum of {counted(len(chosen), 'user')}, and it is right: {elements}", protocol))
    )
    return 0


def followed(step: Step[Any], users: Sequence[int]) -> Iterator[int]:
    """Yield the users of a row; on a terminal, show how far the row is, and how long it may take."""
    return Progress().follow(users, lambda user: f"{step.phase}: user {user}, of {len(users):,}")


def ended_well(lost: Sequence[int], has: str, protocol: str) -> list[str]:
    """Return the last lines of a run: who dropped out, what the server has, and what to do next."""
    return [
        painted(f"{gone(lost)}; the server has {has}.", "good"),
        f"What the server and colluders learn beyond it: secagg-spec privacy {protocol}",
    ]


def failed_round(why: str, lost: Sequence[int], what: str = "a sum") -> str:
    """Return the last lines of a round that failed."""
    said = painted(f"{gone(lost)}; the round ends without {what}: {why}.", "bad")
    return f"\n{said}\nWith fewer dropouts, or other parameters (--help), it can end well."


def gone(lost: Sequence[int]) -> str:
    """Say who dropped out, as the beginning of a sentence."""
    return f"{users_in_words(lost).capitalize()} dropped out"


def narrate(transcript: Sequence[Event], N: int) -> Iterator[str]:
    """Describe a transcript: who sends what to whom in each step, how many bytes, and what the server learns."""
    shown: dict[str, str] = {}
    for step in dict.fromkeys(event.step for event in transcript):
        events = [event for event in transcript if event.step is step]
        yield f"\n{step.phase}: {'each user' if step.role is Role.USER else 'the server'}"
        silent = set(range(N)) - {event.party for event in events}
        if step.role is Role.USER and silent:
            yield f"  absent: {users_in_words(sorted(silent))}"
        yield from _sent(events)
        if step.role is Role.SERVER:
            known = dict(_known(events[-1].state))
            yield from (
                f"  the server now has {name}: {value}" for name, value in known.items() if shown.get(name) != value
            )
            shown = known


def traffic(transcript: Sequence[Event]) -> list[str]:
    """Return the traffic by kind of message."""
    sent: dict[str, list[int]] = {}
    for event in transcript:
        for message in event.sent:
            sent.setdefault(type(message).__name__, []).append(sizes([message]))
    return [f"  {kind}: {counted(len(each), 'message')}, {sum(each):,} bytes" for kind, each in sent.items()]


def _sent(events: Sequence[Event]) -> Iterator[str]:
    kinds = Counter(type(message).__name__ for event in events for message in event.sent)
    for kind, count in kinds.items():
        messages = [m for event in events for m in event.sent if type(m).__name__ == kind]
        routes = f"{_parties(m.sender for m in messages)} -> {_parties(m.receiver for m in messages)}"
        yield f"  {kind}: {counted(count, 'message')}, {routes}, {sizes(messages):,} bytes"
        yield f"    e.g. {message_in_words(messages[0])}"


def _known(state: Any) -> Iterator[tuple[str, str]]:
    """Yield what a state holds, by name, as text."""
    assert is_dataclass(state)
    for entry in fields(state):
        value = getattr(state, entry.name)
        if entry.name == "base":
            yield from _known(value)
        elif entry.name not in _SKIPPED and value is not None and len(value):
            yield _named(_NAMES.get(entry.name, entry.name.replace("_", " ")), value)


def _named(name: str, value: Any) -> tuple[str, str]:
    """Return the name and the text for what a state holds: users, one vector or several, or anything else."""
    if not isinstance(value, tuple):
        return name, shown(value)
    if isinstance(value[0], int):
        return name, users_in_words(value)
    first = shown(getattr(value[0], "total", value[0]))
    return (name.removesuffix("s"), first) if len(value) == 1 else (name, f"{len(value)} of them, the first is {first}")


def message_in_words(message: Message) -> str:
    """Return sender, receiver and content of a message, shortened."""
    header = ("session", "round", "sender", "receiver")
    parts = [f"{f.name} = {_field(getattr(message, f.name))}" for f in fields(message) if f.name not in header]
    way = f"{_party(message.sender)} -> {_party(message.receiver)}"
    return f"{way}: {', '.join(parts)}" if parts else way


def _field(value: Any) -> str:
    return (users_in_words(value) if value else "none") if isinstance(value, tuple) else shown(value)


def shown(value: Any, most: int = 6) -> str:
    """Return bytes, a vector or users in a short form."""
    if isinstance(value, Mapping):
        return f"those of {users_in_words(list(value))}"
    if isinstance(value, frozenset):
        return users_in_words(sorted(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:12].hex()}…"
    numbers = [f"{x:z.4f}" if isinstance(x, float) else str(x) for x in np.asarray(value).tolist()[:most]]
    return "(" + ", ".join(numbers) + (", …" if len(value) > most else "") + ")"


def _party(party: int) -> str:
    return {SERVER: "server", AUTHORITY: "authority"}.get(party, f"user {party}")


def _parties(parties: Any) -> str:
    distinct = sorted(set(parties))
    return "server" if distinct == [SERVER] else users_in_words(distinct)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 box``, ``2 boxes``; ``many`` defaults to ``one`` plus an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def users_in_words(users: Sequence[int]) -> str:
    """Return users as text, with runs joined: ``users 0 to 3, 5``; two alone are ``users 0 and 1``."""
    ordered, runs = sorted(users), list[list[int]]()
    for user in ordered:
        if runs and user == runs[-1][-1] + 1:
            runs[-1].append(user)
        else:
            runs.append([user])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    listed = " and ".join(map(str, ordered)) if len(ordered) == 2 else ", ".join(words)
    return ("user " if len(ordered) == 1 else "users ") + listed if words else "nobody"
