"""``secagg-spec simulate basecagg``: buffered asynchronous training with BASecAgg, next to plain FedBuff."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec import documents, system
from secagg_spec.arithmetic import numerals, validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.staleness import Staleness, read
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.errors import OutOfRange, ParameterError, UsageError
from secagg_spec.events import DOWNLOAD, TIMEOUT, UPLOAD, Event, Schedule, from_csv, to_csv
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg.cores import CoreRun
from secagg_spec.protocols.basecagg.round import Parameters
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.lightsecagg.active import PrivateKeys
from secagg_spec.simulate.asynchronous import Training
from secagg_spec.simulate.buffered import Arrival, ByCores, ByMessages, Engine, Report, Simulation
from secagg_spec.simulate.inputs import colluders, refuse_large, seed_bytes
from secagg_spec.simulate.narration import counted, shown, users_in_words
from secagg_spec.terminal import Progress, painted

MOST_MESSAGES = 50_000
MOST_ROUNDS = 100_000
_SHOWN = 12
_ROOM = 40
_START = 3.0
_MOST_RATE = 1000


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add = parser.add_argument
    add("--buffer", type=int, default=5, metavar="K", help="updates in a buffer (5)")
    add("--rounds", type=int, default=6, metavar="n", help="buffers to recover (6)")
    add("--max-staleness", type=int, default=10, metavar="tau_max", help="the largest accepted staleness (10)")
    add(
        "--staleness",
        default="polynomial:1",
        metavar="FUNCTION",
        help="constant, polynomial:ALPHA or hinge:A,B, ALPHA and A as 0.5 or 1/3, B whole (polynomial:1)",
    )
    add("--weight-level", type=int, default=64, metavar="c_g", help="level of the weights (64)")
    add("--update-level", type=int, default=2**16, metavar="c_l", help="level of the updates (2**16)")
    add("--learning-rate", default="1", metavar="ETA", help="learning rate of the server, at most 1000 (1)")
    add("--colluders", type=int, metavar="T", help="users that may collude (N // 4, at least 1, at most K - 2)")
    away = "users that are away when a buffer is recovered (N // 4, or fewer if T leaves fewer)"
    add("--dropouts", type=int, metavar="D", help=away)
    add("--answers", type=int, metavar="U", help="number of answers needed (N - D)")
    add(
        "--signatures",
        type=int,
        metavar="W",
        help="active profile: signatures that a user demands (the smallest safe number)",
    )
    add("--modulus", type=int, default=2**32 - 5, metavar="q", help="the field's prime (2**32 - 5)")
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="replay the downloads, uploads and timeouts of a CSV file: time,kind,user",
    )
    add("--write-log", type=Path, metavar="FILE", help="write the events of the run to such a file")
    add(
        "--by",
        choices=["messages", "cores"],
        help="exchange and seal all messages, or run only the pure cores (messages, unless there would be many)",
    )


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: every model was that of plain FedBuff; 1: some model was not, or there was none."""
    rounds = validate.integer("rounds", options.rounds, 1, MOST_ROUNDS)
    parameters, seed = _parameters(options), seed_bytes(options.seed)
    yardstick = _yardstick(parameters, _rate(options.learning_rate))
    training = Training.draw(SeededSource(seed, "training"), parameters.N, parameters.d)
    by = _by(options, parameters, rounds)
    log = _read_log(options.log, parameters.N)
    print(_heading(parameters, log is not None, by))
    engine, server = _engine(parameters, seed, by), SeededSource(seed, "server")
    progress = Progress()

    def follow(what: str, filled: int, answered: float) -> None:
        """Show what happens, and which share of all events is over; a recovery counts as much as K of them."""
        done = len(run.done) + parameters.K * (run.round + answered)
        left = parameters.K * (3 * (rounds - run.round) - answered) - 2 * filled
        progress(f"round {run.round}: {what}, {filled} of {parameters.K} in the buffer", done / (done + left))

    run = Simulation(parameters, engine, training, yardstick, server, log, follow)
    shown = set(range(rounds)) if rounds <= _SHOWN else {0, 1, rounds - 1}
    for number in range(rounds):
        try:
            report = run.next_round()
        except OutOfRange as error:
            rate = f"--learning-rate ({options.learning_rate}), " * bool(number)  # no model has changed in round 0
            levels = f"--update-level ({parameters.c_l}), --weight-level ({parameters.c_g})"
            larger = ", or a larger --modulus" * (parameters.q < DEFAULT_PRIME)
            smaller = f"{rate}{levels} or --buffer ({parameters.K}){larger}"
            raise UsageError(f"an update of round {number} is too large: {error}; take a smaller {smaller}") from None
        finally:
            progress.end()
        if report is None:
            print("\n".join([f"\nround {number}", *_arrivals(parameters, run.waiting, {})]))
            print(f"  the log ends in round {number}, before the buffer is full")
            break
        if number in shown:
            print(_lines(parameters, report))
        elif number % max(1, rounds // 10) == 0:
            print(f"\nround {number}, at {report.time:.2f}: distance to the best model {report.distance:.4f}")
        if report.equal != parameters.d:
            print(f"\nround {number}: {_comparison(parameters, report)}\nthis is a fault of the reference")
            return 1
    print(_summary(parameters, run, rounds))
    if options.write_log is not None:
        _write_log(options.write_log, parameters.N, run.done)
    return 0 if run.round else 1


# ----------------------------------------------------------------------------------------------- settings


def _parameters(options: argparse.Namespace) -> Parameters:
    N = validate.integer("users", options.users, 3, 2**16)
    K = validate.integer("buffer", options.buffer, 3, N)
    T = colluders(options.colluders, min(max(1, N // 4), K - 2), K - 2)
    active = options.profile == "active"
    most = N - (N + T) // 2 - 1 if active else N - T - 1
    D = (
        max(0, min(N // 4, most))
        if options.dropouts is None
        else validate.integer("dropouts", options.dropouts, 0, most)
    )
    U = N - D if options.answers is None else options.answers
    if options.answers is not None:
        U = validate.integer("answers", U, T + 1, N - D)
    numbers = {"q": options.modulus, "N": N, "D": D, "U": U, "T": T, "d": options.length, "K": K}
    levels = {"c_l": options.update_level, "c_g": options.weight_level, "tau_max": options.max_staleness}
    refuse_large("users * users + users * length", N * N + N * validate.integer("length", options.length, 1))
    parameters = Parameters(**numbers, **levels, staleness=read("--staleness", options.staleness))
    if active:
        fewest = max((N + T) // 2 + 1, U)
        return basecagg_active.with_signatures(parameters, fewest if options.signatures is None else options.signatures)
    if options.signatures is not None:
        raise ParameterError("signatures", options.signatures, "left out, but with --profile active")
    return parameters


def _read_log(path: Path | None, N: int) -> Schedule | None:
    """Return the events of a log; None without one."""
    if path is None:
        return None
    try:
        text = documents.read_text(path)
    except (OSError, documents.NotText) as error:
        why = error.strerror if isinstance(error, OSError) else f"it {error}"
        raise ParameterError("--log", str(path), f"a file that can be read: {why}") from None
    return from_csv(text, N, name=f"--log {path.name}", kinds=(DOWNLOAD, UPLOAD, TIMEOUT))


def _write_log(path: Path, N: int, events: Sequence[Event]) -> None:
    try:
        system.write_whole(path, to_csv(Schedule(N, tuple(events))))
    except OSError as error:
        raise ParameterError("--write-log", str(path), f"a file that can be written: {error.strerror}") from error
    print(f"{len(events)} events written to {path}")


def _yardstick(p: Parameters, eta_g: float) -> fedbuff.ServerState:
    numbers = {"N": p.N, "d": p.d, "K": p.K, "tau_max": p.tau_max, "c_g": p.c_g, "c_l": p.c_l}
    return fedbuff.start(fedbuff.Parameters(**numbers, eta_g=eta_g, staleness=p.staleness), np.full(p.d, _START))


def _rate(text: str) -> float:
    """Parse the learning rate; with a larger one no update of the next rounds could be quantised."""
    rate = numerals.real("--learning-rate", text)
    if not 0 < rate <= _MOST_RATE:
        raise ParameterError("--learning-rate", text, f"above 0 and at most {_MOST_RATE}")
    return rate


def _by(options: argparse.Namespace, p: Parameters, rounds: int) -> str:
    """Return the way to run: the one that was asked for, else messages unless they would take too long."""
    active, many = options.profile == "active", (rounds * p.K + p.N) * 2 * p.N > MOST_MESSAGES
    if active and options.by == "cores":
        raise ParameterError("--by", "cores", "messages in the active profile, which signs them")
    if options.by is None:
        return "cores" if many and not active else "messages"
    return str(options.by)


def _engine(p: Parameters, seed: bytes, by: str) -> Engine:
    source = SeededSource(seed, "masks")
    if by == "cores":
        return ByCores(CoreRun(p), source)
    privates = {user: SeededSource(seed, f"key of user {user}").take(KEY_BYTES) for user in range(p.N)}
    if isinstance(p, basecagg_active.Parameters):
        signing = {user: SeededSource(seed, f"signing key of user {user}").take(KEY_BYTES) for user in range(p.N)}
        keys = {user: PrivateKeys(privates[user], signing[user]) for user in range(p.N)}
        return ByMessages(
            basecagg_active.open_session(p, keys=keys, session=bytes(16), round=0),
            basecagg_active.user_trained,
            source,
            p,
        )
    channels = basecagg_runs.sealed_channels(basecagg.sealing_context(p, bytes(16)), privates)
    return ByMessages(
        basecagg_runs.open_session(p, channels=channels, session=bytes(16), round=0), basecagg.user_trained, source, p
    )


# ------------------------------------------------------------------------------------------------- printed text


def _origin(logged: bool) -> str:
    return "arrivals are from the log, absences" if logged else "slow, late and absent users are"


def _heading(p: Parameters, logged: bool, by: str) -> str:
    lines = [
        f"BASecAgg: N = {p.N} users, K = {p.K} updates in a buffer, U = {p.U} answers needed, T = {p.T} may collude",
        f"q = {p.q}, updates of d = {p.d} elements, each up to {p.budget / p.c_l:.6g}; shares of L = {p.share_length}",
        f"updates at level c_l = {p.c_l}, weights at level c_g = {p.c_g}",
        f"staleness weight {_function(p.staleness)}, staleness up to tau_max = {p.tau_max}",
        f"each user pulls the model towards its own point; {_origin(logged)} from the seed",
    ]
    if by == "cores":
        lines.append("run by the pure cores alone, equal bit for bit; --by messages exchanges and seals all messages")
    else:
        lines.append("channel: sealed (X25519, HKDF-SHA256, ChaCha20-Poly1305); keys, masks and inputs from the seed")
    if isinstance(p, basecagg_active.Parameters):
        lines.append(f"active profile: nobody answers before W = {p.W} users have signed the buffer (Ed25519)")
    return "\n".join(lines)


def _function(s: Staleness) -> str:
    fraction = f"{s.numerator}/{s.denominator}" if s.denominator > 1 else str(s.numerator)
    words: Mapping[str, str] = {
        "constant": "s(tau) = 1",
        "polynomial": f"s(tau) = (1 + tau)^-{fraction}",
        "hinge": f"s(tau) = 1 up to {s.start}, then 1 / ({fraction} (tau - {s.start}) + 1)",
    }
    return words[s.kind]


def _lines(p: Parameters, report: Report) -> str:
    """Describe a round: the buffer as it fills, the recovery, and the step of the model."""
    weights = {entry.user: entry.weight for entry in report.recovered.entries}
    arrivals = _arrivals(p, report.arrivals, weights)
    return "\n".join([f"\nround {report.recovered.round}", *arrivals, *_recovery(p, report)])


def _arrivals(p: Parameters, arrivals: Sequence[Arrival], weights: Mapping[int, int]) -> list[str]:
    """Describe the uploads at the server; their weights are known once the buffer is closed."""
    lines, filled = ["     time   user  stamp  staleness  weight  buffer"], 0
    for one in arrivals:
        filled += not one.refused
        room = f"{'#' * filled}{'.' * (p.K - filled)}" if p.K <= _ROOM else f"{filled} of {p.K}"
        stamp, tau = ("-" if number is None else str(number) for number in (one.stamp, one.staleness))
        weight = "-" if one.refused or not weights else str(weights[one.user])
        lines.append(f"  {one.time:7.3f}  {one.user:5}  {stamp:>5}  {tau:>9}  {weight:>6}  {one.refused or room}")
    return lines


def _recovery(p: Parameters, report: Report) -> list[str]:
    """Describe the recovery of a full buffer."""
    done = report.recovered
    weights = [entry.weight for entry in done.entries]
    away = users_in_words(report.away) if len(report.away) <= _SHOWN else f"{len(report.away)} users"
    apart = float(np.abs(done.average - report.real).max())
    return [
        f"  recovery: {p.N - len(report.away)} users answer, {away} away; U = {p.U} are needed",
        f"  weighted sum modulo q:    {shown(done.sum)}",
        f"  over c_l times {sum(weights)}:       {shown(done.average)}",
        f"  of the real updates:      {shown(report.real)}, at most {apart:.2g} apart (1/c_l = {1 / p.c_l:.2g})",
        f"  model of round {done.round + 1}:         {shown(report.model)}",
        f"  {_comparison(p, report)}",
    ]


def _comparison(p: Parameters, report: Report) -> str:
    """Say in how many elements the model equals that of plain FedBuff."""
    return (
        f"plain FedBuff with the same quantised weights has this model: {report.equal} of {p.d} elements, bit for bit"
    )


def _summary(p: Parameters, run: Simulation, rounds: int) -> str:
    ages = ", ".join(f"{tau}: {run.staleness[tau]}" for tau in sorted(run.staleness))
    lines = [
        f"\n{counted(run.round, 'round')}, {counted(run.staleness.total(), 'update')} taken, {run.late} too late",
        f"updates by staleness: {ages or 'none'}",
        f"distance to the best model: {run.first:.4f} at first, {run.distance:.4f} in the end",
    ]
    if isinstance(run.engine, ByMessages):
        lines += _traffic(p, run.engine)
    if run.round < rounds:
        lines += [
            "",
            f"the log has the events of {run.round} of {counted(rounds, 'round')}, and the others did not happen",
        ]
    if not run.round:
        lines += ["", painted("No round has a sum.", "bad")]
    else:
        said = f"In {counted(run.round, 'round')} the server had the weighted sum of {counted(p.K, 'update')}"
        right = "every model was that of plain FedBuff with the same quantised updates and weights, bit for bit"
        lines += ["", painted(f"{said}, and it was right: {right}.", "good")]
        lines.append("What the server and colluders learn beyond it: secagg-spec privacy basecagg")
    return "\n".join(lines)


def _traffic(p: Parameters, engine: ByMessages) -> list[str]:
    lines = [
        f"  {kind}: {counted(count, 'message')}, {engine.sent_bytes[kind]:,} bytes"
        for kind, count in engine.sent.items()
    ]
    return [*lines, f"a user held {engine.held} shares at most, and may hold N = {p.N}"]
