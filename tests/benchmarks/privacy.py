"""Verdicts on privacy: all of them beside one, and coalitions of two sizes beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tests.benchmarks.record import Aim, Benchmark, Sides, processor

from secagg_spec.privacy import basecagg as buffered
from secagg_spec.privacy import lightsecagg as coded
from secagg_spec.privacy import secagg as pairwise
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg

ALL = "all"
"""In the sizes: each list of cases is taken whole."""


def _whole(cases: Callable[..., Iterable[object]], first: int | str, *lists: Sequence[object]) -> Sides:
    """Reach the verdicts on the first entries of each list, or on all, and on the very first alone."""

    def through(count: int | None) -> None:
        for _ in cases(*(one[:count] for one in lists)):
            pass

    return Sides(processor(partial(through, None if first == ALL else int(first))), processor(partial(through, 1)))


def every_case_of_lightsecagg(preset: str, first: int | str) -> Sides:
    """Take every coalition and every surviving set."""
    p = lightsecagg.PRESETS[preset]
    cases = partial(coded.audit, p, p.code)
    return _whole(cases, first, list(coded.every_coalition(p)), list(coded.every_surviving_set(p)))


def every_case_of_basecagg(preset: str, first: int | str) -> Sides:
    """Take every coalition and every set of users in a buffer."""
    p = basecagg.PRESETS[preset]
    buffers = [buffered.varied(p, users) for users in buffered.every_user_set(p)]
    return _whole(partial(buffered.audit, p, p.code), first, list(buffered.every_coalition(p, p.N)), buffers)


def every_case_of_secagg(preset: str, first: int | str) -> Sides:
    """Take every coalition and every dropout."""
    p = secagg.PRESETS[preset]
    cases = partial(pairwise.audit, p, p.graph())
    return _whole(cases, first, list(pairwise.every_coalition(p.N)), list(pairwise.every_dropout(p, p.graph())))


def every_weight_of_basecagg(preset: str, first: int | str) -> Sides:
    """Take all weights of every buffer."""
    p = basecagg.PRESETS[preset]
    return _whole(partial(map, partial(buffered.scales, p)), first, list(buffered.every_buffer(p)))


def one_colluder_more(N: int, D: int, U: int, T: int, d: int) -> Sides:
    """Judge what T + 1 users learn in LightSecAgg, and what T do, everybody surviving."""
    p = lightsecagg.Parameters(q=2**32 - 5, N=N, D=D, U=U, T=T, d=d)
    verdict = partial(coded.audit, p, p.code, surviving=[tuple(range(N))])

    def judged(size: int) -> None:
        list(verdict(coalitions=[tuple(range(size))]))

    return Sides.of(processor(partial(judged, size)) for size in (T + 1, T))


def neighbours_of_one(N: int, D: int, T: int, t: int, k: int, d: int) -> Sides:
    """Judge what any T users learn in SecAgg, and what t neighbours of one user do, everybody surviving."""
    p = secagg.Parameters(R=2**32, N=N, D=D, T=T, t=t, k=k, d=d)
    everyone, near = tuple(range(N)), tuple(sorted(p.graph().neighbours(0)))
    coalitions = (everyone[:T], near[:t])
    return Sides.of(processor(partial(_judged, p, coalition)) for coalition in coalitions)


def _judged(p: secagg.Parameters, coalition: tuple[int, ...]) -> None:
    everyone = tuple(range(p.N))
    list(pairwise.audit(p, p.graph(), [coalition], [(everyone, everyone)]))


def _every(name: str, what: str, sides: Callable[..., Sides], aim: Aim | None = None) -> Benchmark:
    return Benchmark(
        id=f"privacy-{name}",
        what=f"all verdicts on {what} at tiny parameters",
        beside="one of them",
        sizes={"preset": "tiny", "first": ALL},
        tiny={"preset": "tiny", "first": 2},
        sides=sides,
        aim=aim,
        turns=3,
        warm=False,
    )


def _coalition(
    name: str, what: str, beside: str, sides: Callable[..., Sides], aim: Aim | None, **sizes: int
) -> Benchmark:
    tiny = {"N": 6, "D": 1, "d": 2} | ({"U": 4, "T": 2} if "U" in sizes else {"T": 2, "t": 4, "k": 5})
    return Benchmark(f"privacy-{name}", what, beside, sizes, tiny, sides, aim=aim, turns=3)


SECOND, TEN = Aim("at most", 2, of="what"), Aim("at most", 10, of="what")
MORE = ("the verdict on T + 1 colluding users of LightSecAgg", "the verdict on T of them", one_colluder_more)
NEAR = ("the verdict on T colluding users of SecAgg", "the verdict on t neighbours of one user", neighbours_of_one)
BENCHMARKS = (
    _every("lightsecagg-tiny", "LightSecAgg", every_case_of_lightsecagg, TEN),
    _every("basecagg-tiny", "BASecAgg", every_case_of_basecagg),
    _every("basecagg-weights", "weights of BASecAgg", every_weight_of_basecagg),
    _every("secagg-tiny", "SecAgg", every_case_of_secagg),
    _coalition("lightsecagg", *MORE, SECOND, N=30, D=5, U=20, T=10, d=10),
    _coalition("lightsecagg-paper", *MORE, None, N=100, D=30, U=70, T=50, d=1000),
    _coalition("secagg", *NEAR, SECOND, N=30, D=5, T=10, t=16, k=29, d=10),
    _coalition("secagg-sparse", *NEAR, None, N=100, D=30, T=10, t=16, k=30, d=100),
)
