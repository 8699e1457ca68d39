"""Runs a SuperLink and six SuperNodes on the loopback, and kills one node in each phase in turn.

    python -m tests.engine.deployment [PROTOCOL ...] [--rounds ROUNDS]

The node is killed before its step of the phase, and in another run after it, before its reply left. Each round must
end, with the right sum of those that the text names, and have its line in one participation log of all runs. A node
that is started again has no key of its own, and so another node id.

With ``--rounds``, nodes are killed at random moments of so many rounds of each protocol, and started again: each round
must end with the right sum of those in it, or without one where fewer than the threshold are left in some phase. The
processes that nodes start for messages are copies then, of one that has imported everything (`tests.engine.forks`).
All processes are children of this one, and are ended by their numbers.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from secagg_spec.flower.client import JOIN
from secagg_spec.flower.kinds import KINDS, Kind
from tests.engine import forks

APP = Path(__file__).with_name("app")
NODES, VICTIM = 6, 2
THRESHOLD = {"secaggplus": 3, "secagg": 4, "secagg-active": 4, "lightsecagg": 4, "lightsecagg-active": 4}
HOLDERS = 5
"""Of a secret in SecAgg+, itself included; in the other protocols, all users."""
PATIENCE = 240.0
WAIT = 45.0
"""Seconds that a phase waits when nodes are killed at random, and all protocols run at a time."""


def kind(protocol: str) -> Kind:
    """The protocol inside Flower."""
    return KINDS[protocol.removesuffix("plus")]


def phases(protocol: str) -> tuple[str, ...]:
    """The phases in which a node takes a step."""
    return (*((JOIN,) if kind(protocol).joining else ()), *kind(protocol).phases)


def free_port() -> int:
    """Return a port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Deployment:
    """A SuperLink, its SuperNodes, and the command line; `copied` if the processes of messages are copies."""

    def __init__(self, folder: Path, copied: bool) -> None:
        self.folder, self.port = folder, free_port()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "FLWR_HOME": str(folder / "flwr"),
            "SECAGG_SPEC_HOME": str(folder / "home"),
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        for name in ("flwr", "pids"):
            (folder / name).mkdir()
        address = f"127.0.0.1:{self.port}"
        config = f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\naddress = "{address}"\ninsecure = true\n'
        (folder / "flwr" / "config.toml").write_text(config, encoding="utf-8")
        self.children: list[subprocess.Popen[bytes]] = []
        if copied:
            forks.install(folder / "commands", folder / "copies")
            self._start("copies", sys.executable, "-m", forks.__name__, str(folder / "copies"))
            self.environment["PATH"] = f"{folder / 'commands'}{os.pathsep}{self.environment['PATH']}"
        plain = ["--insecure", "--host", "127.0.0.1"]
        no_packages = "--disable-runtime-dependency-installation"
        self._start("link", "flower-superlink", *plain, "--port", str(self.port), no_packages)
        self._wait_for_port()
        self.nodes = {number: self._node(number) for number in range(NODES)}

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.children.append(child)
        return child

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise TimeoutError(f"the SuperLink does not listen: {(self.folder / 'link.log').read_text()[-2000:]}")

    def _node(self, number: int) -> subprocess.Popen[bytes]:
        config = f'number={number} pids="{self.folder / "pids"}"'
        where = ["--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1", "--port", str(free_port())]
        child = self._start(f"node{number}", "flower-supernode", "--insecure", *where, "--node-config", config)
        (self.folder / "pids" / str(number)).write_text(str(child.pid), encoding="ascii")
        return child

    def replace_dead(self) -> list[int]:
        """Start the nodes again that are dead, and return their numbers."""
        dead = [number for number, child in self.nodes.items() if child.poll() is not None]
        for number in dead:
            self.nodes[number] = self._node(number)
        return dead

    def run(self, config: str, patience: float = PATIENCE, tell: Callable[[str], None] = lambda line: None) -> str:
        """Start a run, wait for its end, and return what it printed; `tell` gets each line about a round at once."""
        command = ["flwr", "run", str(APP), "--stream", "--run-config", config]
        with subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            over = threading.Timer(patience, running.kill)
            over.start()
            said = ""
            for line in running.stdout or ():
                said += line
                for found in re.findall(r"KILLED (.*)", line):
                    tell(found)
            over.cancel()
        return said

    def end(self) -> None:
        """End all processes, each with those that it started."""
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def deployed(*, copied: bool) -> Iterator[Deployment]:
    """A deployment in a folder of its own, ended whatever happens."""
    with tempfile.TemporaryDirectory() as scratch:
        deployment = Deployment(Path(scratch), copied)
        try:
            yield deployment
        finally:
            deployment.end()


def expected(protocol: str, phase: str) -> list[int]:
    """The numbers of the nodes in the sum when the victim is killed in a phase, or in none."""
    order = phases(protocol)
    inside = phase == "" or order.index(phase) > order.index(kind(protocol).masking)
    return [number for number in range(NODES) if number != VICTIM or inside]


