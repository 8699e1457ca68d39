"""SecAgg fails in a buffer that mixes rounds: what is left is the difference of two streams of each pair.

Statement. Let user i mask its input x_i in round t_i with its own and its pairwise masks, y_i as in SecAgg, and let the
server know every self seed, so that it removes all self masks.
(a) It then holds the sum of the x_i plus, for each pair i < j, PRG(s_ij of round t_i) - PRG(s_ij of round t_j).
(b) In no buffer that mixes rounds is that the sum of the x_i, and in every buffer of one round it is.
(c) One stream for each pair in all rounds is no way out. It cancels, but from two uploads of one user, whose self seeds
    the server opened to unmask two buffers, the server computes the difference of the two inputs. Nobody has to know
    a staleness for it: one seed is forbidden, as the paper has it, by this difference, and not since staleness is
    unknown.
(d) With weights w_i of the uploads, as for staleness, the stream of a pair leaves (w_i - w_j) times itself even when
    both have masked in one round.

Idea. Whole rounds of the reference are run, with the same users, keys and inputs in each, so that only the number of
the round differs. The masked inputs are taken from the messages that were sent. The streams in (a) are derived anew
from the keys. (a) holds for all masks, since each appears once with + and once with -, as proofs/pairwise_masks.py
shows on coefficients, and sums of symbols show again; (b) is a computation for these streams: by chance, d elements
agree with probability R^-d.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks, prg
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.protocols.secagg import round as secagg

CLAIMS = {
    "UNI-ROUNDS": "samples",
    "BAS-SEED": "samples",
    "UNI-STREAMS": "samples",
}
ROUNDS = (4, 5, 6)
D = 4
Streams = Sequence[Sequence[tuple[int, UintArray]]]
"""For each user, the other users with the stream of the pair."""


class Users:
    """N users that keep keys, seeds and inputs, and take part in several rounds."""

    def __init__(self, R: int, N: int) -> None:
        self.p = secagg.Parameters(R=R, N=N, D=0, T=1, t=3, k=N - 1, d=D)
        sources = {user: SeededSource(b"asynchronous", f"{user}") for user in range(N)}
        self.randomness = secagg.draw_randomness(self.p, sources)
        places = [[10**i * (k + 1) for k in range(D)] for i in range(N)]
        self.inputs = np.array(places, dtype=np.uint64) % np.uint64(R)

    @property
    def ring(self) -> Ring:
        """The integers modulo R."""
        return self.p.ring

    @cached_property
    def sent(self) -> Mapping[tuple[int, int], UintArray]:
        """What each user uploads in each round, by user and round."""
        found: dict[tuple[int, int], UintArray] = {}
        for number in ROUNDS:
            steps = secagg.run_round(
                self.p, self.inputs, randomness=self.randomness, round=number, session=bytes(16)
            ).transcript
            messages = [message for step in steps for message in step.sent]
            uploads = (message for message in messages if isinstance(message, secagg.MaskedInput))
            found |= {(message.sender, number): message.masked for message in uploads}
        return found

    def own(self, user: int, number: int) -> UintArray:
        """Return the self mask of a user in a round."""
        seed = self.randomness[user]["self_seed"]
        return prg.expand(masks.self_key(self.context(number), seed, user), self.ring, D)

    def stream(self, i: int, j: int, number: int) -> UintArray:
        """Return PRG(s_ij) of a round."""
        private = {user: self.randomness[user]["masking_key"] for user in (i, j)}
        public = {user: public_key(key) for user, key in private.items()}
        key = masks.pairwise_key(self.context(number), agree(private[i], public[j]), public)
        return prg.expand(key, self.ring, D)

    def context(self, number: int) -> Context:
        """Return what the keys of a round are bound to."""
        return secagg.Round(self.p, self.p.graph(), bytes(16), number).context()

    def unmasked(self, rounds: tuple[int, ...]) -> UintArray:
        """Return what is left of the sum of a buffer without self masks, user i having masked in rounds[i]."""
        total = self.ring.sum(np.stack([self.sent[i, number] for i, number in enumerate(rounds)]))
        return secagg.unmask(self.ring, total, [self.own(i, number) for i, number in enumerate(rounds)], [])

    def residue(self, rounds: tuple[int, ...]) -> UintArray:
        """Return the sum in (a) over all pairs."""
        pairs = combinations(range(self.p.N), 2)
        return self.ring.sum(np.stack([self.difference(i, j, rounds[i], rounds[j]) for i, j in pairs]))

    def difference(self, i: int, j: int, first: int, second: int) -> UintArray:
        """Return PRG(s_ij) of one round minus that of another."""
        return self.ring.subtract(self.stream(i, j, first), self.stream(i, j, second))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b) for every way to assign three rounds to three and four users, then (c)."""
    tally, right, one = Tally(), 0, 0
    for R, N in product((1000, 2**32), (3, 4)):
        users = Users(R, N)
        wanted = users.ring.sum(users.inputs)
        for rounds in product(ROUNDS, repeat=N):
            got, same = users.unmasked(rounds), len(set(rounds)) == 1
            tally.add(
                {"R": R, "rounds": list(rounds)}, np.array_equal(got, users.ring.add(wanted, users.residue(rounds)))
            )
            report.check(np.array_equal(got, wanted) == same, f"(b) modulo {R}, rounds {rounds}")
            right, one = right + np.array_equal(got, wanted), one + same
    example(report)
    seed = one_stream(report)
    weighted = unequal_weights(report)
    with_symbols(report)
    report.say(f"{tally.cases} buffers: what is left is the sum of the pairs' differences in {tally.held}")
    report.say(f"the sum is right in {right}: in the {one} buffers of one round, and in no other")
    numbers = {"buffers": tally.cases, "of one round": one, "right": right}
    return {
        "UNI-ROUNDS": Finding(tally.verdict, "each pair leaves the difference of two streams", tally.against, numbers),
        "BAS-SEED": seed,
        "UNI-STREAMS": weighted,
    }


