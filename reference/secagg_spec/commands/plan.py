"""The command ``secagg-spec plan``: which protocol to choose, with which parameters, and what it costs."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from math import inf, log10, nextafter
from sys import float_info
from typing import Any

from secagg_spec import terminal
from secagg_spec.arithmetic.numerals import number, whole
from secagg_spec.planning.choices import PROTOCOLS, Choice, Odds, Out
from secagg_spec.planning.odds import logarithm
from secagg_spec.planning.plan import Plan, nearest, plan
from secagg_spec.planning.wishes import Wish
from secagg_spec.privacy.sparse import exponent
from secagg_spec.simulate.narration import counted
from secagg_spec.terminal import painted

_COST = "bytes: section 'Costs' of the page of each protocol; probabilities: ~ to two digits, < at most; noise: at most"
_SCALED = f"{_COST}; seconds: ~ scaled from small rounds, timed here"
_TINY = Fraction(1, 10**99)
_EPILOG = """Numbers may be written as 1000, 1e6, 0.1, 1/3 or 2^-40.

Bytes and probabilities follow from the formulas of the text. A probability with '~' is shown to two digits, or as the
nearest power of two; '<' is an upper bound, rounded up. Seconds are those of small rounds that are timed while the
command runs, scaled as costs grow in the text: an estimate, on one processor of this machine, with this
implementation. The server follows the protocol; for one that may lie take the active profile. spec/planning.md has the
rules.

exit codes:
  0  there is a protocol
  1  there is none
  2  wrong usage"""


def add_parser(commands: Any) -> None:
    """Add ``plan`` to the commands."""
    parser = commands.add_parser(
        "plan",
        description="Say which protocols suit a deployment, best first, with parameters, bytes, time and\n"
        "probabilities, and why the others do not.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--users", metavar="N", required=True, help="users of a round")
    add("--dimension", metavar="d", required=True, help="numbers of an update")
    add("--dropout", metavar="P", default="0.1", help="the probability that a user drops out of a round (0.1)")
    add("--colluders", metavar="P", default="0.1", help="share of users that may collude with the server (0.1)")
    add("--rounds", metavar="J", default="1", help="rounds over the same users (1)")
    add("--asynchronous", action="store_true", help="users answer when they have trained, not all at one time")
    add("--clip", metavar="X", default="1", help="numbers of an update are in [-X, X] (1)")
    add("--failure", metavar="P", default="1e-6", help="probability with which a round may fail (1e-6)")
    add("--leak", metavar="P", default="2^-40", help="probability with which privacy may, in all rounds (2^-40)")
    add("--no-times", dest="times", action="store_false", help="do not measure; print no seconds")
    add("--json", action="store_true", help="print all numbers as JSON, each with the place of its formula")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command; return 0 when a protocol satisfies the wish, 1 when none does."""
    found = plan(_wish(options))
    seconds = _seconds(found) if options.times else {}
    print(json.dumps(as_json(found, seconds), indent=1) if options.json else "\n".join(lines(found, seconds)))
    return 0 if found.choices else 1


def _wish(options: argparse.Namespace) -> Wish:
    return Wish(
        whole("users", options.users),
        whole("dimension", options.dimension),
        number("dropout", options.dropout),
        number("colluders", options.colluders),
        whole("rounds", options.rounds),
        options.asynchronous,
        number("clip", options.clip),
        number("failure", options.failure),
        number("leak", options.leak),
    )


def _seconds(found: Plan) -> dict[str, tuple[float, float]]:
    """Return the seconds of a user and of the server, for each choice."""
    from secagg_spec.planning import times  # noqa: PLC0415

    progress = terminal.Progress()
    measured = {}
    for choice in progress.follow(found.choices, lambda choice: f"timing small rounds for {_title(choice)}"):
        scaled = times.scaled(choice, found.wish)
        measured[choice.protocol] = (scaled.user, scaled.server)
    return measured


def _title(one: Choice | Out) -> str:
    return PROTOCOLS[one.protocol].title


# ------------------------------------------------------------------------------------------------- printed text


