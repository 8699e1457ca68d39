"""The command ``secagg-spec reconstruct``: recovers single models from the sums of many rounds, or says why not."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec.arithmetic import numerals, validate
from secagg_spec.commands.options import Rules
from secagg_spec.conformance.adapter.plain import visible
from secagg_spec.conformance.adapter.values import writable_pictures
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.experiments.sums import LEAST_USERS, draw_log, secure_sum
from secagg_spec.extras import install
from secagg_spec.learning import digits
from secagg_spec.privacy.reconstruction import (
    Combination,
    Integers,
    combination,
    drift_bound,
    mildest,
    recovered,
    witness,
)
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.metrics import Log
from secagg_spec.simulate.narration import counted

LENGTH = 3
LARGEST = 99
MOST_USERS, MOST_ROUNDS, MOST_WORK, MOST_DRIFT = 200, 2000, 2**18, 10**6
_FEW, _TERMS, _WIDTH = 16, 8, 110
_IMAGE_OPTIONS = ("out", "net", "width", "data_dir")
_EPILOG = """Without --images users hold three whole numbers each. For each user the command says which combination of
rounds gives the server these numbers, or shows models of other users that give the same sums. With --images each
user holds an image; this needs pip install 'secagg-spec[train]', and --out needs 'secagg-spec[plot]'. The images are
those of scikit-learn, or MNIST if --data-dir or the variable SECAGG_SPEC_DATA names a folder with mnist/*.gz.

exit codes:
  0  done
  2  wrong usage, or a missing package"""


def add_parser(commands: Any) -> None:
    """Add ``reconstruct`` to the commands."""
    parser = commands.add_parser(
        "reconstruct",
        description="Play rounds of SecAgg with users selected at random, and rounds with whole batches of users.\n"
        "Recover what the sums of all rounds reveal.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--users", type=int, default=12, metavar="N", help="users (12)")
    add("--per-round", type=int, default=4, metavar="K", help="users of one round (4)")
    add("--privacy", type=int, default=2, metavar="T", help="users of a batch (2)")
    add("--rounds", type=int, default=60, metavar="J", help="rounds of each session (60)")
    add("--seed", type=int, default=0, metavar="S", help="seed of all draws (0)")
    add(
        "--drift",
        default="0",
        metavar="X",
        help="models drift by up to X in each round, a whole number; with --images, the server trains the net "
        "with the rate X (0)",
    )
    add("--images", type=int, metavar="N", help="let users hold images, and show the images of N users")
    add("--net", choices=("conv", "dense"), help="the net to train (conv)")
    add("--width", type=int, metavar="W", help="channels of conv; of dense, an eighth of the neurons (8)")
    add("--data-dir", type=Path, metavar="DIR", help="a folder with mnist/*.gz")
    add("--out", type=Path, metavar="DIR", help="write the picture of --images there, as SVG and PNG")
    parser.set_defaults(run=main, rules=Rules(needs=dict.fromkeys(_IMAGE_OPTIONS, ("images",))))


def main(options: argparse.Namespace) -> int:
    """Run the command and return exit code 0."""
    parameters = _parameters(options)
    lines = _numbers(options, parameters) if options.images is None else _images(options, parameters)
    for line in lines:
        print(line)
    return 0


def _parameters(options: argparse.Namespace) -> Parameters:
    """Return N, K and T; check every parameter that both modes share."""
    N = validate.integer("--users", options.users, LEAST_USERS, MOST_USERS)
    K = validate.integer("--per-round", options.per_round, LEAST_USERS, N)
    T = validate.integer("--privacy", options.privacy, 2, K)
    rounds = validate.integer("--rounds", options.rounds, 1, MOST_ROUNDS)
    validate.integer("--seed", options.seed, 0, 2**64 - 1)
    work = rounds * K * K
    if work > MOST_WORK:
        raise ParameterError("rounds * per-round**2", work, f"at most {MOST_WORK}; use fewer --rounds or --per-round")
    for count, option in ((K, "--per-round"), (N, "--users")):
        if divmod(count, T)[1]:
            raise ParameterError("--privacy", T, f"a divisor of {option} = {count}")
    return Parameters(N, K, T)


def _say(line: str) -> None:
    print(f"… {line}", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------------ numbers


@dataclass(frozen=True, eq=False)
class Session:
    """The users of each sum, the sums (J, d), and the models around which the users' models drift (N, d)."""

    log: Log
    sums: Integers
    models: Integers
    drift: int

    def taken(self, *users: int) -> Combination | None:
        """Return the combination that the server takes; if models drift, the one with the smallest error."""
        return mildest(self.log, *users) if self.drift else combination(self.log, *users)

    def after(self, *users: int) -> int:
        """Return after how many rounds the sum over some users can be computed; 0 if it never can."""
        found = combination(self.log, *users)
        return found[-1][0] + 1 if found else 0


def _numbers(options: argparse.Namespace, p: Parameters) -> Iterator[str]:
    drift = _whole_drift(options.drift)
    sessions = []
    for strategy, q in (("random", Parameters(p.N, p.K, 1)), ("uniform", p)):
        kind = "random selection" if strategy == "random" else "batch partitioning"
        _say(f"{counted(options.rounds, 'round')} of {kind}")
        sessions.append(_played(q, strategy, options.rounds, drift, options.seed.to_bytes(8, "little")))
    return _lines(p, *sessions)


def _whole_drift(text: str) -> int:
    drift = numerals.number("--drift", text)
    if not 0 <= drift <= MOST_DRIFT or drift.denominator != 1:
        raise ParameterError("--drift", text, f"a whole number in [0, {MOST_DRIFT}], unless --images is given")
    return int(drift)


def _played(p: Parameters, strategy: str, rounds: int, drift: int, seed: bytes) -> Session:
    """Play a session of integer models."""
    log = draw_log(p, strategy, rounds, seed)
    models = _drawn(SeededSource(seed, "models"), (p.N, LENGTH), LARGEST)
    source, sums = SeededSource(seed, f"drift {strategy}"), []
    for round, row in enumerate(log):
        moved = models + _drawn(source, (p.N, LENGTH), drift)
        sums.append(secure_sum(moved[row], seed=seed, round=round))
    return Session(log, np.stack(sums), models, drift)


def _drawn(source: SeededSource, shape: tuple[int, int], largest: int) -> Integers:
    """Draw integers of at most `largest` in magnitude."""
    drawn = draw_below(source, [2 * largest + 1] * (shape[0] * shape[1]))
    return np.array(drawn, dtype=np.int64).reshape(shape) - largest


def _lines(p: Parameters, free: Session, held: Session) -> Iterator[str]:
    rounds = f"each of {len(free.log)} rounds" if len(free.log) > 1 else "1 round"
    yield f"{p.N} users, {p.K} of them in {rounds} of SecAgg; a model is {LENGTH} whole numbers"
    yield "the server has the sum s_t of each round t, and knows its users, and nothing else"
    yield _drifting(free.drift)
    yield ""
    users = [user for user in range(p.N) if free.after(user)]
    yield f"random selection: {len(users)} of {p.N} models are recovered"
    yield from _recovered(free, users)
    yield ""
    chosen = _example(free, users) if users else int(np.argmax(held.log.any(axis=0)))
    known = [user for user in range(p.N) if held.after(user)]
    yield f"batch partitioning, T = {p.T}: {len(known)} of {p.N} models are recovered"
    yield from _hidden(p, held, chosen)


def _drifting(drift: int) -> str:
    if not drift:
        return "models do not change"
    return f"models drift: in each round, each number is off by up to {drift}"


def _example(session: Session, users: Sequence[int]) -> int:
    """Return the user that is recovered first; among equals the one that takes the fewest rounds."""
    return min(users, key=lambda user: (session.after(user), len(session.taken(user) or ())))


def _recovered(session: Session, users: Sequence[int]) -> Iterator[str]:
    """Show how models are recovered: one combination in full, and for all users when, from what and the error."""
    if not users:
        return
    chosen = _example(session, users)
    taken = session.taken(chosen)
    assert taken is not None
    yield from _wrapped(f"x_{chosen} = {formula(taken)}", "  ")
    yield f"  which is {_vector(recovered(taken, session.sums))}; user {chosen} has {_vector(session.models[chosen])}"
    yield ""
    yield "         after    from"
    yield "  user   rounds   sums   recovered as               its model             off by     at most"
    worst = [_line(session, user) for user in users]
    yield from (line for line, _ in worst[:_FEW])
    if len(users) > _FEW:
        yield f"  and {len(users) - _FEW} more"
    error = max(error for _, error in worst)
    yield f"  max |error| of {counted(len(users), 'recovered model')}: {_number(error)}{'' if error else ', exactly'}"


def _line(session: Session, user: int) -> tuple[str, Fraction]:
    """Return the line of a user's model, and its error."""
    taken = session.taken(user)
    assert taken is not None
    found = recovered(taken, session.sums)
    off = max(abs(entry) for entry in found - session.models[user])
    bound = drift_bound(session.log, taken, session.drift)
    assert off <= bound
    numbers = f"{_vector(found):24}   {_vector(session.models[user]):18}   {_number(off):>6}   {_number(bound):>9}"
    return f"  {user:4}   {session.after(user):6}   {len(taken):4}   {numbers}", off


def formula(taken: Combination) -> str:
    """Return a combination as text: integers times sums over one denominator, or the largest terms."""
    if len(taken) > _FEW:
        largest = sorted(sorted(taken, key=lambda term: -abs(term[1]))[:_TERMS])
        return f"{_terms([(at, float(number)) for at, number in largest])} and smaller ones, of {len(taken)} rounds"
    common = lcm(*(number.denominator for _, number in taken))
    terms = _terms([(at, int(number * common)) for at, number in taken])
    return terms if common == 1 else f"1/{common} ({terms})"


def _terms(taken: Sequence[tuple[int, float]]) -> str:
    """Return numbers times sums, joined by their signs."""
    written = ""
    for at, number in taken:
        sign = ("-" if number < 0 else "") if not written else (" - " if number < 0 else " + ")
        times = "" if abs(number) == 1 else f"{abs(number):.3g} "
        written += f"{sign}{times}s_{at}"
    return written


def _hidden(p: Parameters, session: Session, user: int) -> Iterator[str]:
    """Show other models that give the same sums, and the most that can be computed."""
    if not session.log[:, user].any():
        yield f"  user {user} is in none of the rounds, so the sums say nothing about it"
        return
    found = witness(session.log, user)
    assert found is not None, "batches hold"
    other = next(at for at in np.flatnonzero(found).tolist() if at != user)
    swapped = session.models.copy()
    swapped[[user, other]] = swapped[[other, user]]
    same = (session.log @ session.models == session.log @ swapped).all(axis=1).sum()
    pair = f"{min(user, other)} and {max(user, other)}"
    yield f"  no combination is x_{user}: users {pair} are in the same rounds, so if these two swap their models"
    yield f"  the sums of {same} of {len(session.log)} rounds stay as they are"
    for at in sorted((user, other)):
        yield f"    user {at:4}   {_vector(session.models[at]):18}   or else   {_vector(swapped[at])}"
    yield from _most(p, session, user)


def _most(p: Parameters, session: Session, user: int) -> Iterator[str]:
    """Show the sum over the user's batch, if it can be computed."""
    members = tuple(p.members(p.batch_of(user)))
    taken = session.taken(*members)
    name = " + ".join(f"x_{member}" for member in members)
    if taken is None:
        yield f"  not even {name} can be computed"
        return
    yield f"  the most that is learned about user {user}, after {counted(session.after(*members), 'round')}:"
    yield from _wrapped(f"{name} = {formula(taken)}", "    ")
    yield f"    which is {_vector(recovered(taken, session.sums))}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ")


def _vector(numbers: Any) -> str:
    return "(" + ", ".join(_number(Fraction(int(n) if isinstance(n, np.integer) else n)) for n in numbers) + ")"


def _number(number: Fraction) -> str:
    """Return a number as text, whole or with one decimal place."""
    return str(number) if number.denominator == 1 else f"{float(number):.1f}"


# ------------------------------------------------------------------------------------------------------- images


def _images(options: argparse.Namespace, p: Parameters) -> Iterator[str]:
    _needed(options)
    from secagg_spec.experiments import inversion, inversion_report  # noqa: PLC0415

    settings = inversion.Settings(
        p,
        options.rounds,
        validate.integer("--images", options.images, 1, p.N),
        options.seed,
        options.net or "conv",
        validate.integer("--width", 8 if options.width is None else options.width, 1, 64),
        numerals.real("--drift", options.drift),
    )
    result = inversion.run(settings, _data(options.data_dir), _say)
    yield from inversion_report.lines(result)
    if options.out is not None:
        try:
            paths = inversion_report.draw(result, options.out)
        except OSError as error:
            raise UsageError(f"--out {options.out}: {error.strerror}") from None
        yield f"\nthe picture is in {visible(' and '.join(map(str, paths)))}"


def _needed(options: argparse.Namespace) -> None:
    """Refuse parameters that would fail later, before anything runs."""
    for name in ("torch", "sklearn", *(("matplotlib",) if options.out is not None else ())):
        if find_spec(name) is None:
            raise UsageError(f"{name} is not installed: {install(name)}")
    if options.out is not None:
        writable_pictures("--out", options.out, "reconstruction")
    if not 0 <= numerals.real("--drift", options.drift) <= 100:
        raise ParameterError("--drift", options.drift, "a rate in [0, 100]")


def _data(folder: Path | None) -> digits.Digits:
    """Return MNIST if a named folder has it, else the images of scikit-learn."""
    if folder is not None:
        return digits.mnist(folder)
    named = os.environ.get("SECAGG_SPEC_DATA")
    if named and digits.holds_mnist(Path(named)):
        return digits.mnist(Path(named))
    return digits.bundled()
