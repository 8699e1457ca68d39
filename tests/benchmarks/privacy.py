"""Speeds of verdicts: ``make bench``. Nothing here is a test."""

from __future__ import annotations

import time

from secagg_spec.privacy.lightsecagg import audit, every_coalition, every_surviving_set
from secagg_spec.protocols.lightsecagg import PRESETS, Parameters


def main() -> None:
    """Print all figures."""
    tiny = PRESETS["tiny"]
    start = time.perf_counter()
    cases = sum(1 for _ in audit(tiny, tiny.code, list(every_coalition(tiny)), list(every_surviving_set(tiny))))
    print(f"privacy of tiny, all {cases} cases: {time.perf_counter() - start:.2f} s")
    one_coalition(Parameters(q=2**32 - 5, N=30, D=5, U=20, T=10, d=10))
    one_coalition(PRESETS["paper"])


def one_coalition(p: Parameters) -> None:
    """Time the verdicts on T and on T + 1 users, everybody surviving."""
    for size in (p.T, p.T + 1):
        start = time.perf_counter()
        [case] = audit(p, p.code, [tuple(range(size))], [tuple(range(p.N))])
        seconds = time.perf_counter() - start
        print(f"privacy of N = {p.N}, d = {p.d}, {size} users: {case.verdict.dimension} beyond, {seconds:.2f} s")


if __name__ == "__main__":
    main()
