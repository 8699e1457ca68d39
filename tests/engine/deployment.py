"""Runs a SuperLink and six SuperNodes on the loopback, and kills one node in each phase in turn.

    python -m tests.engine.deployment [PROTOCOL ...] [--rounds ROUNDS]

The node is killed before its step of the phase, and in another run after it, before its reply left. Each round must
end, with the right sum of those that the text names, and have its line in one participation log of all runs. A node
that is started again has no key of its own, and so another node id. With ``--rounds``, nodes are killed at random
moments of so many rounds, and started again: each round must end with the right sum of those in it, or without one
where fewer than the threshold are left in some phase. All processes are children of this one, and are ended by their
numbers.
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
from collections.abc import Sequence
from pathlib import Path
from random import Random

APP = Path(__file__).with_name("app")
NODES, VICTIM = 6, 2
ENOUGH = {"secaggplus": NODES, "secagg": 4, "lightsecagg": 4}
"""With so many users in every phase a round has a sum; with SecAgg+ fewer may do, if the right neighbours are left."""
PHASES = {
    "secaggplus": ("advertise_keys", "share_keys", "masked_input", "unmasking"),
    "secagg": ("advertise_keys", "share_keys", "masked_input", "unmasking"),
    "lightsecagg": ("join", "share", "upload", "recover"),
}
LAST = ("unmasking", "recover")
PATIENCE = 240.0


def free_port() -> int:
    """Return a port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Deployment:
    """A SuperLink, its SuperNodes, and the command line that starts runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "FLWR_HOME": str(folder / "flwr"),
            "SECAGG_SPEC_HOME": str(folder / "home"),
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

    def run(self, config: str, patience: float = PATIENCE) -> str:
        """Start a run, wait for its end, and return what it printed."""
        command = ["flwr", "run", str(APP), "--stream", "--run-config", config]
        done = subprocess.run(
            command,
            env=self.environment,
            timeout=patience,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        return done.stdout + done.stderr

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


def expected(phase: str) -> list[int]:
    """The numbers of the nodes in the sum when the victim is killed in a phase, or in none."""
    return [number for number in range(NODES) if number != VICTIM or phase in ("", *LAST)]


class Killer(threading.Thread):
    """Kills nodes at random moments, with all that they started, and starts them again a little later."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        super().__init__()
        self.deployment, self.random, self.over, self.kills = deployment, Random(seed), threading.Event(), 0

    def run(self) -> None:
        """Go on until the rounds are over."""
        while not self.over.wait(self.random.uniform(60, 150)):
            for number in self.random.sample(range(NODES), self.random.choice((1, 1, 1, 2, 3))):
                os.killpg(self.deployment.nodes[number].pid, signal.SIGKILL)
                self.deployment.nodes[number].wait()
                self.kills += 1
            self.over.wait(self.random.uniform(0, 10))
            self.deployment.replace_dead()


def fewest(line: str) -> int:
    """Return the smallest number of replies in a phase."""
    return min(map(int, re.findall(r"\d+", line.split("replies", maxsplit=1)[0])))


def killed_at_random(deployment: Deployment, protocol: str, rounds: int) -> int:
    """Run rounds while nodes are killed; return the number of rounds that went wrong or are missing."""
    killer = Killer(deployment, rounds)
    killer.start()
    try:
        said = deployment.run(f'protocol="{protocol}" rounds={rounds} timeout=30.0', rounds * PATIENCE)
    finally:
        killer.over.set()
        killer.join()
    ends = re.findall(r"KILLED (.*)", said)
    without = [line for line in ends if line.startswith("no sum of [") and "[]" not in line]
    idle = [line for line in ends if "no sum of []" in line]
    few = [line for line in without if fewest(line) < ENOUGH[protocol]]
    right = [line for line in ends if ", right," in line]
    as_the_text = len(re.findall("ends without a sum: TooFewSurvivors", said)) == len(without)
    wrong = rounds - len(few) - len(right) - len(idle) + (not as_the_text)
    counts = f"{len(right)} right sums, {len(few)} with too few users, {len(idle)} without a client, {wrong} wrong"
    print(f"{protocol}, {killer.kills} kills in {rounds} rounds: {counts}", flush=True)
    if wrong:
        print("\n".join(line for line in ends if line not in (*few, *right, *idle)), said[-3000:], sep="\n", flush=True)
    return wrong


def main(protocols: Sequence[str], rounds: int) -> int:
    """Run all cases; return 1 if one went wrong."""
    wrong = 0
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # end the children then, too
    with tempfile.TemporaryDirectory() as scratch:
        deployment, log = Deployment(Path(scratch)), Path(scratch) / "log.csv"
        started, known = 0, set[str]()
        try:
            for protocol in protocols or PHASES:
                if rounds:
                    wrong += killed_at_random(deployment, protocol, rounds)
                    continue
                cases = [("", False), *((phase, after) for phase in PHASES[protocol] for after in (False, True))]
                for phase, after in cases:
                    settings = f'protocol="{protocol}" phase="{phase}" victim={VICTIM} after={str(after).lower()}'
                    settings += f' log="{log}"'
                    start = time.monotonic()
                    said = deployment.run(settings)
                    lines = re.findall(r"KILLED (.*)", said)
                    ok = bool(lines) and lines[0].startswith(f"sum of {expected(phase)}, right")
                    rows = [row.partition(",")[2].split() for row in log.read_text().splitlines()[1:]]
                    started += 1
                    known |= set(rows[-1])
                    ok = ok and len(rows) == started and len(rows[-1]) == len(expected(phase))
                    wrong += not ok
                    when = "nobody killed" if not phase else f"killed {'after' if after else 'before'} {phase}"
                    took = time.monotonic() - start
                    print(f"{protocol}, {when}: {lines[0] if lines else 'NO LINE'} (run {took:.0f} s)", flush=True)
                    if not ok:
                        print(said[-3000:], flush=True)
                    deployment.replace_dead()
            if not rounds:
                print(f"{started} lines in the participation log, {len(known)} node ids of {NODES} nodes", flush=True)
        finally:
            deployment.end()
    return int(wrong > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("protocols", nargs="*")
    parser.add_argument("--rounds", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.protocols, given.rounds))