def example(report: Report) -> None:
    """Show three users on numbers."""
    users = Users(1000, 3)
    for i in range(3):
        report.say(f"modulo 1000, input of user {i}:           {row(users.inputs[i])}")
    report.say(f"sum of the inputs:                      {row(users.ring.sum(users.inputs))}")
    report.say(f"unmasked, all three from round 4:       {row(users.unmasked((4, 4, 4)))}")
    mixed = users.unmasked((4, 4, 5))
    report.say(f"unmasked, user 2 from round 5:          {row(mixed)}")
    report.say(f"off by:                                 {row(users.ring.subtract(mixed, users.unmasked((4, 4, 4))))}")
    for i in (0, 1):
        report.say(f"PRG(s_{i}2) of round 4:                   {row(users.stream(i, 2, 4))}")
        report.say(f"PRG(s_{i}2) of round 5:                   {row(users.stream(i, 2, 5))}")
    report.say(f"the two differences, added:             {row(users.residue((4, 4, 5)))}")


def row(values: Iterable[int]) -> str:
    """Return numbers below 1000, each in four places."""
    return "".join(f"{int(value):4d}" for value in values)


def one_stream(report: Report) -> Finding:
    """Decide (c): pairwise streams of one round in all rounds, self masks of the right round."""
    users = Users(1000, 3)
    fixed = [[(j, users.stream(i, j, 0)) for j in range(3) if j != i] for i in range(3)]
    unknown = Tally()
    for rounds in product(ROUNDS, repeat=3):
        left = left_of_one_stream(users, fixed, rounds)
        case = {"R": 1000, "rounds": list(rounds), "left of the masks": left.tolist()}
        if len(set(rounds)) > 1:
            unknown.add(case, bool(left.any()))
    forbidden = all(difference_shows(users, fixed, i) for i in range(3))
    report.say(f"one stream for each pair is left in {unknown.held} of {unknown.cases} buffers of mixed rounds")
    verdict = "refuted" if not forbidden else "imprecise" if unknown.verdict == "refuted" else unknown.verdict
    return Finding(verdict, "two uploads under one seed forbid it, not unknown staleness", unknown.against)


def left_of_one_stream(users: Users, fixed: Streams, rounds: tuple[int, ...]) -> UintArray:
    """Return what the fixed streams leave in a sum of uploads whose self masks are those of the rounds."""
    ring, own = users.ring, [users.own(i, number) for i, number in enumerate(rounds)]
    mixed = [secagg.mask_update(ring, i, users.inputs[i], own[i], fixed[i]) for i in range(3)]
    return ring.subtract(secagg.unmask(ring, ring.sum(np.stack(mixed)), own, []), ring.sum(users.inputs))


