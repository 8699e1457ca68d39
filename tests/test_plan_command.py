"""``secagg-spec plan``: what it prints, as text and as data, and one clear line for bad input."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from secagg_spec import resources
from secagg_spec.arithmetic import numerals
from secagg_spec.cli import main
from secagg_spec.commands.plan import as_json, lines
from secagg_spec.planning import plan
from secagg_spec.planning.choices import PROTOCOLS
from secagg_spec.planning.odds import logarithm
from secagg_spec.planning.wishes import Wish

PHONES = ("--users", "1000", "--dimension", "1e6", "--dropout", "0.1", "--colluders", "0.2")
TOO_MANY = ("--users", "1000", "--dimension", "1e6", "--colluders", "0.9", "--no-times")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    try:
        code = main(["plan", *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.slow
@pytest.mark.requirement("PLN-11", "PLN-13")
def test_a_thousand_phones_take_secagg_plus(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.process_time()
    code, out, err = call(capsys, *PHONES)
    assert (code, err) == (0, "")
    assert time.process_time() - begun < 10
    assert len(out.splitlines()) <= 45
    assert (
        "take SecAgg+    SAG-01, SAG-02\n  R = 2^32, N = 1000, D = 149, T = 200, t = 48, k = 80, d = 1000000\n" in out
    )
    rows = re.findall(r"^(SecAgg\+|SecAgg|LightSecAgg|HeteroSAg)  +\d", out, re.MULTILINE)
    assert rows == ["SecAgg+", "SecAgg", "LightSecAgg", "HeteroSAg"]
    seconds = re.findall(r"~[\d.e-]+ +~[\d.e-]+ +[~<] ", out)
    assert len(seconds) == 4
    assert "~ scaled from small rounds, timed here" in " ".join(out.split())
    assert "BASecAgg, BASA: for users that answer late (--asynchronous)" in out
    assert "This is for one round: --rounds says for how many" in " ".join(out.split())
    assert "\x1b" not in out
    assert not re.findall(r"~\d", call(capsys, *PHONES, "--no-times")[1])
    assert "for one round" not in call(capsys, *PHONES[:-2], "--dropout", "0", "--rounds", "2", "--no-times")[1]


@pytest.mark.requirement("PLN-14")
@pytest.mark.parametrize("more", [(), ("--asynchronous",), ("--rounds", "50"), ("--dropout", "0", "--rounds", "50")])
def test_each_figure_of_the_data_names_its_place(capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    given = PHONES if "--dropout" not in more else (*PHONES[:4], *PHONES[6:])
    code, out, _ = call(capsys, *given, *more, "--json", "--no-times")
    found = json.loads(out)
    assert code == (0 if found["choices"] else 1)
    for choice in found["choices"]:
        assert choice["clauses"]
        assert set(choice["clauses"]) <= set(resources.clauses())
        for figure in choice["figures"].values():
            assert isinstance(figure["value"], int | float)
            assert is_place(figure["source"])
    assert all(is_place(out["source"]) and out["reason"] for out in found["out"])
    assert len(found["choices"]) + len(found["out"]) == len(PROTOCOLS)


def is_place(source: str) -> bool:
    """Whether a source is a clause, or a part of a page of the text that is there."""
    if source in resources.clauses():
        return True
    page, _, part = source.partition(", ")
    text = (resources.root("spec") / page.removeprefix("spec/")).read_text(encoding="utf-8")
    if part.startswith("section "):
        return bool(re.search(rf"^## (\d+\. )?{re.escape(part.removeprefix('section '))}\b", text, re.MULTILINE))
    return {"introduction": True, "table of phases": "| phase | role |" in text}[part]


WISHES = [Wish(300, 1000, Fraction(1, share), Fraction(1, 10)) for share in (10, 10**6)]
WISHES += [replace(WISHES[0], failure=Fraction(1, 3), leak=Fraction(1, 3)), Wish(30, 9, Fraction(1, 3), Fraction(0))]


@pytest.mark.requirement("PLN-03")
@pytest.mark.parametrize("wish", WISHES, ids=range(len(WISHES)))
def test_what_is_printed_as_a_bound_is_one(wish: Wish) -> None:
    found = plan.plan(wish)
    text = "\n".join(lines(found, {}))
    best = re.search(r"by (\S+) \(standard", " ".join(text.split()))
    assert best is not None
    assert float(best[1]) >= found.choices[0].noise
    for choice in found.choices:
        title = re.escape(PROTOCOLS[choice.protocol].title)
        row = re.search(rf"^{title}  +\d.*x  +(never|[<~] \S+)  +(never|[<~] \S+)  +(\S+)$", text, re.MULTILINE)
        assert row is not None
        assert choice.noise <= float(row[3]) <= 1.1 * choice.noise
        for shown, one in zip(row.groups(), (choice.failure, choice.leak), strict=False):
            sign, _, number = shown.partition(" ")
            assert sign == ("never" if not one.value else "~" if one.exact else "<")
            if one.value:
                times = numerals.number("shown", number) / one.value
                assert times >= 1 or (one.exact and times > (0.7 if "^" in number else 0.95))
                assert times <= (1.1 if "^" not in number else 1.5 if one.exact else 2)


@pytest.mark.requirement("PLN-03")
@pytest.mark.parametrize("wish", WISHES, ids=range(len(WISHES)))
def test_no_probability_of_the_data_becomes_0_or_less_than_it_is(wish: Wish) -> None:
    found = plan.plan(wish)
    for choice, given in zip(found.choices, as_json(found, {})["choices"], strict=True):
        for name, odds in (("round_fails", choice.failure), ("privacy_fails", choice.leak)):
            figure = given["figures"][name]
            assert figure["exact"] == odds.exact
            assert ("value" in figure) == (not odds.value or odds.value >= Fraction(1, 2**1022))
            if "value" in figure:
                assert odds.value <= figure["value"] <= odds.value * (1 + Fraction(1, 2**52))
            if odds.value:
                assert figure["log2"] == pytest.approx(logarithm(odds.value), abs=1e-9)
            else:
                assert figure["log2"] is None


def test_a_probability_below_all_floats_has_a_logarithm_alone() -> None:
    found = as_json(plan.plan(WISHES[1]), {})["choices"]
    figure = next(one["figures"]["round_fails"] for one in found if one["protocol"] == "SecAgg")
    assert set(figure) == {"source", "log2", "exact"}
    assert figure["log2"] < -1074


@pytest.mark.slow
@pytest.mark.requirement("PLN-13", "PLN-14")
def test_seconds_are_marked_in_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--users", "30", "--dimension", "100", "--dropout", "0.01", "--json")
    assert code == 0
    for choice in json.loads(out)["choices"]:
        for name in ("user_seconds", "server_seconds"):
            figure = choice["figures"][name]
            assert figure["scaled"] is True
            assert figure["value"] > 0
            assert figure["source"] == "PLN-13"


@pytest.mark.requirement("PLN-10", "PLN-12")
def test_a_wish_that_nothing_satisfies_is_told_what_fails_and_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *TOO_MANY)
    assert (code, err) == (1, "")
    text = " ".join(out.split())
    assert "SecAgg: N - D = 1000 - 148 = 852 users may be left, and with T = 900 colluders T + 2 are needed" in text
    assert "it would do with --colluders 0.843, or --dropout 0.059" in text
    assert "No protocol satisfies all of this." in text
    assert "take" not in text
    near = next(one for one in json.loads(call(capsys, *TOO_MANY, "--json")[1])["out"] if one["protocol"] == "SecAgg")
    assert near["nearest"] == ["--colluders 0.843", "--dropout 0.059"]


@pytest.mark.requirement("PLN-01")
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--users", "1e9", "users = 1000000000: must be an integer in [3, 1000000]"),
        ("--users", "-4", "users = -4: must be an integer in [3, 1000000]"),
        ("--users", "2.5", "users = '2.5': must be a whole number, as 1000 or 1e6 are"),
        ("--dimension", "1e12", "dimension = 1000000000000: must be an integer in [1, 4294967295]"),
        (
            "--dimension",
            "1e9999999",
            "dimension = '1e9999999': must be of at most 30 characters, with at most 3 digits in an exponent",
        ),
        ("--dropout", "nan", "dropout = 'nan': must be a number, as 1000, 1e6, 0.1, 1/3 or 2^-40 are"),
        ("--dropout", "inf", "dropout = 'inf': must be a number, as 1000, 1e6, 0.1, 1/3 or 2^-40 are"),
        ("--dropout", "1/0", "dropout = '1/0': must be a number, as 1000, 1e6, 0.1, 1/3 or 2^-40 are"),
        ("--dropout", "1.5", "dropout = 1.5: must be a probability, 0 or from 2^-1000 to 1 - 2^-53"),
        ("--dropout", "1", "dropout = 1: must be a probability, 0 or from 2^-1000 to 1 - 2^-53"),
        ("--colluders", "-0.1", "colluders = -0.1: must be a probability, 0 or from 2^-1000 to 1 - 2^-53"),
        ("--colluders", "200", "colluders = 200: must be a probability, 0 or from 2^-1000 to 1 - 2^-53"),
        ("--dropout", "1e-400", "dropout = "),
        ("--dropout", "0.99999999999999999", "dropout = "),
        ("--dropout", "1e-400", "dropout = '1e-400': must be a probability, 0 or from 2^-1000 to 1 - 2^-53"),
        ("--leak", "1e-302", "leak = 1e-302: must be a probability, from 2^-1000 to 1 - 2^-53"),
        ("--rounds", "0", "rounds = 0: must be an integer in [1, 10000]"),
        ("--clip", "0", "clip = 0: must be at least 2^-64 and at most 2^32"),
        ("--failure", "0", "failure = 0: must be a probability, from 2^-1000 to 1 - 2^-53"),
        ("--leak", "2^-1001", "leak = 4.6663180925160944e-302: must be a probability, from 2^-1000 to 1 - 2^-53"),
        ("--leak", "2^9999", "leak = an integer of 10000 bits: must be a probability, from 2^-1000 to 1 - 2^-53"),
        (
            "--leak",
            "2^99999",
            "leak = '2^99999': must be of at most 30 characters, with at most 3 digits in an exponent, or 4",
        ),
        ("--leak", "", "leak = '': must be a number, as 1000, 1e6, 0.1, 1/3 or 2^-40 are"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_allowed(
    capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    given: dict[str, Any] = {**dict(zip(PHONES[::2], PHONES[1::2], strict=True)), option: value}
    code, out, err = call(capsys, *(f"{name}={text}" for name, text in given.items()))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"secagg-spec plan: --{said}")


@pytest.mark.requirement("PLN-01")
@pytest.mark.parametrize("given", ["2^-1000", "1e-300", "0.9999999", "1/3", "0.5", "0.999999999999999888"])
def test_a_probability_is_shown_as_it_counts(capsys: pytest.CaptureFixture[str], given: str) -> None:
    value = float(numerals.number("p", given))
    wish = tuple(given if word == "0.1" else word for word in PHONES)
    words = " ".join(call(capsys, *wish)[1].split())
    assert float(words.partition("drops out with probability ")[2].partition(";")[0]) == value
    assert json.loads(call(capsys, *wish, "--json")[1])["wish"]["dropout"] == value
    assert 0 < value < 1


@pytest.mark.parametrize("given", ["0.999", "0.9999999", "1e-300", "9.4e-302", "0.123456", "0.0123456", "0.333333333"])
@pytest.mark.parametrize(
    ("option", "before"), [("--failure", "may fail with probability "), ("--leak", "privacy with ")]
)
def test_what_may_fail_is_shown_as_it_was_typed(
    option: str, before: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(call(capsys, *PHONES, option, given)[1].split())
    assert float(words.partition(before)[2].replace(",", " ").split()[0].rstrip(".")) == float(given)


def test_numbers_that_are_missing_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--users", "10")
    assert (code, out) == (2, "")
    assert "the following arguments are required: --dimension" in err
    assert err.count("\n") == 1


def test_large_updates_of_many_users_are_planned_without_their_size_in_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = call(capsys, "--users", "1e6", "--dimension", "4294967295", "--no-times")
    assert code == 0
    assert "17 GB" in out


def test_colours_are_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secagg_spec.terminal.colours", lambda stream: True)
    assert "\x1b[32mtake SecAgg+\x1b[0m" in call(capsys, *PHONES, "--no-times")[1]


def test_the_clause_of_the_level_is_that_of_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--users", "30", "--dimension", "1e5", "--clip", "4e9", "--no-times")
    (best, *_) = json.loads(call(capsys, *given, "--json")[1])["choices"]
    assert (best["protocol"], best["figures"]["level"]["source"]) == ("HeteroSAg", "HSA-03")
    assert "\n  levels 2^16: no sum wraps around (HSA-03), and rounding" in call(capsys, *given)[1]