def lines(found: Plan, seconds: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Yield the lines that are printed: the best choice, a table, what is out, a conclusion, the next command."""
    yield from _wrapped(_asked(found.wish))
    yield ""
    if found.choices:
        yield from _best(found.choices[0])
        yield ""
        yield from _table(found.choices, seconds)
        yield ""
        yield from _parameters(found.choices[1:])
    yield from _outs(found)
    yield ""
    yield from _wrapped(_conclusion(found))
    yield from _next(found)


def _asked(wish: Wish) -> str:
    kind = "answer when they have trained" if wish.asynchronous else "answer at one time"
    over = f"over {wish.rounds:,} rounds " if wish.rounds > 1 else ""
    clip, p = float(wish.clip), float(wish.dropout)
    each = f"{counted(wish.dimension, 'number')} in [{_short(-clip)}, {_short(clip)}] each"
    return (
        f"{wish.users:,} users that {kind}, {each}; a user drops out with probability {_short(p)}; up to "
        f"{counted(wish.colluding, 'colluder')} with the server. "
        f"A round may fail with probability {_wished(wish.failure)}, privacy {over}with {_wished(wish.leak)}."
    )


def _best(choice: Choice) -> Iterator[str]:
    yield painted(f"take {_title(choice)}", "good") + f"    {', '.join(choice.clauses)}"
    yield from _wrapped(_numbers(choice), "  ")
    level = "levels" if choice.protocol == "heterosag" else "level"
    yield from _wrapped(
        f"{level} {_level(choice)}: no sum wraps around ({_bounded(choice)}), and rounding moves a number of the mean "
        f"by {_noise(choice)} (standard deviation, at most)", "  ",
    )  # fmt: skip


def _bounded(choice: Choice) -> str:
    """Return the clause that bounds the level of a choice."""
    return "HSA-03" if choice.protocol == "heterosag" else "QNT-04"


def _level(choice: Choice) -> str:
    return f"2^{choice.level.bit_length() - 1}" if choice.level & (choice.level - 1) == 0 else str(choice.level)


def _numbers(choice: Choice) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in choice.numbers.items())


def _value(value: int | str) -> str:
    known = {2**32: "2^32", 2**32 - 5: "2^32 - 5"}
    return known.get(value, str(value)) if isinstance(value, int) else value


def _table(choices: Sequence[Choice], seconds: dict[str, tuple[float, float]]) -> Iterator[str]:
    heads = [("", "protocol"), ("a user", "sends"), ("a user", "receives"), ("server", "sends"), ("user", "answers")]
    heads += [("user", "seconds"), ("server", "seconds")] if seconds else []
    heads += [("round", "fails"), ("privacy", "fails"), ("noise of", "the mean")]
    rows = [_row(choice, seconds) for choice in choices]
    widths = [max(len(row[at]) for row in (*zip(*heads, strict=True), *rows)) for at in range(len(heads))]
    for at, row in enumerate((*zip(*heads, strict=True), *rows)):
        line = "  ".join(
            f"{cell:{width}}" if not place else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield painted(line.rstrip(), "strong") if at == 2 else line.rstrip()
    yield from (painted(line, "faint") for line in _wrapped(_SCALED if seconds else _COST))


def _row(choice: Choice, seconds: dict[str, tuple[float, float]]) -> tuple[str, ...]:
    sizes = (in_bytes(choice.sends), in_bytes(choice.receives), in_bytes(choice.server), f"{choice.steps}x")
    times = tuple(f"~{_two(second)}" for second in seconds[choice.protocol]) if seconds else ()
    return (_title(choice), *sizes, *times, _odds(choice.failure), _odds(choice.leak), _noise(choice))


def _parameters(choices: Sequence[Choice]) -> Iterator[str]:
    for choice in choices:
        text = f"{_title(choice)}: {_numbers(choice)}, level {_level(choice)}"
        shows = "" if choice.shows == "the sum" else f"; shows {choice.shows}"
        yield from _wrapped(f"{text}{shows} ({', '.join(choice.clauses)})", "  ")


def _outs(found: Plan) -> Iterator[str]:
    yield painted("out", "bad" if not found.choices else "strong")
    alike: dict[tuple[str, str], list[str]] = {}
    for out in found.out:
        if out.wrong_kind:
            alike.setdefault((out.reason, out.source), []).append(_title(out))
            continue
        yield from _wrapped(f"{_title(out)}: {out.reason} ({out.source})", "  ")
        if not found.choices:
            near = ", or ".join(option for option, _ in nearest(found.wish, out.protocol))
            if near:
                yield from _wrapped(f"it would do with {near}", "    ")
    for (reason, source), titles in alike.items():
        yield from _wrapped(f"{', '.join(titles)}: {reason} ({source})", "  ")


def _conclusion(found: Plan) -> str:
    if not found.choices:
        return "No protocol satisfies all of this. Change a number above, or allow more with --failure and --leak."
    best = found.choices[0]
    second = next(iter(found.choices[1:]), None)
    more = f", {best.bytes / second.bytes:.0%} of the bytes of {_title(second)}" if second else ""
    text = (
        f"Take {_title(best)}: the server learns {best.shows}, a user sends and receives {in_bytes(best.bytes)}{more}."
    )
    if found.wish.rounds == 1:
        text += " This is for one round: --rounds says for how many the same users stay hidden."
    if found.wish.asynchronous and found.wish.rounds > 1:
        text += " Sums of several buffers can be combined, and no protocol of the text for late users prevents that."
    return text


def _next(found: Plan) -> Iterator[str]:
    if found.choices:
        commands = {"secagg-plus": "secagg --neighbours 6", "multi-round": "multiround"}
        name = found.choices[0].protocol
        yield f"next: secagg-spec simulate {commands.get(name, name)}"
    yield "rules and formulas: spec/planning.md"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, terminal.width(), initial_indent=indent, subsequent_indent=indent + "  " * bool(indent),
        break_on_hyphens=False,
    )  # fmt: skip


def in_bytes(count: int) -> str:
    """Return a number of bytes with two digits and a unit."""
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    step = min(int(log10(max(count, 1))) // 3, len(units) - 1)
    return f"{_two(count / 1000**step) if step else count} {units[step]}"


def _two(number: float) -> str:
    """Return a number with two significant digits or all digits before the point."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 0.1 else f"{number:.1g}"


def _odds(odds: Odds) -> str:
    """Return a probability to two digits, or one of at most 1e-99 as a power of two; a bound is rounded up."""
    value, up = odds.value, not odds.exact
    if not value:
        return "never"
    if value <= _TINY:
        shown = f"2^{-exponent(value) if up else round(logarithm(value))}"
    else:
        shown = _power(value) or f"{_digits(value, ROUND_CEILING if up else ROUND_HALF_EVEN):.2g}"
    return ("< " if up else "~ ") + shown


def _noise(choice: Choice) -> str:
    return f"{_digits(Fraction(choice.noise), ROUND_CEILING):.1e}"


def _digits(value: Fraction, rounding: str) -> float:
    """Return a number of two digits, rounded as a mode of `decimal` says."""
    return float(Context(prec=2, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator)))


