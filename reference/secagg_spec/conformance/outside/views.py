"""Rounds of LightSecAgg in which one user's matrix was probed and all others follow the text, as entries of views.

A number is represented as a form: a constant, and coefficients for all symbols of the round. The symbols are the
updates of all users (the secrets) and the random draws of all users.

Source: spec/lightsecagg.md, LSA-02, LSA-08; `secagg_spec.privacy.lightsecagg` does the same for the reference alone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.conformance.outside.leaks import EVERYBODY, Entry
from secagg_spec.conformance.outside.probing import Probed, reduced

Form: TypeAlias = tuple[tuple[int, ...], int]
"""The coefficients of all symbols, and the constant."""


@dataclass(frozen=True)
class LightRound:
    """A round, represented by forms.

    Parameters
    ----------
    numbers : mapping
        q, N, U, T and d.
    user : int
        The probed user.
    probed : Probed
        The user's map. Inputs: its update, mask and noise, and the shares from the other users, ascending. Outputs: its
        shares for the other users, ascending, its masked update and its aggregated share.
    surviving : collection of int
        The surviving set; all users upload.
    """

    numbers: Mapping[str, int]
    user: int
    probed: Probed
    surviving: Collection[int]

    @property
    def others(self) -> list[int]:
        """All users except the probed one."""
        return [user for user in range(self.numbers["N"]) if user != self.user]

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets: the updates of all users, one after another."""
        N, d = self.numbers["N"], self.numbers["d"]
        return tuple(f"update_{user}[{at}]" for user in range(N) for at in range(d))

    @property
    def share_length(self) -> int:
        """The length L of a share."""
        return -(-self.numbers["d"] // (self.numbers["U"] - self.numbers["T"]))

    def entries(self) -> list[Entry]:
        """Return everything that the server sees, and what each user sees, including its own update and draws."""
        N, d, L = self.numbers["N"], self.numbers["d"], self.share_length
        masked, shares, answers = self._forms()
        found: list[Entry] = []
        for user in range(N):
            found += self._entered(f"masked_{user}", EVERYBODY, masked[user])
            found += self._entered(f"update_{user}", user, self._symbols(user, 0, d))
            found += self._entered(f"drawn_{user}", user, self._symbols(user, d, 2 * d + self.numbers["T"] * L))
            for receiver in range(N):
                if receiver != user:
                    found += self._entered(f"share_{user}_to_{receiver}", receiver, shares[user][receiver])
        for user in sorted(self.surviving):
            found += self._entered(f"answer_{user}", EVERYBODY, answers[user])
        return found

    def allowed(self, coalition: Collection[int]) -> list[list[int]]:
        """Return what a coalition may know: the sum over the surviving set, and its own updates."""
        N, d = self.numbers["N"], self.numbers["d"]
        sums = [[int(user in self.surviving and own == at) for user in range(N) for own in range(d)] for at in range(d)]
        own = [
            [int((user, at) == (who, place)) for user in range(N) for at in range(d)]
            for who in coalition
            for place in range(d)
        ]
        return sums + own

    # --------------------------------------------------------------------------------------------------- forms

    def _width(self) -> int:
        """Return the number of symbols of one user: update, mask, noise."""
        return 2 * self.numbers["d"] + self.numbers["T"] * self.share_length

    def _symbols(self, user: int, start: int, stop: int) -> list[Form]:
        total, base = self.numbers["N"] * self._width(), user * self._width()
        return [(tuple(int(at == base + place) for at in range(total)), 0) for place in range(start, stop)]

    def _forms(self) -> tuple[dict[int, list[Form]], dict[int, dict[int, list[Form]]], dict[int, list[Form]]]:
        """Return masked updates by user, shares by sender and receiver, and answers by user."""
        q, N, d, L = self.numbers["q"], self.numbers["N"], self.numbers["d"], self.share_length
        masked, shares = dict[int, list[Form]](), dict[int, dict[int, list[Form]]]()
        for user in self.others:
            update, mask = self._symbols(user, 0, d), self._symbols(user, d, 2 * d)
            masked[user] = [combined(q, (1, 1), pair) for pair in zip(update, mask, strict=True)]
            shares[user] = self._right_shares(user)
        arriving = [form for sender in self.others for form in shares[sender][self.user]]
        given = [*self._symbols(self.user, 0, self._width()), *arriving]
        sent = [
            combined(q, row, given, constant)
            for row, constant in zip(self.probed.matrix, self.probed.constant, strict=True)
        ]
        to_others = {user: sent[at * L : (at + 1) * L] for at, user in enumerate(self.others)}
        shares[self.user] = to_others
        masked[self.user] = sent[(N - 1) * L : (N - 1) * L + d]
        answers = {self.user: sent[(N - 1) * L + d :]}
        for user in self.others:
            held = [shares[sender][user] for sender in sorted(self.surviving)]
            answers[user] = [combined(q, [1] * len(held), column) for column in zip(*held, strict=True)]
        return masked, shares, answers

    def _right_shares(self, user: int) -> dict[int, list[Form]]:
        """Return the shares that a conforming user sends, by receiver, including its own (MDS-04)."""
        q, N, U, T, d = (self.numbers[name] for name in ("q", "N", "U", "T", "d"))
        L, parts = self.share_length, U - T
        columns = MaskCode(PrimeField(q), N, U, T).columns.tolist()
        symbols = self._symbols(user, d, self._width())
        nothing = (tuple([0] * (N * self._width())), 0)
        padded = [*symbols[:d], *[nothing] * (parts * L - d), *symbols[d:]]
        rows = [padded[at * L : (at + 1) * L] for at in range(U)]
        return {
            receiver: [
                combined(q, [columns[row][receiver] for row in range(U)], [rows[row][at] for row in range(U)])
                for at in range(L)
            ]
            for receiver in range(N)
        }

    def _entered(self, name: str, holder: int | None, forms: Sequence[Form]) -> list[Entry]:
        d, width = self.numbers["d"], self._width()
        found = []
        for at, (row, constant) in enumerate(forms):
            users = [row[user * width : (user + 1) * width] for user in range(self.numbers["N"])]
            secrets = tuple(value for part in users for value in part[:d])
            drawn = tuple(value for part in users for value in part[d:])
            found.append(Entry(f"{name}[{at}]", holder, secrets, drawn, constant))
        return found


def combined(modulus: int, weights: Sequence[int], forms: Sequence[Form], constant: int = 0) -> Form:
    """Return a linear combination of forms, plus a constant."""
    used = [(weight, form) for weight, form in zip(weights, forms, strict=True) if weight]
    total = [0] * len(forms[0][0])
    for weight, (row, offset) in used:
        total = [value + weight * coefficient for value, coefficient in zip(total, row, strict=True)]
        constant += weight * offset
    return tuple(reduced(value, modulus) for value in total), reduced(constant, modulus)
