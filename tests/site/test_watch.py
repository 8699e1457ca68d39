"""The page on which rounds are watched: complete as text, and as a stepper that goes to the end of every run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.pages import watch
from tests.quick import part
from tests.site.browser import Browser, served
from tests.site.shell import ROOT
from tests.site.writing import assert_written_large

from secagg_spec.recording import PROTOCOLS
from secagg_spec.resources import clauses

RUNS = [(protocol, run) for protocol, runs in PROTOCOLS.items() for run in runs]
MINUS = "\N{MINUS SIGN}"
HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Watch</title>'
    '<link rel="icon" href="data:,"></head>'
)
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8").strip()
STATIC = "#watch-static:not([hidden]) section li"
KEYS = {"ArrowLeft": 37, "ArrowRight": 39}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page and what it loads, as the site has it; of the frame of the site only the body."""
    out = tmp_path_factory.mktemp("watch")
    page = out / watch.PAGE
    page.parent.mkdir()
    shutil.copytree(ROOT / "docs" / "assets", out / "assets", ignore=shutil.ignore_patterns("experiments"))
    shutil.copy(ROOT / "docs" / watch.PAGE, page)
    watch.write(out)
    text = page.read_text(encoding="utf-8")
    body = text[text.index("<link") : text.rindex("</script>") + len("</script>")]
    folder = page.with_suffix("")
    folder.mkdir()
    (folder / "index.html").write_text(f"{HEAD}<body>{body}</body></html>", encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def page(written: Path) -> Iterator[str]:
    """The address of the page."""
    with served(written) as url:
        yield f"{url}/tutorials/watch-a-round/"


# ------------------------------------------------------------------------------------------------- what is said


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "run"), RUNS)
def test_something_is_said_of_every_moment_of_every_run(protocol: str, run: str) -> None:
    report = watch.texts()[protocol]
    assert report["runs"][run]
    for moment in watch.recordings()[protocol][run].moments:
        heading, text = watch.said(protocol, moment)
        assert heading
        assert text.endswith(".")
        assert set(report["moments"][moment.key]["clauses"]) <= set(clauses())


@pytest.mark.slow
def test_nothing_is_said_of_what_never_happens() -> None:
    for protocol, report in watch.texts().items():
        moments = [moment for made in watch.recordings()[protocol].values() for moment in made.moments]
        assert set(report["runs"]) == set(PROTOCOLS[protocol])
        assert set(report["moments"]) == {moment.key for moment in moments}
        for key, each in report["moments"].items():
            befell = {name for moment in moments if moment.key == key for name in moment.happened}
            assert set(each) - {"heading", "text", "clauses"} <= befell, (protocol, key)


@pytest.mark.slow
def test_the_end_without_a_sum_has_words_of_its_own() -> None:
    for protocol, runs in watch.recordings().items():
        ended = [made for made in runs.values() if made.ended]
        assert ended, protocol
        for made in ended:
            assert "ended" in watch.texts()[protocol]["moments"][made.moments[-1].key]


@pytest.mark.slow
def test_the_page_has_every_step_of_one_run_of_each_protocol_as_text(written: Path) -> None:
    text = (written / watch.PAGE).read_text(encoding="utf-8")
    sections = dict(re.findall(r'<section class="watch-static" id="watch-([a-z-]+)">(.*?)</section>', text, re.DOTALL))
    assert list(sections) == list(PROTOCOLS)
    for protocol, section in sections.items():
        assert section.count("<li>") == len(watch.recordings()[protocol]["nobody"].moments)
        assert section.count("<svg") == 1
    assert "<!--" not in text
    assert len(text.encode()) < 500_000


@pytest.mark.slow
def test_the_data_is_small_and_of_plain_json(written: Path) -> None:
    text = (written / watch.DATA).read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    data = json.loads(text.removeprefix("window.watchData = ").rstrip().removesuffix(";"))
    assert [(protocol["id"], run["run"]) for protocol in data for run in protocol["runs"]] == RUNS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["secagg", "lightsecagg", "basecagg", "basa", "heterosag", "multi-round"])
def test_each_page_of_a_protocol_has_its_picture(name: str) -> None:
    pictures = watch.flows(f"{name}.md")
    assert pictures.count("<svg") == (2 if name == "secagg" else 1)
    identifiers = re.findall(r' id="([^"]+)"', pictures)
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.slow
def test_a_caption_says_how_long_the_recorded_run_is() -> None:
    """A sum of rounds that follow each other is given once in each; HeteroSAg gives several sums in its one round."""
    for protocol in ("basecagg", "multi-round"):
        made = watch.recordings()[protocol]["nobody"]
        assert watch.span(made) == f"{len(made.summed)} rounds"
        assert f"<figcaption>Messages of {len(made.summed)} rounds of " in watch.flow(protocol)
    assert watch.span(watch.recordings()["multi-round"]["few"]) == "2 rounds"
    for protocol in ("secagg", "secagg-plus", "lightsecagg", "heterosag"):
        assert "<figcaption>Messages of a round of " in watch.flow(protocol)
    assert "<figcaption>Messages of an epoch of BASA " in watch.flow("basa")


