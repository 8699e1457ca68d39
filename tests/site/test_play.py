"""The page on which a round is played: its modules are whole, and its verdicts are those of `secagg_spec.privacy`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from docs.pages import play
from docs.pages.common import SiteError
from tests.quick import part
from tests.site.browser import Browser, served
from tests.site.shell import ROOT, run

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.privacy import heterosag, lightsecagg, secagg
from secagg_spec.privacy.echelon import reduced_basis
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.protocols.heterosag.plan import Parameters as HeteroSAg
from secagg_spec.protocols.lightsecagg.round import Parameters as LightSecAgg
from secagg_spec.protocols.secagg.round import Parameters as SecAgg

FATES = ("stays", "before", "late", "after")
USER = [(fate, colludes) for fate in FATES for colludes in (False, True)]
Q = 97


class Choice(NamedTuple):
    """What a visitor chose: what happens to each user, who colludes, and whom a lying server names to whom."""

    fate: tuple[str, ...]
    colluders: tuple[int, ...]
    server: bool = True
    told: tuple[tuple[int, tuple[int, ...]], ...] | None = None

    def users(self, *fates: str) -> tuple[int, ...]:
        return tuple(user for user, fate in enumerate(self.fate) if fate in fates)

    def data(self) -> dict[str, Any]:
        return {**self._asdict(), "told": None if self.told is None else dict(self.told)}


class Expected(NamedTuple):
    """What the project's own procedure says: a verdict for each part, who refuses, and whether there is no sum."""

    verdicts: tuple[Verdict, ...]
    refused: tuple[int, ...]
    stopped: bool


# ------------------------------------------------------------------------------ the games, and what is right for them


class Light:
    protocol = "lightsecagg"

    def __init__(self, N: int) -> None:
        self.parameters = p = LightSecAgg(q=Q, N=N, D=N - 3, U=3, T=1, d=2)
        self.numbers = {"q": Q, "N": N, "D": N - 3, "U": 3, "T": 1, "d": 2}
        self.inputs = [[11 * i + 5, 7 * i + 2] for i in range(N)]
        self.column = lightsecagg.Column(p, p.code, (0, 1))

    def expected(self, choice: Choice) -> Expected:
        survivors, present = choice.users("stays", "after"), choice.users("stays")
        asked = dict.fromkeys(present if len(survivors) >= 3 else (), survivors)
        asked = asked if choice.told is None else dict(choice.told)
        answered = {j: chosen for j, chosen in asked.items() if len(chosen) >= self.parameters.T + 2}
        if choice.server:
            happened = lightsecagg.Situation(survivors, choice.users("stays", "late", "after"), answered)
        else:
            happened = lightsecagg.Situation(survivors, (), {})
        verdict = self.column.view(choice.colluders, happened).decide()
        return Expected((verdict,), tuple(sorted(set(asked) - set(answered))), len(survivors) < 3 or len(present) < 3)


class Masked:
    protocol = "secagg"

    def __init__(self, N: int) -> None:
        self.parameters = SecAgg(R=Q, N=N, D=N - 3, T=1, t=3, k=N - 1, d=1)
        self.numbers: dict[str, Any] = {"R": Q, "N": N, "D": N - 3, "T": 1, "t": 3, "k": N - 1, "d": 1}
        self.inputs = [[11 * i + 5] for i in range(N)]
        self.graph, self.everyone, self.t = self.parameters.graph(), tuple(range(N)), 3
        self.requests = secagg.Requests(self.parameters)
        self.elements = [secagg.Element(PrimeField(Q), self.graph, 3, self.everyone)]

    def answer(self, user: int, chosen: tuple[int, ...]) -> secagg.Answer | None:
        return self.requests.answer(user, chosen)

    def goes_on(self, survivors: tuple[int, ...]) -> bool:
        return secagg.goes_on(self.parameters, self.graph, self.everyone, survivors)

    def expected(self, choice: Choice) -> Expected:
        survivors, present = choice.users("stays", "after"), choice.users("stays")
        stopped = not self.goes_on(survivors)
        asked = dict.fromkeys(() if stopped else present, survivors) if choice.told is None else dict(choice.told)
        given = {user: self.answer(user, chosen) for user, chosen in asked.items()}
        answers = {user: answer for user, answer in given.items() if answer is not None}
        seen = (choice.users("stays", "late", "after"), answers) if choice.server else ((), {})
        happened = secagg.Situation(self.everyone, survivors, *seen)
        verdicts = tuple(element.view(choice.colluders, happened).decide() for element in self.elements)
        refused = tuple(sorted(set(given) - set(answers)))
        return Expected(verdicts, refused, stopped or len(present) < self.t)