def _short(number: float) -> str:
    """Return a number in at most 6 digits if these are all, else with all its digits: 0.9999999 is not 1."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _wished(value: Fraction) -> str:
    """Return a probability of the wish with all its digits."""
    return _power(value) or _short(float(value))


def _power(value: Fraction) -> str:
    """Return a probability as a power of two when it is one, else nothing."""
    whole_power = value.numerator == 1 and value.denominator.bit_count() == 1
    return f"2^-{value.denominator.bit_length() - 1}" if whole_power else ""


# --------------------------------------------------------------------------------------------------------- JSON


def as_json(found: Plan, seconds: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return the plan as JSON: each figure with its value and the place of its formula."""
    wish = found.wish
    return {
        "wish": {
            "users": wish.users,
            "dimension": wish.dimension,
            "rounds": wish.rounds,
            "asynchronous": wish.asynchronous,
            "colluders": wish.colluding,
            **{name: float(getattr(wish, name)) for name in ("dropout", "clip", "failure", "leak")},
        },
        "choices": [_choice_as_json(choice, seconds.get(choice.protocol)) for choice in found.choices],
        "out": [_out_as_json(found, out) for out in found.out],
    }


def _choice_as_json(choice: Choice, seconds: tuple[float, float] | None) -> dict[str, Any]:
    page = f"spec/{PROTOCOLS[choice.protocol].page}"
    each = f"spec/{choice.numbers['rounds']}.md" if "rounds" in choice.numbers else page
    costs = f"{each}, section Costs"
    times = (
        {
            "user_seconds": _figure(seconds[0], "PLN-13", scaled=True),
            "server_seconds": _figure(seconds[1], "PLN-13", scaled=True),
        }
        if seconds
        else {}
    )
    return {
        "protocol": _title(choice),
        "page": page,
        "parameters": dict(choice.numbers),
        "clauses": list(choice.clauses),
        "learned": choice.shows,
        "figures": {
            "user_sends_bytes": _figure(choice.sends, costs),
            "user_receives_bytes": _figure(choice.receives, costs),
            "server_sends_bytes": _figure(choice.server, costs),
            "user_answers": _figure(choice.steps, f"{each}, table of phases"),
            "level": _figure(choice.level, _bounded(choice)),
            "noise_of_mean": _figure(choice.noise, "spec/conventions.md, section 4"),
            "round_fails": _odds_as_json(choice.failure),
            "privacy_fails": _odds_as_json(choice.leak),
            **times,
        },
    }


def _figure(value: float, source: str, **more: Any) -> dict[str, Any]:
    return {"value": value, "source": source, **more}


def _odds_as_json(odds: Odds) -> dict[str, Any]:
    """Return a probability, rounded up, and its logarithm; one below all normal floats is its logarithm alone."""
    log2, value = logarithm(odds.value) if odds.value else None, float(odds.value)
    figure = _figure(value if value >= odds.value else nextafter(value, inf), odds.source)
    if log2 is not None and value < float_info.min:
        log2 = nextafter(log2, inf)
        del figure["value"]
    return {**figure, "log2": log2, "exact": odds.exact}


def _out_as_json(found: Plan, out: Out) -> dict[str, Any]:
    said = {"protocol": _title(out), "reason": out.reason, "source": out.source}
    near = [] if found.choices or out.wrong_kind else [option for option, _ in nearest(found.wish, out.protocol)]
    return {**said, "nearest": near}
