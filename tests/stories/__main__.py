"""Tells stories and prints one table: ``python -m tests.stories [--stories 10000] [--seed 1] [--holes]``.

The exit code is 1 when something was learned beyond the text; with ``--holes``, where each world lacks a repair, when a
hole was not found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from secagg_spec.commands.options import jobs
from secagg_spec.conformance.adapter.values import count
from tests.stories.catalogue import FORGETFUL, HOLES, WORLDS
from tests.stories.engine import Tally, played, shortest
from tests.stories.letters import Rules

WITHIN = 500
TOLD = (*((chosen, Rules()) for chosen in WORLDS), *FORGETFUL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.stories", description=__doc__)
    parser.add_argument("--stories", type=partial(count, what="stories"), default=1000, help="how many in each world")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=jobs, default=2, help="how many processes")
    parser.add_argument("--holes", action="store_true", help=f"find each hole within {WITHIN} stories")
    options = parser.parse_args(arguments)
    todo = range(len(HOLES if options.holes else TOLD))
    act = hole if options.holes else world
    failed = False
    with ProcessPoolExecutor(options.jobs) as pool:
        for text, wrong in pool.map(act, todo, [options.stories] * len(todo), [options.seed] * len(todo)):
            print(text, flush=True)
            failed |= wrong
    return int(failed)


def world(at: int, stories: int, seed: int) -> tuple[str, bool]:
    """Return what stories of a world give with all rules kept, in words, and whether anything was learned."""
    (chosen, rules), began = TOLD[at], time.monotonic()
    tally = played(chosen, rules, stories, seed)
    letters = ", ".join(f"{kind} {times}" for kind, times in sorted(tally.letters.items()))
    text = f"{chosen.name}, {chosen.profile} ({chosen.numbers}), {rules}: {tally.stories} stories, {letters}: "
    if tally.first is None:
        return f"{text}nothing beyond the text ({time.monotonic() - began:.0f} s)", False
    return f"{text}{tally.leaks} LEAK, the first at {tally.at}\n{shortest(chosen, rules, tally.first.letters)}", True


def hole(at: int, stories: int, seed: int) -> tuple[str, bool]:
    """Return after how many stories a hole was found, with the shortest story, and whether it was missed."""
    chosen = HOLES[at]
    head = f"{chosen.world.name}, {chosen.world.profile} ({chosen.world.numbers}): {chosen.name}: "
    with chosen.planted():
        tally: Tally = played(chosen.world, chosen.rules, WITHIN, seed, until_leak=True)
        if tally.first is None:
            return f"{head}NOT found in {tally.stories} stories", True
        story = shortest(chosen.world, chosen.rules, tally.first.letters)
    return f"{head}found at story {tally.at}\n{story}", False


if __name__ == "__main__":
    sys.exit(main())
