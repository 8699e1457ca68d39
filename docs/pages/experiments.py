"""The page of experiments: every figure of the papers, and what the stored runs gave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.pages.common import EXPERIMENTS, ROOT, SiteError, escaped, mention, relative, write
from secagg_spec.conformance.adapter.plain import counted
from secagg_spec.experiments import catalogue, figures

EXPERIMENT_RESULTS = ROOT / "spec" / "experiments"


def write_experiments(out: Path) -> None:
    """Write the page that shows every figure of the papers, and what the stored run of each experiment gave.

    Raises
    ------
    SiteError
        An experiment has no stored result.
    """
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXPERIMENT_RESULTS.glob("*.json"))]
    missing = set(catalogue.MODULES) - {content["experiment"] for content in stored}
    if missing:
        raise SiteError(f"spec/experiments has no result of {min(missing)}: make reproduce stores it")
    lines = [_experiments_head(), *_figures()]
    for content in stored:
        lines += _experiment(content)
    write(out / EXPERIMENTS, "\n".join(lines))


def _experiments_head() -> str:
    how, text = (relative(page, EXPERIMENTS) for page in ("how-to/reproduce-a-figure.md", "spec/experiments.md"))
    return (
        "# Experiments\n\nEvery figure and table of the papers, and each theorem that is run: what stands for it here, "
        "and what it gave. A statement of a paper is an inequality with a bound that stands before a run; where "
        "one was changed after stored runs, the claim says so. Its "
        f"verdict is that of the 95 % interval over seeds ([the text]({text}#6-statements-and-verdicts)). "
        f"[Run one yourself]({how}).\n"
    )


def _figures() -> Iterator[str]:
    yield "| figure | shows | here |\n| --- | --- | --- |"
    for figure in figures.load():
        yield f"| {figure.name} | {escaped(figure.shows)} | {_stands(figure)} |"
    yield ""


def _stands(figure: figures.Figure) -> str:
    """Return what stands for a figure, with links to what is on the site."""
    if figure.experiment:
        return f"[{figure.experiment}](#{figure.experiment})"
    claims = ", ".join(mention(claim, EXPERIMENTS) for claim in figure.claims)
    return claims or (f"`{figure.command}`" if figure.command else escaped(figure.reason))


def _experiment(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the entry of one stored result: what was run, each statement with its verdict, and the pictures."""
    name, preset = content["experiment"], content["preset"]
    anchor = name if preset == "default" else f"{name}-{preset}"
    yield f"## {name}{'' if preset == 'default' else f', {preset}'} {{ #{anchor} }}\n"
    yield f"{escaped(content['title'])} ({', '.join(content['figures'])}). {escaped(catalogue.load(name).about)}\n"
    settings = ", ".join(f"{key} = {value}" for key, value in content["settings"].items())
    yield f"`{settings}`\n"
    yield "| claim | statement | mean | 95 % interval | bound | verdict |\n| --- | --- | --- | --- | --- | --- |"
    yield from (_judged_row(statement) for statement in content["statements"])
    yield ""
    yield f"{_sums(content)} {_seconds(content['seconds'])}\n"
    for picture in sorted((ROOT / "docs" / "assets" / "experiments").glob(f"{anchor}.*.svg")):
        what = picture.name.split(".")[1].replace("-", " ")
        yield f"![{name}: {what}]({relative(f'assets/experiments/{picture.name}', EXPERIMENTS)})\n"


def _judged_row(statement: Mapping[str, Any]) -> str:
    interval = statement["interval"]
    ends = f"{interval['low']:.3g} to {interval['high']:.3g}"
    bound = f"{'≥' if statement['relation'] == '>=' else '≤'} {statement['bound']:.3g}"
    said = f"{escaped(statement['text'])} ({escaped(statement['measure'])})"
    cells = (
        mention(statement["claim"], EXPERIMENTS),
        said,
        f"{interval['mean']:.3g}",
        ends,
        bound,
        statement["verdict"],
    )
    return f"| {' | '.join(cells)} |"


def _sums(content: Mapping[str, Any]) -> str:
    """Say in how many rounds the whole protocol ran, and in how many the shortcut."""
    used = [one for one in content["aggregators"] if one["protocol"] + one["shortcut"]]
    parts = [
        f"{one['name']}: {counted(one['protocol'], 'round')} with all messages, {one['shortcut']} by the sum of "
        f"quantised updates, {counted(one['moved'], 'number')} clipped to a bound."
        for one in used
    ]
    return " ".join(parts)


def _seconds(seconds: Mapping[str, float]) -> str:
    """Say how long training and aggregation took; nothing where nothing was trained."""
    if not seconds["training"]:
        return ""
    return f"Training took {seconds['training']:.0f} s of processor time, aggregation {seconds['aggregation']:.0f} s."