class Cells(Masked):
    protocol = "heterosag"

    def __init__(self) -> None:
        numbers: dict[str, Any] = {"N": 6, "D": 1, "T": 1, "t": 3, "d": 2, "matrix": "cyclic"}
        groups: dict[str, Any] = {"sizes": (3, 3), "subgroups": (1, 1), "levels": (3, 5)}
        self.numbers = {**numbers, **groups, "range": [0, 1]}
        self.inputs = [[i % 3, i % 3 + (i > 2)] for i in range(6)]
        self.cells = HeteroSAg(**numbers, **groups, range=Range(0, 1))
        self.graph, self.everyone, self.t = self.cells.graph(), tuple(range(6)), 3
        plan = heterosag.Plan(self.cells)
        self.elements = [element for cell in self.cells.parts for element in plan.elements((cell,), self.everyone)]

    def answer(self, user: int, chosen: tuple[int, ...]) -> secagg.Answer | None:
        wrong = user not in chosen or len(chosen) < 3 or not self.goes_on(chosen)
        return None if wrong else secagg.honest_answer(self.graph, user, chosen, set(self.everyone) - set(chosen))

    def goes_on(self, survivors: tuple[int, ...]) -> bool:
        return len(survivors) >= self.cells.enough and heterosag.CELLS.admits(self.cells, survivors)


def chosen(users: Sequence[tuple[str, bool]], server: bool = True) -> Choice:
    colluders = tuple(at for at, (_, colludes) in enumerate(users) if colludes)
    return Choice(tuple(fate for fate, _ in users), colluders, server)


def lies(N: int) -> Iterator[Choice]:
    """All ways to tell honest users of at most two that one user of two has dropped, or that it has not."""
    everyone = tuple(range(N))
    for colluders in ((), (0,), (1,), (N - 1,), (1, 2)):
        honest = [user for user in everyone if user not in colluders]
        for target in (0, N - 1):
            without = tuple(user for user in everyone if user != target)
            for said in product((everyone, without), repeat=len(honest)):
                yield Choice(("stays",) * N, colluders, told=tuple(zip(honest, said, strict=True)))


GAMES: Mapping[str, tuple[Callable[[], Light | Masked], Sequence[Choice]]] = {
    "lightsecagg, 3 users": (partial(Light, 3), [chosen(users) for users in product(USER, repeat=3)]),
    "lightsecagg, 4 users": (partial(Light, 4), [chosen(users) for users in combinations_with_replacement(USER, 4)]),
    "lightsecagg, lies": (partial(Light, 4), list(lies(4))),
    "lightsecagg, users alone": (partial(Light, 3), [chosen(users, False) for users in product(USER, repeat=3)]),
    "secagg, 3 users": (partial(Masked, 3), [chosen(users) for users in product(USER, repeat=3)]),
    "secagg, 4 users": (partial(Masked, 4), [chosen(users) for users in combinations_with_replacement(USER, 4)]),
    "secagg, lies": (partial(Masked, 4), list(lies(4))),
    "secagg, lies to 5": (partial(Masked, 5), list(lies(5))),
    "secagg, users alone": (partial(Masked, 3), [chosen(u, False) for u in combinations_with_replacement(USER, 3)]),
    "heterosag, 3 of 6 users": (
        Cells,
        [chosen((*users, *[("stays", False)] * 3)) for users in combinations_with_replacement(USER, 3)],
    ),
    "heterosag, lies": (Cells, list(lies(6))),
}
"""All choices of 3 users; those of 4 users, or of 3 in a subgroup, up to exchanges of users; and lies."""


