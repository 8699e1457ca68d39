"""The implementations that the kit knows: the reference, the Node twin, and released software behind adapters."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.targets import environments

_HERE = Path(__file__).parent
Command = Callable[[], list[str]]


class TargetAbsent(Exception):
    """The target cannot run on this machine; the message names what is missing."""


@dataclass(frozen=True)
class Target:
    """A named implementation, and the command that starts its adapter."""

    name: str
    about: str
    command: Command
    expectations: Path | None = None
    seconds: float = 0.0
    """The least time that an answer is waited for: some released software is slow, above all on a busy machine."""

    @property
    def environment(self) -> environments.Environment | None:
        """The environment of released software; None for what this project wrote."""
        return self.command.environment if isinstance(self.command, Apart) else None

    def connect(self, timeout: float) -> ProcessConnection:
        """Return a connection; first set up the target's environment if it needs one.

        An answer is waited for as many seconds as `timeout` says, and no fewer than the target needs.

        Raises
        ------
        TargetAbsent
            This machine lacks something that the target needs.
        """
        return ProcessConnection(self.command(), max(timeout, self.seconds))


def _reference() -> list[str]:
    return [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]


def _node() -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise TargetAbsent("node is not installed")
    return [node, str(_HERE / "node" / "adapter.js")]


@dataclass(frozen=True)
class Apart:
    """The command that starts an adapter, a file below this folder, in its own environment."""

    program: str
    environment: environments.Environment
    flags: tuple[str, ...] = ()

    def __call__(self) -> list[str]:
        """Return the command; first set up the environment."""
        try:
            python = environments.ready(self.environment)
        except environments.SetupFailed as failed:
            raise TargetAbsent(str(failed)) from None
        return [str(python), str(_HERE / self.program), *self.flags]


_SECONDS = {"flower": 60.0, "openfl": 60.0}
"""Flower shares a secret among 255 users in 5 s on a quiet machine, and on a busy one OpenFL took more than 10 s."""
_ENVIRONMENTS = {
    "fedml": environments.FEDML,
    "flower": environments.FLOWER[environments.FLOWER_NOW],
    "openfl": environments.OPENFL,
    "declearn": environments.DECLEARN,
    "fedbiomed": environments.FEDBIOMED,
}
_RELEASED = {
    "fedml": "fedml/adapter",
    "fedml-any": "fedml/adapter --any",
    "fedml-managers": "fedml/managers",
    "fedml-managers-twice": "fedml/managers --twice",
    "fedml-secagg": "fedml/secagg",
    "fedml-secagg-large": "fedml/secagg --large",
    "fedml-secagg-lcc": "fedml/secagg --lcc",
    "fedml-clients": "fedml/adapter --init",
    "flower": "flower/adapter",
    "flower-any": "flower/adapter --any",
    "flower-binary32": "flower/adapter --binary32",
    "openfl": "openfl/adapter",
    "declearn": "declearn/adapter",
    "fedbiomed": "fedbiomed/adapter",
    "fedbiomed-unvalidated": "fedbiomed/adapter --unvalidated",
    **{f"flower@{version}": "flower/adapter" for version in environments.FLOWER if version != environments.FLOWER_NOW},
}
"""The adapter of each target of released software, below this folder, and its flags."""
_ABOUT = {
    "fedml": "FedML 0.9.6, fedml.core.mpc.lightsecagg, in the configuration that its release documents",
    "fedml-any": "the same functions, with everything that they accept although no document says so",
    "fedml-managers": "FedML 0.9.6, the managers of fedml.cross_silo.lightsecagg, message by message in one process",
    "fedml-managers-twice": "the same managers, with clients that say twice that they are online",
    "fedml-secagg": "FedML 0.9.6, fedml.core.mpc.secagg, function by function",
    "fedml-secagg-large": "its secret sharing with 24 to 40 users and thresholds of 12 and more",
    "fedml-secagg-lcc": "its Lagrange code, LCC_encoding and LCC_decoding",
    "fedml-clients": "processes that begin with fedml.init, as its clients do, and share masks by "
    "fedml.core.mpc.lightsecagg",
    "flower": "Flower 1.41.0, SecAggPlusWorkflow and secaggplus_mod, with parameters that its release documents",
    "flower-any": "the same workflow and mod, with numbers of shares that they accept although no document names them",
    "flower-binary32": "the helper that quantises, given arrays of binary32",
    "openfl": "OpenFL 1.9, SecAggBootstrapping, SecAggSetup and SecureWeightedAverage, and the helpers below them",
    "declearn": "declearn 2.9.1, declearn.secagg.masking with its X3DH setup, its Shamir sharing and X3DHManager",
    "fedbiomed": "Fed-BioMed 6.4.1, the masks of LOM with SecaggRound and LomSecureAggregation, configured as released",
    "fedbiomed-unvalidated": "the same with secagg_insecure_validation switched off",
}


def _released(name: str) -> Target:
    """Return a target of released software. The folder of its adapter has its expectations."""
    program, *flags = _RELEASED[name].split()
    folder, version = program.partition("/")[0], name.partition("@")[2]
    environment = environments.FLOWER[version] if version else _ENVIRONMENTS[folder]
    about = f"Flower {version}, behind the same adapter as flower" if version else _ABOUT[name]
    command = Apart(f"{program}.py", environment, tuple(flags))
    return Target(name, about, command, _HERE / folder / "expectations.toml", _SECONDS.get(folder, 0.0))


TARGETS = {
    "reference": Target("reference", "the reference of this project", _reference),
    "node": Target("node", "an independent implementation in JavaScript, written from the text alone", _node),
    "flower-repaired": Target(
        "flower-repaired",
        f"the workflow and the mod of secagg_spec.flower, inside Flower {environments.FLOWER_NOW}",
        Apart("flower/repaired.py", _ENVIRONMENTS["flower"]),
        seconds=_SECONDS["flower"],
    ),
    **{name: _released(name) for name in _RELEASED},
}
