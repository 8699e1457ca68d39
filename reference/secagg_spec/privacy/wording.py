"""Format words and numbers for the reports on privacy: users, elements, functionals.

All but `numbers` are for checked arguments: what the reports themselves make.
"""

from __future__ import annotations

from collections.abc import Sequence

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError

LINE = 60
LINES = 4
WIDTH = 110
_DIGITS = 20
"""The most digits of a number in an option."""
PROVES = (
    "what this proves, and what not: docs/explanation/privacy-verdicts.md\n"
    "  (private channels, uniform masks and noise, everyone follows the protocol)"
)


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the comma-separated whole numbers in an option's value.

    Raises
    ------
    ParameterError
        The value holds anything else, or is no text.
    """
    text = validate.instance(option, text, str)
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) <= _DIGITS):
            raise ParameterError(
                option, part, f"whole numbers with commas between, as in 0,1,2, each of at most {_DIGITS} digits"
            )
    return tuple(int(part) for part in parts)


def dimensions(count: int) -> str:
    """Return a count of dimensions in words, for checked arguments."""
    return f"{count} dimension{'' if count == 1 else 's'}"


def elements(chosen: Sequence[int]) -> str:
    """Return the numbers of elements in words, for checked arguments."""
    return f"element{'' if len(chosen) == 1 else 's'} {runs(chosen, most=4)}"


def users(chosen: Sequence[int]) -> str:
    """Return a coalition or another set of users in words, for checked arguments."""
    if not chosen:
        return "the server alone"
    return f"{'user' if len(chosen) == 1 else 'users'} {runs(chosen)}"


def runs(values: Sequence[int], most: int = 12) -> str:
    """Return numbers in words as in ``0 to 3, 5``, for checked arguments: runs are joined, and long lists are cut."""
    found: list[list[int]] = []
    for number in values:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    words: list[str] = []
    for run in found:
        words.extend([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))
    return ", ".join(words[:most]) + (f", … ({len(values)} in all)" if len(words) > most else "")


def size(T: int, count: int) -> str:
    """Return the size of a coalition in words, compared with T, for checked arguments."""
    word = "user" if count == 1 else "users"
    return f"T + {count - T} = {count} {word}" if count > T else f"{count} {word}, T = {T}"


def clipped(text: str, width: int) -> str:
    """Return a text cut to a width, for checked arguments."""
    return text if len(text) <= width else text[: width - 2] + " …"


def first(functionals: Sequence[str]) -> str:
    """Return as many functionals as fit on one line, and the number of the remaining ones, for checked arguments."""
    shown = [clipped(functionals[0], LINE)]
    for text in functionals[1:]:
        if len("; ".join([*shown, text])) > LINE:
            break
        shown.append(text)
    rest = len(functionals) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def in_clear(user: int, point: int, coefficients: Sequence[int], L: int, d: int) -> str:
    """Say which sub-masks (of L elements) a user without noise in its share knows combined, for checked arguments."""
    parts = [k for k, c in enumerate(coefficients) if c]
    what = f"a combination of the sub-masks {runs(parts)}"
    if len(parts) == 1:
        first = parts[0] * L
        what = f"sub-mask {parts[0]}, {elements(range(first, min(first + L, d)))},"
    return (
        f"IN CLEAR: user {user}, whose point is {point}, holds {what} of every mask in clear:\n"
        f"  no noise reaches its share, so that with the masked updates it knows that part of every update"
    )


def listed(functionals: Sequence[str]) -> list[str]:
    """Return one indented line for each functional, the first few, for checked arguments."""
    lines = [f"    {clipped(text, WIDTH)}" for text in functionals[:LINES]]
    rest = len(functionals) - LINES
    return lines + ([f"    and {rest} more"] if rest > 0 else [])


guard(__name__)
