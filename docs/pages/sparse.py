"""What a sparse graph changes in SecAgg: a round on each of two graphs is run, and its messages are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from docs.pages.differences import Cells, Row, compared, rendered
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.secagg.round import TABLE, Parameters, draw_randomness, run_round
from secagg_spec.protocols.steps import Event, Role

COMPLETE = Parameters(R=2**32, N=20, D=4, T=2, t=4, k=19, d=16)
SPARSE = Parameters(R=2**32, N=20, D=4, T=2, t=4, k=6, d=16)
PAGE, BEHIND = "secagg.md", "## 9. A sparse graph"
TITLES = ("SecAgg", "SecAgg+")


def block() -> str:
    """Return the comparison as a block that can be opened, in HTML."""
    numbers = ", ".join(f"{name} = {getattr(SPARSE, name)}" for name in ("N", "D", "T", "t", "d"))
    return (
        '<details class="info difference" id="from-secagg-to-secagg-plus">\n'
        "<summary>What changes from SecAgg to SecAgg+</summary>\n"
        f"<p>The program is the same, and so are its {len(TABLE)} steps; what differs is the graph. Measured in two "
        f"rounds in which nobody drops out, with {numbers}.</p>\n"
        f"{rendered('Quantities', rows(), TITLES, numbers=True)}\n</details>"
    )


def rows() -> list[Row]:
    """Return what differs between the two rounds, and what does not."""
    return compared(measured(COMPLETE), measured(SPARSE), {})


def measured(parameters: Parameters) -> Cells:
    """Return what is told of a round on the graph of some parameters."""
    least, most = thresholds(parameters)
    return {
        "neighbours of a user": (str(parameters.k),),
        "thresholds admitted": (f"{least} to {most}",),
        **traffic_cells(traffic(parameters)),
    }


def traffic_cells(sent: Mapping[str, tuple[int, int]]) -> Cells:
    """Return what is told of how many messages were sent."""
    return {name: (f"{number} messages, {size} bytes",) for name, (number, size) in sent.items()}


def thresholds(parameters: Parameters) -> tuple[int, int]:
    """Return the smallest and the largest threshold that is not refused on the graph."""
    admitted = [t for t in range(1, parameters.N + 1) if _admitted(parameters, t)]
    return admitted[0], admitted[-1]


def _admitted(given: Parameters, t: int) -> bool:
    try:
        Parameters(given.R, given.N, given.D, given.T, t, given.k, given.d)
    except ParameterError:
        return False
    return True


def traffic(parameters: Parameters) -> Mapping[str, tuple[int, int]]:
    """Return for each phase and role how many messages of how many bytes are sent in a round."""
    updates = np.zeros((parameters.N, parameters.d), dtype=np.uint64)
    result = run_round(
        parameters, updates, randomness=draw_randomness(parameters, sources(parameters.N)), session=bytes(16), round=0
    )
    return tally(result.transcript)


def sources(users: int) -> Mapping[int, SeededSource]:
    """Return a fixed source for each user."""
    return {user: SeededSource(bytes(32), f"user {user}") for user in range(users)}


def tally(transcript: Iterable[Event]) -> Mapping[str, tuple[int, int]]:
    """Return for each phase and role of a transcript how many messages of how many bytes were sent."""
    number, size = Counter[str](), Counter[str]()
    for name, message in _sent(transcript):
        number[name] += 1
        size[name] += len(message)
    return {name: (number[name], size[name]) for name in number}


def _sent(transcript: Iterable[Event]) -> Iterator[tuple[str, bytes]]:
    for event in transcript:
        who = "all users" if event.step.role is Role.USER else "server"
        yield from ((f"{event.step.phase}, {who}", encode(message)) for message in event.sent)
