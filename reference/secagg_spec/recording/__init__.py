"""Record a few small runs of each protocol, to be watched moment by moment.

The reference computes everything. The rounds run with all their messages, the additions are read from states and
streams, and `privacy` decides what the server knows from the messages that it has received so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from secagg_spec.errors import ParameterError
from secagg_spec.recording import basa, basecagg, lightsecagg, multiround, secagg
from secagg_spec.recording.record import Recording
from secagg_spec.recording.synchronous import Fate, Scribe
from secagg_spec.recording.synchronous import record as _synchronous
from secagg_spec.simulate.inputs import seed_bytes

SEED = 5
_Recorder: TypeAlias = Callable[[bytes], Recording]
_Session: TypeAlias = basecagg.BASecAgg | basa.BASA | multiround.MultiRound


def _phases(make: Callable[[bytes], Scribe], fates: tuple[Fate, ...], colluder: int) -> Mapping[str, _Recorder]:
    return {fate.name: _phase(make, fate, colluder) for fate in fates}


def _phase(make: Callable[[bytes], Scribe], fate: Fate, colluder: int) -> _Recorder:
    return lambda seed: _synchronous(make(seed), fate, colluder)


def _session(
    make: Callable[[bytes, str], _Session], runs: Mapping[str, object], colluder: int
) -> Mapping[str, _Recorder]:
    return {run: _turns(make, run, colluder) for run in runs}


def _turns(make: Callable[[bytes, str], _Session], run: str, colluder: int) -> _Recorder:
    return lambda seed: make(seed, run).record(colluder)


PROTOCOLS: Mapping[str, Mapping[str, _Recorder]] = MappingProxyType(
    {
        "secagg": _phases(secagg.SecAgg, secagg.FATES, 4),
        "secagg-plus": _phases(lambda seed: secagg.SecAgg(seed, secagg.SPARSE), secagg.SPARSE_FATES, 4),
        "lightsecagg": _phases(lightsecagg.LightSecAgg, lightsecagg.FATES, 4),
        "basecagg": _session(basecagg.BASecAgg, basecagg.RUNS, 4),
        "basa": _session(basa.BASA, basa.RUNS, 0),
        "heterosag": _phases(secagg.HeteroSAg, secagg.GROUP_FATES, 4),
        "multi-round": _session(multiround.MultiRound, multiround.RUNS, 8),
    }
)
"""The runs that can be recorded, by protocol and name."""


def record(protocol: str, run: str, seed: int = SEED) -> Recording:
    """Run one of the runs and record it; the seed determines all random values.

    Raises
    ------
    ParameterError
        The protocol does not exist or has no such run, or the seed is invalid.
    """
    runs = PROTOCOLS.get(protocol) if isinstance(protocol, str) else None
    if runs is None or not isinstance(run, str) or run not in runs:
        known = [f"{name} {one}" for name, each in PROTOCOLS.items() for one in each]
        raise ParameterError("run", f"{protocol} {run}", f"one of {', '.join(known)}")
    return runs[run](seed_bytes(seed))