# ------------------------------------------------------------------------------------------------- in a browser

SEEN = """(() => {
  const text = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
  return {
    heading: text("#watch h2")[0], count: text("#watch .watch-count")[0], live: text("#watch .watch-live")[0],
    known: text("#watch .watch-known > ul > li"), outcome: text("#watch .watch-outcome"),
    results: text("#watch .watch-sum .result").length, users: text("#watch .watch-user").length,
    gone: text("#watch .watch-user.gone text"),
  };
})()"""


def plain(text: str) -> str:
    """A sum as the page shows it: factors with a dot, names without a bar."""
    return text.replace("*", "·").replace("_", "").replace("-", MINUS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme", "runs"), [(390, "dark", part(3, RUNS)), (1280, "light", [RUNS[0], RUNS[-1]])]
)
def test_the_stepper_goes_to_the_end_of_every_run_by_keys(
    page: str, window: Browser, width: int, scheme: str, runs: list[tuple[str, str]]
) -> None:
    window.show(width, 900, scheme)
    for protocol, run in runs:
        made = watch.recordings()[protocol][run]
        window.open(f"{page}#watch-{protocol}.{run}.1")
        for at, moment in enumerate(made.moments):
            seen = window.run(SEEN)
            assert seen["count"] == f"Step {at + 1} of {len(made.moments)}"
            assert seen["heading"] == watch.said(protocol, moment)[0]
            assert seen["known"] == [plain(text) for text in moment.server.functionals]
            assert (seen["results"], seen["users"]) == (len(moment.additions), made.users)
            assert window.width() <= width, (protocol, run, at)
            assert bool(seen["outcome"]) == (at == len(made.moments) - 1)
            window.press("ArrowRight", KEYS["ArrowRight"])
        assert window.run("document.querySelectorAll('#watch button')[1].disabled") is True
        assert window.run(f"({CONTRAST})('#watch *')") == []


@pytest.mark.slow
def test_the_writing_in_pictures_is_large_enough_on_a_phone(page: str, window: Browser) -> None:
    window.show(390, 900, "dark")
    for protocol in PROTOCOLS:
        window.open(f"{page}#watch-{protocol}.nobody.2")
        assert_written_large(window, "#watch svg", 1)


@pytest.mark.slow
def test_an_update_that_is_known_is_said_to_be(page: str, window: Browser) -> None:
    window.open(f"{page}#watch-multi-round.without.4")
    said = window.run("document.querySelector('#watch .watch-known').textContent")
    assert "The update of user 5 is no longer hidden." in said
    assert "anything of the update of user 0, 1, 2, 3, 4, 6, 7 or 8 by itself" in said


def choose(window: Browser, at: int, value: int) -> None:
    """Choose something in the first or the second list."""
    window.run(
        f"var list = document.querySelectorAll('#watch select')[{at}];"
        f"list.value = '{value}'; list.dispatchEvent(new Event('change'))"
    )


@pytest.mark.slow
def test_the_stepper_is_used_by_buttons_and_selects_and_tells_what_changed(page: str, window: Browser) -> None:
    window.open(page)
    assert window.run("document.querySelectorAll('#watch button')[0].disabled") is True
    window.run("document.querySelectorAll('#watch button')[1].click()")
    assert window.run(SEEN)["live"].startswith("Step 2 of 8: The server hands the keys on.")
    window.press("ArrowLeft", KEYS["ArrowLeft"])
    assert window.run(SEEN)["count"] == "Step 1 of 8"
    choose(window, 0, 2)
    assert window.run("location.hash") == "#watch-lightsecagg.nobody.1"
    choose(window, 1, 1)
    assert window.run(SEEN)["gone"] == []
    for _ in range(2):
        window.press("ArrowRight", KEYS["ArrowRight"])
    assert window.run(SEEN)["gone"] == ["2"]


@pytest.mark.slow
def test_a_wrong_address_shows_the_first_run(page: str, window: Browser) -> None:
    for wrong in ("#watch-none.nobody.1", "#watch-secagg.none.99", "#other"):
        window.open(page + wrong)
        assert window.run(SEEN)["users"] == 5
    assert window.run(SEEN)["count"] == "Step 1 of 8"


@pytest.mark.slow
def test_without_a_script_the_text_is_there(page: str, window: Browser) -> None:
    window.scripts(False)
    window.open(page)
    shown: Any = window.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    stepper = window.call("DOM.querySelector", nodeId=shown, selector="#watch[hidden]")["nodeId"]
    static = window.call("DOM.querySelectorAll", nodeId=shown, selector="#watch-static:not([hidden]) section li")[
        "nodeIds"
    ]
    assert stepper != 0
    assert len(static) == sum(len(runs["nobody"].moments) for runs in watch.recordings().values())