@cache
def game(name: str) -> Light | Masked:
    return GAMES[name][0]()


@cache
def scripts() -> Mapping[str, str]:
    """The scripts of the page, without the last one, which draws."""
    texts = {name: ROOT / "docs" / "assets" / name for name in play.SCRIPTS[:-1]}
    return {name: play.bundle() if name in play.DATA else path.read_text("utf-8") for name, path in texts.items()}


def played(name: str, scripts: Sequence[str]) -> Sequence[tuple[Choice, dict[str, Any]]]:
    """Return each choice of a game, and what came of it when it was played as the page does."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    this, choices = game(name), GAMES[name][1]
    asked = {"protocol": this.protocol, "numbers": this.numbers, "inputs": this.inputs}
    text = json.dumps({"scripts": scripts, **asked, "choices": [choice.data() for choice in choices]})
    done = run(node, str(ROOT / "tests" / "site" / "play.js"), input=text)
    assert done.returncode == 0, done.stderr
    return tuple(zip(choices, json.loads(done.stdout), strict=True))


@cache
def right(name: str) -> Sequence[tuple[Choice, dict[str, Any]]]:
    """Return the same with the scripts as they are."""
    return played(name, tuple(scripts().values()))


@cache
def expected(name: str, choice: Choice) -> Expected:
    return game(name).expected(choice)


def same(known: Mapping[str, Any], verdict: Verdict) -> bool:
    """Whether a basis of the page spans what a verdict says is learned."""
    names = [f"x_{user}[{element}]" for user, element in known["names"]]
    got = [one["row"] for one in known["basis"]]
    entries = (zip(verdict.secrets, row, strict=True) for row in verdict.excess)
    if not {name for row in entries for name, entry in row if entry} <= {*names}:
        return False
    place = {name: at for at, name in enumerate(verdict.secrets)}
    rows = [[int(row[place[name]]) if name in place else 0 for name in names] for row in verdict.excess]
    matrix = np.array(rows, dtype=np.uint64).reshape(len(rows), len(names))
    return bool(reduced_basis(PrimeField(known["R"]), matrix).tolist() == got)


def differences(name: str, answers: Sequence[tuple[Choice, dict[str, Any]]]) -> Iterator[Choice]:
    """Yield the choices after which the page says something else than the project's own procedure."""
    for choice, answer in answers:
        wanted = expected(name, choice)
        agrees = all(same(known, verdict) for known, verdict in zip(answer["known"], wanted.verdicts, strict=True))
        stopped = choice.told is not None or (answer["stop"] is not None) == wanted.stopped
        if not (agrees and stopped and tuple(answer["refused"]) == wanted.refused):
            yield choice


# -------------------------------------------------------------------------------------------------------- the tests


