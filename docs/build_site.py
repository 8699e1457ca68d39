"""Assemble the pages of the site in ``build/site-src``; ``mkdocs build --strict`` then turns them into HTML.

    python docs/build_site.py [--katex-from DIR] [--out DIR]

The pages of ``docs/`` and ``spec/`` are copied, each link rewritten to where its target stands on the site and each
mention of a clause or a claim linked to it. The modules of ``docs/pages`` write the pages that are made from data.
KaTeX comes from ``DIR`` (an unpacked package), else from ``build/``, else once from npm. The folder of ``--out`` is
emptied first: it is absent, empty, or was written by this program.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gc
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs.pages import (
    additions,
    api,
    benchmarks,
    claims,
    command_line,
    comparison,
    copies,
    errata,
    experiments,
    formats,
    frameworks,
    katex,
    mutants,
    papers,
    play,
    proofs,
    requirements,
    results,
    targets,
    theorems,
    versions,
    watch,
)
from docs.pages.common import ROOT, SiteError
from secagg_spec import system
from secagg_spec.ledger.errors import LedgerError

OUT = ROOT / "build" / "site-src"
MARK = ".build_site"
"""The file that a build leaves in its folder, which is emptied for the next one; mkdocs copies no such names."""
WRITERS = (
    copies.write_copies,
    versions.write_versions,
    api.write_api,
    requirements.write_requirements,
    mutants.write_mutants,
    claims.write_claims,
    errata.write_errata,
    results.write_results,
    papers.write_papers,
    proofs.write_proofs,
    theorems.write_theorems,
    frameworks.write_frameworks,
    targets.write_released,
    experiments.write_experiments,
    benchmarks.write_benchmarks,
    command_line.write_command_line,
    formats.write_formats,
    watch.write,
    play.write,
    additions.write,
)
ALONE = (comparison.write_comparison,)
"""What takes as long as all others together; they neither read what it writes, nor it what they write."""


def build(out: Path, given: Path | None) -> None:
    """Assemble the pages in `out`, which is emptied first; KaTeX comes from the folder that is given.

    Raises
    ------
    SiteError
        KaTeX is not there, or `out` holds what no build wrote; nothing is written then.
    """
    source = katex.found(given)
    _empty(out)
    katex.write_katex(out, source)
    with concurrent.futures.ProcessPoolExecutor(1) as beside:
        waiting = [beside.submit(write, out) for write in ALONE]
        for write in WRITERS:
            write(out)
        for one in waiting:
            one.result()


def _empty(out: Path) -> None:
    """Leave a folder with nothing but the mark of a build."""
    try:
        place = system.resolved(out)
        if place.exists() and out != OUT and not (place / MARK).is_file() and any(place.iterdir()):
            raise SiteError(f"--out {out}: it would be emptied; name a new folder, an empty one, or that of a build")
        if place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
        (place / MARK).touch()
    except OSError as error:
        raise SiteError(f"--out {out}: {error.strerror}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 when something that it needs is missing."""
    parser = argparse.ArgumentParser(description="Assemble the pages of the site.")
    parser.add_argument("--katex-from", type=Path, metavar="DIR", help="an unpacked KaTeX package")
    about = "the folder of the pages (build/site-src): emptied first if a build wrote it, refused if it has other files"
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=about)
    options = parser.parse_args(arguments)
    try:
        build(options.out, options.katex_from)
    except (SiteError, LedgerError) as error:
        print(f"build_site: {error}", file=sys.stderr)
        return 2
    print(f"build_site: {sum(1 for _ in options.out.rglob('*.md'))} pages in {os.path.relpath(options.out)}")
    return 0


if __name__ == "__main__":
    gc.disable()  # a tenth of the time, and the process ends before memory is short
    sys.exit(main())
