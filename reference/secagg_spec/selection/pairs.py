"""Read the commonest log fast: two plain numbers a line, a round and one of its users.

`logs` reads every form of a log line by line, and says what is wrong with a line. A log that is read here, it reads in
the same way; a property test compares the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard

HEADER = b"round,user\n"
_DIGITS = 9
_ZERO, _NINE, _COMMA, _END = b"09,\n"


def columns(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the rounds and the users of a log, or None if it is not of this one form.

    In this form the header is ``round,user``. Each later line has two numbers of up to 9 digits, with a comma between
    them and nothing else: no space, sign, quote or leading zero, no empty line, and a line break at the end. Raises
    `ParameterError` for what is no bytes.
    """
    data = validate.octets("data", data)
    text = np.frombuffer(data, dtype=np.uint8)[len(HEADER) :]
    if not data.startswith(HEADER) or not text.size or text[-1] != _END or text.max() > _NINE:
        return None
    ends = np.flatnonzero(text < _ZERO)
    marks, starts = text[ends], np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    if len(ends) % 2 or (marks[::2] != _COMMA).any() or (marks[1::2] != _END).any():
        return None
    if lengths.min() < 1 or lengths.max() > _DIGITS or ((text[starts] == _ZERO) & (lengths > 1)).any():
        return None
    numbers = np.zeros(len(ends), dtype=np.int64)
    for place in range(int(lengths.max())):
        here = np.flatnonzero(lengths > place)
        numbers[here] = 10 * numbers[here] + text[starts[here] + place] - _ZERO
    return numbers[::2], numbers[1::2]


guard(__name__)
