"""An adapter for the low-overhead masking of Fed-BioMed 6.4.1: whole rounds without a network, and its key agreement.

It runs in its own environment. A refusal is an error that the released code raises on purpose (`REFUSALS`); any other
exception is an error.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
secagg.average       SecaggRound of each node, DefaultStrategy and LomSecureAggregation of the researcher, with DHKey
                     and DHKeyAgreement (composed: the network is ours, and so is what Round and Experiment do between)
secagg.sum           the same with one sample for each node: an element v goes in as the middle of the numbers that
                     quantize maps to v, with R = ``TARGET_RANGE``, and the sum is that of LOM.aggregate, which
                     LomSecureAggregation then divides (composed)
secagg.view          the same round. A masked vector is modulo 2**64, and is given modulo R as well, which divides it;
                     so is the number that the researcher sends for the validation, as quantize maps it (composed)
pair.agree           DHKey and DHKeyAgreement (composed)
===================  ===============================================================================================

Without options, all is as a release is configured: a node also masks a number that it got from the researcher, who
compares the average of these numbers (``secagg_insecure_validation``). With ``--unvalidated`` this is switched off, and
only sums are offered.

t is N: the masks of all nodes cancel, and DefaultStrategy ends a round without a reply of every node. Nothing comes
after the masked vectors, so a node that drops out then is refused here, and so is one that drops out in the setup,
without which the release starts no round. clip is ``CLIPPING_RANGE``, and the level is the largest integer for which an
error of 1/level covers a step of the quantiser, 6 / 8191.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import bare
import numpy as np
from secagg_adapter import (
    ROUND_PHASES,
    SUM_PHASES,
    Adapter,
    Reject,
    Unsupported,
    check_drop,
    pack,
    pack_reals,
    unpack,
    unpack_reals,
)

VERSION = metadata.version("fedbiomed")
VALIDATED = "--unvalidated" not in sys.argv[1:]
logging.disable(logging.CRITICAL)


class Context(SimpleNamespace):
    """Replaces SecaggDHContext, which asks the nodes for a setup, and SecaggDhManager, in which a node keeps it."""

    numbers = count()

    def __init__(self, contexts: Any = None, **given: Any) -> None:
        """Take what a node keeps, or what the researcher asks for, with another identifier in each round."""
        super().__init__(contexts=contexts, status=True, secagg_id=f"secagg_{next(self.numbers):08}", **given)

    def get(self, **_: Any) -> Any:
        """Return the parties and secrets of a node."""
        return self.contexts


def load() -> None:
    """Make the released modules importable without those for networks, databases and training."""
    names = ["", ".common", ".common.utils", ".node", ".node.secagg"]
    names += [".researcher", ".researcher.secagg", ".researcher.strategies"]
    bare.packages(bare.folder_of("fedbiomed"), [f"fedbiomed{name}" for name in names])
    sys.modules["fedbiomed"].__dict__["__version__"] = VERSION
    bare.placeholders(["torch", "fedbiomed.common.message"])
    bare.module("fedbiomed.common.logger", logger=logging.getLogger("fedbiomed"))
    bare.module("fedbiomed.common.utils._config_utils", SHARE_DIR="")
    used = ["divide", "matching_parties_dh", "matching_parties_servkey", "multiply", "quantize", "reverse_quantize"]
    functions = bare.taken("fedbiomed.common.utils._secagg_utils", *used)
    sys.modules["fedbiomed.common.utils"].__dict__.update(zip(used, functions, strict=True))
    managers = {"SecaggDhManager": Context, "SecaggServkeyManager": bare.Nothing}
    bare.module("fedbiomed.node.secagg_manager", **managers)
    contexts = {"SecaggDHContext": Context, "SecaggServkeyContext": bare.Nothing}
    bare.module("fedbiomed.researcher.secagg._secagg_context", **contexts)


load()

DHKey, DHKeyAgreement = bare.taken("fedbiomed.common.secagg", "DHKey", "DHKeyAgreement")
(SAParameters,) = bare.taken("fedbiomed.common.constants", "SAParameters")
(FedbiomedError,) = bare.taken("fedbiomed.common.exceptions", "FedbiomedError")
(quantize,) = bare.taken("fedbiomed.common.utils._secagg_utils", "quantize")
(SecaggRound,) = bare.taken("fedbiomed.node.secagg._secagg_round", "SecaggRound")
(LomSecureAggregation,) = bare.taken("fedbiomed.researcher.secagg._secure_aggregation", "LomSecureAggregation")
(DefaultStrategy,) = bare.taken("fedbiomed.researcher.strategies.default_strategy", "DefaultStrategy")

CLIP, TARGET = SAParameters.CLIPPING_RANGE, SAParameters.TARGET_RANGE
LEVEL = (TARGET - 1) // (2 * CLIP)
WEIGHTS = SAParameters.WEIGHT_RANGE - 1
WIDEST = 2**32
"""The widest modulus of SecAgg (SAG-01): sums here are modulo 2**64."""
ROUND, RESEARCHER, EXPERIMENT, SERVER = 1, "researcher", "experiment", "server"
SIZES = range(2, 7)
REFUSALS = {
    "FB408": "below_threshold",
    "The weight is too large": "out_of_range",
    "The aggregation of encrypted parameters is not successful": "length_mismatch",
    "Error during parameter encryption": "length_mismatch",
}
"""Texts in the messages of errors that the released code raises on purpose, and their meanings."""

adapter = Adapter("Fed-BioMed" + ("" if VALIDATED else " (without validation)"), VERSION, randomness="none")
SUMMED: dict[str, Any] = {
    "ranges": {"R": {"values": [str(TARGET)]}},
    "parameter_sets": [{"N": N, "t": N} for N in SIZES],
    "composed": True,
}
AVERAGED: dict[str, Any] = {
    "ranges": {
        "R": {"values": [str(WIDEST)]},
        "clip": {"values": [CLIP]},
        "level": {"values": [str(LEVEL)]},
        "max_weight": {"values": [WEIGHTS]},
    },
    "parameter_sets": [{"N": N, "t": N, "k": N - 1} for N in (3, 4)],
    "composed": True,
}


class Node:
    """A node: its key pair, and what it masks."""

    def __init__(self, user: int) -> None:
        self.name, self.key = f"node{user:03}", DHKey()

    def secrets(self, nodes: Sequence[Node], setup: str) -> dict[str, bytes]:
        """Return the secrets that the node agrees on with the others, as in SecaggDHSetup."""
        own = DHKeyAgreement(self.name, self.key, bytes(setup, "utf-8"))
        return {node.name: own.agree(node.name, node.key.export_public_key()) for node in nodes if node is not self}

    def reply(self, nodes: Sequence[Node], arguments: dict[str, Any], update: list[float], weight: int) -> Any:
        """Return the training reply, with what Round puts into it."""
        kept = {"parties": arguments["parties"], "context": self.secrets(nodes, arguments["secagg_dh_id"])}
        scheme = SecaggRound(kept, self.name, arguments, True, False, EXPERIMENT).scheme
        params = scheme.encrypt(params=update, current_round=ROUND, weight=weight)
        factor = None
        if scheme.secagg_random is not None:
            factor = scheme.encrypt(params=[scheme.secagg_random], current_round=ROUND, weight=weight)
        return {
            "node_id": self.name, "success": True, "sample_size": weight, "params": params,
            "encryption_factor": factor,
        }  # fmt: skip


@lru_cache(maxsize=8)
def nodes_of(N: int) -> list[Node]:
    """Return N nodes; their key pairs are drawn once, and each round salts what they agree on."""
    return [Node(user) for user in range(N)]


def played(
    updates: list[list[float]], weights: list[int], setup: list[int], late: list[int], last: list[int]
) -> tuple[list[float], list[int], dict[str, Any], list[Any]]:
    """Play a round; return the average, the sum, what the researcher sends to all nodes, and what it gets."""
    nodes = nodes_of(len(updates))
    names = [node.name for node in nodes]
    if setup or last:
        raise Reject("below_threshold", "t is N, and not all nodes are there")
    researcher, strategy = LomSecureAggregation(), DefaultStrategy()
    researcher.setup(names, EXPERIMENT, RESEARCHER, insecure_validation=VALIDATED)
    arguments = researcher.train_arguments()
    strategy.sample_nodes(names, ROUND)
    replies = {
        node.name: node.reply(nodes, arguments, update, weight)
        for user, (node, update, weight) in enumerate(zip(nodes, updates, weights, strict=True))
        if user not in late
    }
    params, _, samples, factors = strategy.refine(replies, ROUND)
    average = researcher.aggregate(model_params=params, total_sample_size=samples, encryption_factors=factors)
    summed = researcher._secagg_crypter._lom.aggregate([*params.values()])
    return [float(value) for value in average], summed, arguments, list(replies.values())


def summed(
    R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]
) -> tuple[list[int], dict[str, Any], list[Any]]:  # fmt: skip
    """Play a round of integers; return the sum, what the researcher sends, and what it gets."""
    check_drop(drop, N)
    if int(R) != TARGET or t != N or N not in SIZES:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    step = 2 * CLIP / TARGET
    rows = [[(value + 0.5) * step - CLIP for value in unpack(text)] for text in updates]
    _, total, arguments, replies = played(rows, [1] * N, *(drop[phase] for phase in SUM_PHASES))
    return total, arguments, replies


refusing = bare.refusing(REFUSALS, FedbiomedError)


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


@adapter.operation("secagg.sum", **SUMMED)
@refusing
def total(**given: Any) -> dict[str, Any]:
    """Return the sum of a round."""
    values, _, _ = summed(**given)
    return {"sum": pack([value % TARGET for value in values]), "contributors": [*range(given["N"])]}


@adapter.operation("secagg.view", **SUMMED)
@refusing
def view(viewer: int | str, **given: Any) -> dict[str, Any]:
    """Return what comes to a party in such a round."""
    if viewer != SERVER and viewer not in range(given["N"]):
        raise Reject("unknown_peer", f"there is no user {viewer}")
    _, arguments, replies = summed(**given)
    passed = [repr(arguments).encode()]
    if viewer != SERVER:
        passed += [node.key.export_public_key() for node in nodes_of(given["N"])]
        return {"vectors": [], "strings": [text.hex() for text in passed]}
    masked = [reply[name] for reply in replies for name in ("params", "encryption_factor") if reply[name]]
    known = [quantize([arguments["secagg_random"]])] if VALIDATED else []
    passed += [np.array(vector, dtype="<u8").tobytes() for vector in masked]
    vectors = [pack([value % TARGET for value in vector]) for vector in (*known, *masked)]
    return {"vectors": vectors, "strings": [text.hex() for text in passed]}


def average(
    R: str, N: int, t: int, k: int, clip: int, level: str, max_weight: int, weights: list[int], x: list[str],
    drop: dict[str, list[int]], rand: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Play a round with weights."""
    check_drop(drop, N)
    if (R, clip, level, max_weight) != (str(WIDEST), CLIP, str(LEVEL), WEIGHTS) or t != N or k != N - 1:
        raise Unsupported
    if len(x) != N or len(weights) != N:
        raise Reject("length_mismatch", f"{len(x)} inputs and {len(weights)} weights of {N} users")
    keys, shares, masked, last = (drop[phase] for phase in ROUND_PHASES)
    values, _, _, _ = played([unpack_reals(row) for row in x], weights, keys + shares, masked, last)
    return {"average": pack_reals(values), "contributors": [*range(N)]}


def agree() -> dict[str, Any]:
    """Let two nodes agree on a secret."""
    first, second = Node(0), Node(1)
    one, two = (next(iter(node.secrets([first, second], "").values())).hex() for node in (first, second))
    return {"first": one, "second": two, "public": [node.key.export_public_key().hex() for node in (first, second)]}


if VALIDATED:
    adapter.operation("secagg.average", **AVERAGED)(refusing(average))
    adapter.operation("pair.agree", composed=True)(agree)


if __name__ == "__main__":
    adapter.run()
