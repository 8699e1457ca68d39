"""The page of this project's own results: statement, what is new, what it holds for, proof, program, how to cite it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.pages import claims
from docs.pages.common import RESULTS, THEOREMS, claims_book, relative, write
from secagg_spec import __version__
from secagg_spec.ledger import entries
from secagg_spec.ledger.entries import Claim

YEAR = 2026


def write_results(out: Path) -> None:
    """Write the page: first what theorems carry for all parameters, then what programs decide."""
    ours = claims_book().of(entries.OURS)
    write(out / RESULTS, "\n".join(_lines(ours)))


def _lines(ours: Sequence[Claim]) -> Iterator[str]:
    carried = [claim for claim in ours if claim.formal]
    yield (
        f"# Results of this project\n\n{len(ours)} statements that none of the papers makes. Theorems carry "
        f"{len(carried)} of them, or a part that each names, for all parameters; others rest on programs and on the "
        "arguments in their files. Each says for what it was run, what an argument covers, and what a machine checked; "
        "the page of a program has its proof in words.\n\n"
        "The sharpest: which lies of a server about survivors show which sums ([UNI-LIES](#UNI-LIES), "
        "[UNI-WITHHELD](#UNI-WITHHELD), [UNI-BATCHLIES](#UNI-BATCHLIES)); the exact inference robustness of "
        "HeteroSAg's matrix, and matrices that reach the best one ([UNI-DELTA](#UNI-DELTA), [UNI-P1F](#UNI-P1F)); when "
        "BASA shows updates after a timeout, and a repair ([UNI-BASA](#UNI-BASA), [UNI-BASASETTLE](#UNI-BASASETTLE)); "
        "the least fairness gap ([UNI-FAIR](#UNI-FAIR), [UNI-LEAST](#UNI-LEAST)).\n"
    )
    yield f"## How to cite them\n\nCite the version, and the result by its id.\n\n```bibtex\n{_bibtex()}\n```\n"
    yield f"## Carried by theorems\n\n[The theorems]({relative(THEOREMS, RESULTS)}) say what they idealise.\n"
    yield from (claims.entry(claim, RESULTS) for claim in carried)
    yield "\n## Decided by programs\n"
    yield from (claims.entry(claim, RESULTS) for claim in ours if not claim.formal)
    yield ""


def _bibtex() -> str:
    return (
        "@misc{secagg-spec-results,\n"
        "  author = {{The secagg-spec authors}},\n"
        "  title  = {Results on secure aggregation for federated learning},\n"
        f"  year   = {{{YEAR}}},\n"
        f"  note   = {{secagg-spec {__version__}, with programs and theorems; result UNI-LIES}}\n"
        "}"
    )