class Killer(threading.Thread):
    """Kills nodes at random moments, with all that they started, and starts them again a little later."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        super().__init__()
        self.deployment, self.random, self.over, self.kills = deployment, Random(seed), threading.Event(), 0

    def run(self) -> None:
        """Go on until the rounds are over."""
        while not self.over.wait(self.random.uniform(10, 90)):
            for number in self.random.sample(range(NODES), self.random.choice((1, 1, 1, 2, 3))):
                os.killpg(self.deployment.nodes[number].pid, signal.SIGKILL)
                self.deployment.nodes[number].wait()
                self.kills += 1
            self.over.wait(self.random.uniform(0, 10))
            self.deployment.replace_dead()


class End(NamedTuple):
    """The line of a round: the nodes in its sum, if any, those asked and those that replied in each phase, seconds."""

    line: str
    inside: int
    right: bool
    asked: tuple[int, ...]
    replies: tuple[int, ...]
    seconds: float

    @classmethod
    def read(cls, line: str) -> End:
        """Read a line of the app."""
        lists = [tuple(map(int, re.findall(r"\d+", one))) for one in re.findall(r"\[(.*?)\]", line)]
        asked, replies = lists[-2:]
        inside = 0 if line.startswith("no sum") else len(lists[0])
        return cls(line, inside, ", right, " in line, asked, replies, float(line.rsplit(" ", 2)[1]))

    def may_fail(self, protocol: str) -> bool:
        """Whether the text lets such a round end without a sum: some secret may have too few holders left."""
        left = min(self.replies, default=0)
        holders = HOLDERS - sum(self.asked[:1]) + left if protocol == "secaggplus" else left
        return holders < THRESHOLD[protocol]

    def by_the_text(self, protocol: str) -> bool:
        """Whether the round ended as it must or may."""
        if not self.inside:
            return self.may_fail(protocol)
        return self.right and min(self.replies) >= THRESHOLD[protocol]


def killed_at_random(protocol: str, rounds: int, seed: int) -> int:
    """Run rounds in a deployment of their own while nodes are killed; return how many went wrong or are missing."""
    with deployed(copied=True) as deployment:
        log = deployment.folder / "log.csv"
        killer = Killer(deployment, seed)
        killer.start()
        try:
            settings = f'protocol="{protocol}" rounds={rounds} timeout={WAIT} log="{log}"'
            said = deployment.run(settings, rounds * PATIENCE, lambda line: print(f"{protocol}: {line}", flush=True))
        finally:
            killer.over.set()
            killer.join()
        lines = len(log.read_text(encoding="ascii").splitlines()) - 1 if log.exists() else 0
    ends = [End.read(line) for line in re.findall(r"KILLED (.*)", said)]
    bad = [end for end in ends if not end.by_the_text(protocol)]
    without = sum(not end.inside for end in ends)
    lost = sum(0 < end.inside < end.asked[0] for end in ends)
    reasons = len(re.findall("ends without a sum: TooFewSurvivors", said))
    wrong = rounds - len(ends) + len(bad) + abs(rounds - lines) + abs(without - reasons)
    print(
        f"{protocol}, {killer.kills} kills in {rounds} rounds: {len(ends) - without} sums, {lost} of them without"
        f" somebody; {without} rounds with too few users; {lines} lines in the participation log; {wrong} wrong;"
        f" the longest took {max((end.seconds for end in ends), default=0):.0f} s",
        flush=True,
    )
    if wrong:
        print("\n".join(end.line for end in bad), said[-3000:], sep="\n", flush=True)
    return wrong


def killed_in_turn(protocols: Sequence[str]) -> int:
    """Kill one node in each phase of each protocol; return the number of cases that went wrong."""
    wrong, started, known = 0, 0, set[str]()
    with deployed(copied=False) as deployment:
        log = deployment.folder / "log.csv"
        for protocol in protocols:
            cases = [("", False), *((phase, after) for phase in phases(protocol) for after in (False, True))]
            for phase, after in cases:
                settings = f'protocol="{protocol}" phase="{phase}" victim={VICTIM} after={str(after).lower()}'
                start = time.monotonic()
                said = deployment.run(f'{settings} log="{log}"')
                lines = re.findall(r"KILLED (.*)", said)
                ok = bool(lines) and lines[0].startswith(f"sum of {expected(protocol, phase)}, right")
                rows = [row.partition(",")[2].split() for row in log.read_text().splitlines()[1:]]
                started += 1
                known |= set(rows[-1])
                ok = ok and len(rows) == started and len(rows[-1]) == len(expected(protocol, phase))
                wrong += not ok
                when = "nobody killed" if not phase else f"killed {'after' if after else 'before'} {phase}"
                took = time.monotonic() - start
                print(f"{protocol}, {when}: {lines[0] if lines else 'NO LINE'} (run {took:.0f} s)", flush=True)
                if not ok:
                    print(said[-3000:], flush=True)
                deployment.replace_dead()
    print(f"{started} lines in the participation log, {len(known)} node ids of {NODES} nodes", flush=True)
    return wrong


def main(protocols: Sequence[str], rounds: int, seed: int) -> int:
    """Run all cases, or so many rounds of each protocol, all protocols at a time; return 1 if one went wrong."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # end the children then, too
    if not rounds or len(protocols) == 1:
        return int((killed_at_random(protocols[0], rounds, seed) if rounds else killed_in_turn(protocols)) > 0)
    command = [sys.executable, "-m", "tests.engine.deployment", "--rounds", str(rounds), "--seed", str(seed)]
    at_a_time = [subprocess.Popen([*command, protocol]) for protocol in protocols]
    try:
        return max(one.wait() for one in at_a_time)
    finally:
        for one in at_a_time:
            one.terminate()  # nothing happens if it has ended
            one.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("protocols", nargs="*", choices=[*THRESHOLD, []], metavar="PROTOCOL")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(main(given.protocols or list(THRESHOLD), given.rounds, given.seed))