def difference_shows(users: Users, fixed: Streams, i: int) -> bool:
    """Return whether two uploads of a user under its fixed streams give the difference of its inputs."""
    ring, other, bare = users.ring, users.inputs[::-1], []
    for number, inputs in ((4, users.inputs), (5, other)):
        own = users.own(i, number)
        bare.append(ring.subtract(secagg.mask_update(ring, i, inputs[i], own, fixed[i]), own))
    return np.array_equal(ring.subtract(*bare), ring.subtract(users.inputs[i], other[i]))


def unequal_weights(report: Report) -> Finding:
    """Decide (d) for three users in one round, with every choice of weights up to 3."""
    users, number, tally = Users(1000, 3), 4, Tally()
    for weights in product((1, 2, 3), repeat=3):
        times = np.array(weights, dtype=np.uint64)
        bare = [users.ring.subtract(users.sent[i, number], users.own(i, number)) for i in range(3)]
        got = users.ring.weighted_sum(times, np.stack(bare))
        left = users.ring.subtract(got, users.ring.weighted_sum(times, users.inputs))
        streams = [users.stream(i, j, number) for i, j in combinations(range(3), 2)]
        uneven = [divmod(weights[i] - weights[j], 1000)[1] for i, j in combinations(range(3), 2)]
        stated = users.ring.weighted_sum(np.array(uneven, dtype=np.uint64), np.stack(streams))
        tally.add({"R": 1000, "weights": list(weights)}, np.array_equal(left, stated))
        report.check(
            bool(left.any()) == (len(set(weights)) > 1), f"(d) nothing is left exactly with equal weights: {weights}"
        )
    w = package("sympy").symbols("w1:5")
    leaves = streams_sent((0,) * 4, w)
    pairs = [(w[i] - w[j]) * stream_symbol(i, j, 0) for i, j in combinations(range(4), 2)]
    exact = package("sympy").expand(leaves - sum(pairs)) == 0
    report.agree("UNI-STREAMS", "symbolic", exact, "four users leave (w_i - w_j) times the stream of each pair")
    report.say(
        f"one round, {tally.cases} choices of weights: each pair leaves w_i - w_j times its stream in {tally.held}"
    )
    return Finding(tally.verdict, "a pair leaves the difference of its weights times its stream", tally.against)


def with_symbols(report: Report) -> None:
    """Decide (a) and (b) on sums of symbols, a stream for each pair and round, for two to four users in two rounds."""
    choices = [rounds for N in (2, 3, 4) for rounds in product((4, 5), repeat=N)]
    left = [(streams_sent(rounds), streams_left(rounds), len(set(rounds)) == 1) for rounds in choices]
    same = all(sent == residue and (sent == 0) == one for sent, residue, one in left)
    report.agree("BAS-SEED", "symbolic", one_seed_cancels(), "one stream for each pair sums to 0")
    report.agree("UNI-ROUNDS", "symbolic", same, f"the streams of {len(left)} buffers leave the sum in (a)")


def stream_symbol(i: int, j: int, number: int) -> Any:
    """Return the symbol of the stream of a pair in a round."""
    return package("sympy").Symbol(f"s_{min(i, j)}_{max(i, j)}_{number}")


def one_seed_cancels() -> bool:
    """Return whether streams of one round sum to 0 for two to five users, whatever the rounds of the buffer are."""
    return all(streams_sent((0,) * N) == 0 for N in (2, 3, 4, 5))


def streams_sent(rounds: tuple[int, ...], weights: Sequence[Any] | None = None) -> Any:
    """Return the sum of what all users add and subtract, each times its weight, if weights are given."""
    times = [1] * len(rounds) if weights is None else weights
    pairs = [(i, j) for i in range(len(rounds)) for j in range(len(rounds)) if i != j]
    return sum(times[i] * (1 if i < j else -1) * stream_symbol(i, j, rounds[i]) for i, j in pairs)


def streams_left(rounds: tuple[int, ...]) -> Any:
    """Return the sum in (a)."""
    pairs = combinations(range(len(rounds)), 2)
    return sum(stream_symbol(i, j, rounds[i]) - stream_symbol(i, j, rounds[j]) for i, j in pairs)