@pytest.mark.slow
@pytest.mark.parametrize("name", part(2, GAMES))
def test_the_page_says_what_the_procedure_says(name: str) -> None:
    assert list(differences(name, right(name))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", part(3, GAMES))
def test_what_is_learned_has_its_true_value(name: str) -> None:
    inputs = game(name).inputs
    for choice, answer in right(name):
        for known in answer["known"]:
            x = [inputs[user][element] for user, element in known["names"]]
            for one in known["basis"]:
                total = sum(factor * value for factor, value in zip(one["row"], x, strict=True))
                assert (total - one["value"]) % known["R"] == 0, choice
        if len(answer["sums"]) == 1:
            columns = zip(*(inputs[user] for user in choice.users("stays", "after")), strict=True)
            assert answer["sums"] == [[sum(column) % Q for column in columns]]


PLANTED = {
    "shares of a colluder are not seen": ("if (colluders.includes(j) && !", "if (false && !", "lightsecagg, 3 users"),
    "a masked update is not seen": (
        'if (curious) see(i, "its m',
        'if (curious && i) see(i, "its m',
        "lightsecagg, 3 users",
    ),
    "answers are not seen": ("else if (curious &&", "else if (false &&", "lightsecagg, lies"),
    "late inputs are not seen": ('user] !== "before") : []', 'user] === "stays") : []', "secagg, 4 users"),
    "a share in an answer is not seen": ("((owner, at) => see(", "((owner, at) => at && see(", "secagg, 3 users"),
    "seeds of colluders are not shared": ('see(owner, "seed", holder, seed)', "void seed", "secagg, lies to 5"),
    "one share more is needed": ("if (held.size < t)", "if (held.size <= t)", "secagg, lies"),
    "a recovered key gives no masks": ("of key ? users", "of false ? users", "secagg, 4 users"),
    "a known stream stays unknown": ("known: words.has(name)", "known: false", "heterosag, lies"),
    "elimination stops early": ("of [...left, ...done])", "of done)", "secagg, 3 users"),
}
"""What is planted: the text that is replaced, that which replaces it, and the game that finds it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", part(2, PLANTED))
def test_an_error_in_the_page_is_found(name: str) -> None:
    before, after, where = PLANTED[name]
    text = scripts()["play-round.js"]
    assert text.count(before) == 1, "the error is planted in one place"
    planted = {**scripts(), "play-round.js": text.replace(before, after)}
    assert any(differences(where, played(where, tuple(planted.values()))))


WORDS = {
    ("secagg, 4 users", Choice(("stays", "stays", "stays", "before"), ())): (
        "The server learned the sum of users 0, 1 and 2 and nothing else.",
        [["the sum of users 0, 1 and 2", 48]],
        [],
    ),
    ("secagg, 3 users", Choice(("stays", "after", "stays"), (2,))): (
        "The server with user 2 learned nothing about the values of the other users.",
        [],
        [],
    ),
    ("secagg, 3 users", Choice(("stays",) * 3, (0, 2))): (
        "The server with users 0 and 2 learned the value of user 1 and nothing else.",
        [["the value of user 1", 16]],
        [1],
    ),
    ("secagg, users alone", Choice(("stays",) * 3, (), False)): ("Nobody looks at what was sent.", [], []),
}


@pytest.mark.slow
def test_a_verdict_is_put_into_words() -> None:
    for (name, choice), words in WORDS.items():
        answer = dict(right(name))[choice]
        assert (answer["verdict"], answer["items"], answer["exposed"]) == words


# ------------------------------------------------------------------------------------------------- in a browser

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Play</title><link rel="icon" href="data:,">'
CONTRAST = (ROOT / "tests" / "site" / "contrast.js").read_text(encoding="utf-8").strip()
SAID = "document.querySelector('#play .play-said').textContent"
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Enter": 13}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page, with what it loads; of the frame of the site there is only the body."""
    out = tmp_path_factory.mktemp("play")
    shutil.copytree(ROOT / "docs" / "assets", out / "assets", ignore=shutil.ignore_patterns("experiments"))
    play.write(out)
    text = (ROOT / "docs" / play.PAGE).read_text(encoding="utf-8")
    body = text[text.index("<link") : text.rindex("</script>") + len("</script>")]
    folder = (out / play.PAGE).with_suffix("")
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(f"{HEAD}</head><body>{body}</body></html>", encoding="utf-8")
    with served(out) as url:
        yield f"{url}/{play.PAGE.removesuffix('.md')}/"


def test_the_page_loads_the_scripts_in_their_order() -> None:
    text = (ROOT / "docs" / play.PAGE).read_text(encoding="utf-8")
    assert re.findall(r'src="../../assets/([^"]+)"', text) == list(play.SCRIPTS)


def test_a_module_that_needs_more_of_node_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in play.ROOTS:
        (tmp_path / f"{name}.js").write_text("require('node:fs');", encoding="utf-8")
    monkeypatch.setattr(play, "MODULES", tmp_path)
    with pytest.raises(SiteError, match=r"heterosag\.js needs node:fs"):
        play.bundle()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_is_played_by_clicks_and_keys(page: str, window: Browser, width: int, scheme: str) -> None:
    window.show(width, 900, scheme)
    window.open(page)
    first = "The server learned the sum of users 0, 1, 3 and 4 and nothing else."
    assert window.run(SAID) == first
    static = window.run("document.getElementById('play-static').textContent").replace("\n", " ")
    assert first.removesuffix(" and nothing else.") in static
    window.run("document.querySelectorAll('#play .play-user')[1].focus()")
    for key in ("ArrowRight", "Enter"):
        window.press(key, KEYS[key])
    assert window.run(SAID) == "The server learned the sum of users 0, 1, 2, 3 and 4 and nothing else."
    assert window.run("document.activeElement.textContent") == "User 2, whose value is 21: stays to the end"
    window.run("document.querySelector('#play [value=collude]').click()")
    for key in ("ArrowLeft", "Enter"):
        window.press(key, KEYS[key])
    assert window.run(SAID) == "The server with user 1 learned the sum of users 0, 2, 3 and 4 and nothing else."
    window.run("document.querySelector('#play .play-lie input').click()")
    assert window.run(SAID) == "The server with user 1 learned more than a sum."
    assert window.run("document.querySelector('#play .play-verdict li').textContent") == "the value of user 0: 12"
    window.run("document.querySelector('#play .play-server').click()")
    assert window.run(SAID) == "User 1 learned nothing about the values of the other users."
    assert window.run(f"({CONTRAST})('#play *')") == []
    assert window.width() <= width


TRIED = {
    (
        "secagg",
        "collude",
        (1,),
        False,
    ): "The server with user 1 learned the sum of users 0, 2, 3 and 4 and nothing else.",
    ("secagg", "collude", (1, 2, 3), False): "More: the value of user 0: 12; the value of user 4: 5",
    ("secagg", "collude", (1,), True): "More: the value of user 0: 12; the sum of users 2, 3 and 4: 33",
    ("lightsecagg", "collude", (1,), True): "More: the value of user 0: (12, 4); the sum of users 2, 3 and 4: (33, 18)",
    ("lightsecagg", "collude", (1, 2), False): "More: a combination of the numbers of user 0: x0[0] + ",
    ("lightsecagg", "before", (0, 1, 2), False): "The server learned nothing about the values of the users.",
    ("heterosag", "collude", (1,), True): "Safe",
    ("heterosag", "collude", (1, 2), True): "More: the value of user 0 in segment 0 (users 0 to 7): 3; ",
}
TRY = """((protocol, action, users, lies) => {
  const list = document.querySelector("#play select");
  list.value = protocol;
  list.dispatchEvent(new Event("change"));
  document.querySelector(`#play [value=${action}]`).click();
  for (const user of users) document.querySelectorAll("#play .play-user")[user].click();
  if (lies) document.querySelector("#play .play-lie input").click();
  const said = document.querySelector("#play .play-said").textContent;
  const items = [...document.querySelectorAll("#play .play-verdict li")].map((item) => item.textContent);
  return [said, `More: ${items.join("; ")}`, document.querySelectorAll("#play .exposed").length];
})"""


@pytest.mark.slow
def test_what_the_page_says_to_try_comes_out_as_it_says(page: str, window: Browser) -> None:
    window.show(390, 900, "dark")
    window.open(page)
    for tried, expected in TRIED.items():
        said, items, exposed = window.run(f"{TRY}(...{json.dumps(tried)})")
        found = items if said.endswith(" learned more than a sum.") else said
        assert found.startswith(expected) if expected != "Safe" else exposed == 0, (tried, said, items)
        assert window.width() <= 390


@pytest.mark.slow
def test_the_page_says_what_the_parameters_of_each_game_allow(address: str, window: Browser) -> None:
    window.open(f"{address}/tutorials/play-a-round/")
    for name in ("secagg", "lightsecagg", "heterosag"):
        window.run(
            f"(() => {{ const s = document.querySelector('#play select'); s.value = '{name}'; "
            "s.dispatchEvent(new Event('change')); })()"
        )
        numbers = window.run(f"playRound.open('{name}').numbers")
        said = window.run("document.querySelector('.play-rules').textContent")
        needed = "U = {U} answers give the sum" if "U" in numbers else "t = {t} shares rebuild a secret"
        allowed = (
            "Of N = {N} users, D = {D} may drop out, and T = {T} may work with the server and learn no more than the "
        )
        assert said == f"{allowed}sum; {needed}.".format(**numbers)
