"""Honest rounds of each protocol as lines of a trace, and ways to change the lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS, pack_reals
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.sealing import SealedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols import codec
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters as HeteroParameters
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Network, Role, run_synchronous
from secagg_spec.traces import files, rounds
from secagg_spec.traces.files import Head, Recorder, Sent
from secagg_spec.traces.learned import Learned, Seen
from secagg_spec.traces.recorded import write
from secagg_spec.traces.rounds import Finding, Round

Line = dict[str, Any]
SESSION, NUMBER = bytes(range(16)), 3
PARAMETERS: Mapping[str, Any] = {
    "secagg": secagg.Parameters(R=2**32, N=5, D=2, T=1, t=3, k=4, d=3),
    "secagg+": secagg.Parameters(R=100, N=7, D=3, T=1, t=2, k=4, d=2),
    "secagg-active": secagg_active.Parameters(R=2**32, N=5, D=1, T=1, t=4, k=4, d=3),
    "lightsecagg": lightsecagg.Parameters(q=2**31 - 1, N=5, D=2, U=3, T=1, d=5),
    "lightsecagg-active": lightsecagg_active.Parameters(q=2**31 - 1, N=5, D=1, U=3, T=1, d=4, W=4),
    "heterosag": HeteroParameters(7, 1, 1, 3, 2, (4, 3), (1, 1), (2, 3), Range(-1.0, 1.0)),
}
COMPLETE = tuple(name for name in PARAMETERS if name != "secagg+")
ORDER = (3, 0, 6, 1, 5, 2, 4)


class Recorded:
    """A round: its lines, its network, and all that its users keep secret."""

    def __init__(
        self, name: str, lines: tuple[Line, ...], network: Network, secrets: Mapping[str, bytes], ended: bool
    ) -> None:
        self.name, self.lines, self.network, self.secrets, self.ended = name, lines, network, secrets, ended

    def __repr__(self) -> str:
        return f"a round of {self.name} in {len(self.lines)} lines"

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of the users."""
        return tuple(dict.fromkeys(step.phase for step in self.network.table if step.role is Role.USER))

    def decoded(self, line: Line) -> codec.Message:
        """The message of a line."""
        return decoded(self.network, bytes.fromhex(line["message"]))


def decoded(network: Network, data: bytes) -> codec.Message:
    """The message that bytes hold."""
    kinds = {kind.TYPE: kind for step in network.table for kind in (*step.receives, *step.sends)}
    return codec.decode(kinds[int.from_bytes(data[:2], "little")], data)


def changed(recorded: Recorded, line: Line, **values: Any) -> Line:
    """A line whose message has other values."""
    return {**line, "message": codec.encode(replace(recorded.decoded(line), **values)).hex()}


def run(name: str, dropouts: Mapping[str, Collection[int]] = {}, seed: bytes = b"trace") -> Recorded:
    """Run a round, and record it."""
    return _run(name, tuple((phase, tuple(sorted(users))) for phase, users in dropouts.items()), seed)


