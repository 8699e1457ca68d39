"""What is asked of a plan: how many users, how long an update, who drops out, who colludes, what may go wrong.

Source: spec/planning.md, section 2 (PLN-01, PLN-02).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import OutOfRange

MOST_USERS = 10**6
MOST_ROUNDS = 10**4
_LEAST, _MOST = Fraction(1, 2**1000), 1 - Fraction(1, 2**53)
FAILURE, LEAK = Fraction(1, 10**6), Fraction(1, 2**40)


@dataclass(frozen=True)
class Wish(validate.Plain):
    """A deployment that seeks a protocol.

    Parameters
    ----------
    users : int
        N, in [3, 10^6].
    dimension : int
        d, the numbers of an update, in [1, 2^32 - 1].
    dropout : Fraction
        The probability that a user drops out of a round, independently of the others: 0, or in [2^-1000, 1 - 2^-53].
    colluders : Fraction
        The largest share of users that may collude with the server: 0, or in [2^-1000, 1 - 2^-53].
    rounds : int
        J, the rounds over the same users, in [1, 10^4].
    asynchronous : bool
        Whether users answer when they have trained, and not all at one time.
    clip : Fraction
        The largest magnitude of a number of an update, in [2^-64, 2^32].
    failure, leak : Fraction
        The largest probabilities, in [2^-1000, 1 - 2^-53], that a round fails, and that privacy does in all rounds
        together.

    Raises
    ------
    ParameterError
        A number is outside its range (PLN-01); the error names the option of the command.
    """

    users: int
    dimension: int
    dropout: Fraction
    colluders: Fraction
    rounds: int = 1
    asynchronous: bool = False
    clip: Fraction = Fraction(1)
    failure: Fraction = FAILURE
    leak: Fraction = LEAK

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("users", self.users, 3, MOST_USERS)
        validate.integer("dimension", self.dimension, 1, validate.MAX_COUNT)
        validate.integer("rounds", self.rounds, 1, MOST_ROUNDS)
        for name in ("dropout", "colluders", "failure", "leak"):
            value = validate.instance(name, getattr(self, name), Fraction)
            zero = name in {"dropout", "colluders"}
            if not (_LEAST <= value <= _MOST or (zero and not value)):
                raise OutOfRange(name, shown(value), f"a probability, {'0 or ' * zero}from 2^-1000 to 1 - 2^-53")
        if not Fraction(1, 2**64) <= validate.instance("clip", self.clip, Fraction) <= 2**32:
            raise OutOfRange("clip", shown(self.clip), "at least 2^-64 and at most 2^32")

    @property
    def colluding(self) -> int:
        """The users that may collude: the share of all, rounded up, and at least 1 (PLN-02)."""
        return max(1, ceil(self.colluders * self.users))


def shown(number: Fraction) -> float | int | str:
    """Return a fraction as the number that an error shows; as text where it is no float, or the nearest one is 0.

    Raises `ParameterError` for what is no fraction.
    """
    validate.instance("number", number, Fraction)
    if number.denominator == 1:
        return number.numerator
    try:
        nearest = float(number)
    except OverflowError:
        nearest = 0.0
    return nearest or f"{Decimal(number.numerator) / number.denominator:.3g}"


guard(__name__)