@cache
def _run(name: str, dropouts: tuple[tuple[str, tuple[int, ...]], ...], seed: bytes) -> Recorded:
    p = PARAMETERS[name]
    users = range(p.N)
    sources = {user: SeededSource(seed, f"user {user}") for user in users}
    private = {user: SeededSource(seed, f"keys {user}") for user in users}
    sealing, signing = ({user: private[user].take(32) for user in users} for _ in range(2))
    roster = tuple(public_key(sealing[user]) for user in users)
    setup: dict[str, Any] = {
        "order": ORDER if name == "secagg+" else tuple(users),
        "roster": roster,
        "verification": tuple(verification_key(signing[user]) for user in users),
        "past": (),
    }
    light = name.startswith("light")
    module = {"secagg+": secagg}.get(name) or MODULES[name]
    ring = p.field if light else Ring(2) if name == "heterosag" else p.ring
    updates = draw_elements(SeededSource(seed, "updates"), ring, (p.N, p.d))
    given = {
        "secagg+": {"order": setup["order"]},
        "secagg-active": {"signing": signing},
        "lightsecagg-active": {
            "keys": {user: lightsecagg_active.PrivateKeys(sealing[user], signing[user]) for user in users}
        },
    }.get(name, {})
    network = module.open_round(p, updates, session=SESSION, round=NUMBER, **given)
    if name == "lightsecagg":
        context = lightsecagg.sealing_context(p, SESSION, NUMBER)
        for user in users:
            channel = SealedChannel(context, sealing[user], Roster(roster))
            network.states[user] = replace(network.states[user], channel=channel)
    drawn = (lightsecagg if light else secagg).draw_randomness(p, sources)
    ended = False
    try:
        run_synchronous(network, {phase: chosen for phase, chosen in dropouts if chosen}, drawn)
    except TooFewSurvivors:
        ended = True
    numbers = {each: getattr(p, each) for each in NUMBERS[name.rstrip("+")] if each != "range"}
    if name == "heterosag":
        numbers["range"] = pack_reals([-1.0, 1.0])
        numbers["matrix"] = p.matrix
    head = Head.of(name.rstrip("+"), numbers, setup, SESSION, NUMBER)
    secrets = {
        f"{what} of {user}": key[user] for what, key in (("sealing", sealing), ("signing", signing)) for user in users
    }
    secrets |= {
        f"{what} of {user}": value if isinstance(value, bytes) else np.asarray(value).astype("<u4").tobytes()
        for user, values in drawn.items()
        for what, value in values.items()
        if not what.endswith("coefficients")
    }
    secrets |= {f"input of {user}": updates[user].astype("<u4").tobytes() for user in users}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        recorder = Recorder(path)
        write(recorder, head, network.table, network.transcript)
        recorder.close()
        lines = tuple(json.loads(line) for line in path.read_text(encoding="ascii").splitlines())
    return Recorded(name, lines, network, secrets, ended)


MODULES = {
    "secagg": secagg,
    "secagg-active": secagg_active,
    "lightsecagg": lightsecagg,
    "lightsecagg-active": lightsecagg_active,
    "heterosag": heterosag,
}


def entries(lines: Collection[Line]) -> list[Head | files.Entry]:
    """The lines of a trace as a reader has them."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
        return list(files.read(path, rounds.PROTOCOLS))


def checked(lines: Collection[Line]) -> list[Round]:
    """The rounds of a trace."""
    return list(rounds.check(entries(lines)))


def only(lines: Collection[Line]) -> Round:
    """The only round of a trace."""
    (found,) = checked(lines)
    return found


def finding(lines: Collection[Line]) -> Finding:
    """The finding of the only round of a trace."""
    found = only(lines).finding
    assert found is not None
    return found


def learned(lines: Collection[Line], coalition: Collection[int] = ()) -> Learned:
    """What the server of the only round of a trace learned, with a coalition."""
    head, *rest = entries(lines)
    assert isinstance(head, Head)
    seen = Seen(Round(head))
    for entry in rest:
        assert not isinstance(entry, Head)
        seen.round.take(entry)
        if isinstance(entry, Sent):
            seen.take(entry)
    found = seen.learned(coalition)
    assert found is not None
    return found


@st.composite
def recorded(draw: st.DrawFn, names: Collection[str] = tuple(PARAMETERS), most: int = 3) -> Recorded:
    """Honest rounds, in which users may drop out before any phase."""
    name = draw(st.sampled_from(sorted(names)))
    phases = run(name).phases
    dropouts: dict[str, list[int]] = {}
    for user in draw(st.lists(st.integers(0, PARAMETERS[name].N - 1), max_size=most, unique=True)):
        dropouts.setdefault(draw(st.sampled_from(phases)), []).append(user)
    return run(name, dropouts, draw(st.sampled_from((b"1", b"2"))))


def places(lines: Sequence[Line], *members: str) -> list[int]:
    """The places of lines with some of these members."""
    return [at for at, line in enumerate(lines) if any(member in line for member in members)]
