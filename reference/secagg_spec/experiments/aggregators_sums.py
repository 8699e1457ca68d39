"""Weighted sums at one level of quantisation: SecAgg, LightSecAgg, BASecAgg and BASA as drop-ins for the plain mean.

====================  ==========================================
text                  here
====================  ==========================================
c_l, c_g              `level`, `c_g`
R, q                  the modulus of `ring`
w_i                   ``given.weights``
====================  ==========================================

The range of the quantiser is where c_l |x| W is at most (R - 1) // 2, for the total weight W that a sum must carry.

Source: spec/experiments.md, section 4 (EXP-13 to EXP-16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import staleness, validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, MAX_MODULUS, PrimeField, Ring
from secagg_spec.arithmetic.quantizer import MAX_LEVEL, IntArray, stochastic_round
from secagg_spec.arithmetic.staleness import Staleness, realised_weight
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.errors import ParameterError
from secagg_spec.experiments.aggregates import Given
from secagg_spec.experiments.aggregators_quantised import Quantised
from secagg_spec.experiments.sums import parameters_of, secure_elements
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.runs import Run
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as rounds
from secagg_spec.protocols.buffers import budget
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import SERVER

LEVEL = 2**16
WEIGHTS = 64
OLDEST = 10


class Sums(Quantised):
    """An aggregator whose protocol gives the sum of w_i v_i modulo R; the integer v_i is c_l x_i, rounded."""

    modulus: int

    def __init__(self, settings: Mapping[str, Any], users: int, d: int, seed: int) -> None:
        super().__init__(settings, users, d, seed)
        self.level = validate.integer("level", settings.get("level", LEVEL), 1, MAX_LEVEL)
        self.ring = self.ring_of(validate.integer("q", settings.get("q", self.modulus), 2, MAX_MODULUS))
        self.bound = 1 / self.level

    @staticmethod
    def ring_of(modulus: int) -> Ring:
        """Return the ring of the sums."""
        return Ring(modulus)

    def carried(self, given: Given) -> int:
        """Return W, the total weight that a sum must carry."""
        return given.total

    def limits(self, given: Given) -> tuple[float, float]:
        """Return the range [-m, m], where m is the largest number for which c_l m is at most (R - 1) // 2 // W."""
        most = budget(self.ring, self.carried(given))
        if not most:
            raise ParameterError("sum(weights)", self.carried(given), f"at most {(self.ring.modulus - 1) // 2}")
        largest = most / self.level
        if largest * self.level > most:
            largest = float(np.nextafter(largest, 0))
        return -largest, largest

    def quantised(self, numbers: RealArray, draws: RealArray, rows: slice, n: int) -> RealArray:
        """Round c_l times each number, up or down."""
        return stochastic_round(numbers * np.float64(self.level), draws).astype(np.float64)

    def shortcut(self, values: RealArray, given: Given) -> RealArray:
        """Return the sum of w_i v_i over c_l times the sum of w_i; exact, since no sum exceeds 2**53."""
        total = np.array(given.weights, np.float64) @ values
        return self.decoded(total.astype(np.int64), given)

    def decoded(self, total: IntArray, given: Given) -> RealArray:
        """Return a weighted sum of integers over c_l times the sum of the weights."""
        result: RealArray = total.astype(np.float64) / np.float64(self.level * given.total)
        return result

    def elements(self, values: IntArray) -> UintArray:
        """Return integers (n, d) as elements of the ring."""
        return np.stack([self.ring.encode_signed(row) for row in values])


class Weighted(Sums):
    """An aggregator whose users multiply their integers by their weights before masking."""

    def protocol(self, values: IntArray, given: Given) -> RealArray:
        """Return the decoded sum of the weighted integers."""
        factors = np.array([divmod(weight, self.ring.modulus)[1] for weight in given.weights], np.uint64)
        elements = self.elements(values)
        weighted = self.ring.multiply(elements, np.broadcast_to(factors[:, None], elements.shape))
        return self.decoded(self.ring.decode_signed(self.total(weighted, given)), given)

    def total(self, elements: UintArray, given: Given) -> UintArray:
        """Return the sum of the rows in the ring, from a run of the protocol."""
        raise NotImplementedError


class SecAgg(Weighted):
    """SecAgg among the users of the round, modulo 2**32 unless the settings say otherwise."""

    name = "secagg"
    modulus = MAX_MODULUS

    def check(self, given: Given) -> None:
        """Refuse fewer than three users."""
        parameters_of(self.ring.modulus, given.count, self.d)

    def total(self, elements: UintArray, given: Given) -> UintArray:
        """Return the sum from a round of SecAgg, with all its messages."""
        return secure_elements(elements, self.ring, self.key(given.round), given.round)


class LightSecAgg(Weighted):
    """LightSecAgg among the users of the round; a quarter of them may collude, and a quarter may drop out."""

    name = "lightsecagg"
    modulus = DEFAULT_PRIME

    @staticmethod
    def ring_of(modulus: int) -> Ring:
        """Return the field of the sums."""
        return PrimeField(modulus)

    def check(self, given: Given) -> None:
        """Refuse fewer than three users."""
        self.parameters(given.count)

    def parameters(self, n: int) -> lightsecagg.Parameters:
        """Return the parameters of a round of n users."""
        T = max(1, n // 4)
        D = max(0, min(n // 4, n - T - 2))
        return lightsecagg.Parameters(q=self.ring.modulus, N=n, D=D, U=n - D, T=T, d=self.d)

    def total(self, elements: UintArray, given: Given) -> UintArray:
        """Return the sum from a round of LightSecAgg, with all its messages in sealed channels."""
        p, sources = self.parameters(given.count), self.sources(given)
        keys = {at: source.take(KEY_BYTES) for at, source in sources.items()}
        channel = sealed_links(lightsecagg.sealing_context(p, bytes(16), given.round), keys)
        randomness = lightsecagg.draw_randomness(p, sources)
        result = lightsecagg.run_round(
            p, elements, randomness=randomness, round=given.round, channel=channel, session=bytes(16)
        )
        return result.aggregate


class Buffered(Sums):
    """An aggregator of a buffer; its weights are those of staleness, rounded with the given draws."""

    modulus = DEFAULT_PRIME

    def __init__(self, settings: Mapping[str, Any], users: int, d: int, seed: int) -> None:
        super().__init__(settings, users, d, seed)
        self.c_g = validate.integer("c_g", settings.get("c_g", WEIGHTS), 1, MAX_LEVEL)
        self.tau_max = validate.integer("tau_max", settings.get("tau_max", OLDEST), 0)
        self.staleness = function_of(settings.get("staleness", "constant"))

    def carried(self, given: Given) -> int:
        """Return K c_g."""
        return given.count * self.c_g

    def check(self, given: Given) -> None:
        """Refuse weights that do not follow from staleness and draws, and parameters that the protocol refuses."""
        self.parameters(given.count)
        validate.integer("max(taus)", max(given.taus), 0, self.tau_max)
        realised = tuple(
            realised_weight(self.staleness, self.c_g, tau, float(draw))
            for tau, draw in zip(given.taus, given.draws, strict=True)
        )
        if realised != given.weights:
            raise ParameterError("weights", list(given.weights), f"{list(realised)}, by staleness and draws, by user")

    def parameters(self, K: int) -> Any:
        """Return the parameters of a session with K updates in a buffer."""
        raise NotImplementedError

    @property
    def levels(self) -> dict[str, Any]:
        """The parameters that the two protocols share."""
        named = {"c_l": self.level, "c_g": self.c_g, "tau_max": self.tau_max, "staleness": self.staleness}
        return {"N": self.N, "d": self.d, **named}


class BASecAgg(Buffered):
    """One buffer of BASecAgg, with K of the N users; a quarter of the N may drop out."""

    name = "basecagg"

    @staticmethod
    def ring_of(modulus: int) -> Ring:
        """Return the field of the sums."""
        return PrimeField(modulus)

    def parameters(self, K: int) -> basecagg.Parameters:
        """Return the parameters of a session with K updates in a buffer."""
        T = max(1, min(self.N // 4, K - 2))
        D = max(0, min(self.N // 4, self.N - T - 1))
        return basecagg.Parameters(q=self.ring.modulus, D=D, U=self.N - D, T=T, K=K, **self.levels)

    def protocol(self, values: IntArray, given: Given) -> RealArray:
        """Return the average of a buffer, with all messages in sealed channels.

        The server goes through the rounds of the stamps in order, as if other users had filled the buffers between.
        """
        p = self.parameters(given.count)
        play = self._play(p, self.elements(values), given)
        by_stamp = sorted(zip(given.stamps, given.users, strict=True))
        for stamp, user in by_stamp:
            _come_to(play, stamp)
            play.take(rounds.Start(user))
        _come_to(play, given.round)
        for user in given.users:
            play.take(rounds.Upload(user))
        play.take(rounds.Recover(tuple(range(p.U))))
        return play.buffers[0].average

    def _play(self, p: basecagg.Parameters, updates: UintArray, given: Given) -> rounds.Play:
        key = self.key(given.round)
        schedule = [rounds.Start(user) for user in given.users]
        drawn = rounds.draw_randomness(p, SeededSource(key, "masks"), schedule)
        keys = {user: SeededSource(key, f"user {user}").take(KEY_BYTES) for user in range(self.N)}
        channels = rounds.sealed_channels(basecagg.sealing_context(p, bytes(16)), keys)
        network = rounds.open_session(p, round=min(given.stamps), channels=channels, session=bytes(16))
        randomness = {**drawn, "roundings": [given.draws]}
        return rounds.Play(network, rounds.supplies(p, list(updates), randomness), basecagg.user_trained)


class BASA(Buffered):
    """One buffer of BASA. The users pass it in ascending order, and nobody times out."""

    name = "basa"
    modulus = MAX_MODULUS

    def parameters(self, K: int) -> basa_cores.Parameters:
        """Return the parameters of a session with K updates in a buffer."""
        T = max(1, min(K // 3, K - 2))
        return basa_cores.Parameters(R=self.ring.modulus, K=K, S=0, T=T, **self.levels)

    def protocol(self, values: IntArray, given: Given) -> RealArray:
        """Return the average of a buffer, with all messages."""
        run = Run(
            self.parameters(given.count),
            SeededSource(self.key(given.round), "session"),
            round=given.round,
            session=bytes(16),
        )
        visits = zip(given.users, self.elements(values), given.stamps, given.draws.tolist(), strict=True)
        for user, update, stamp, draw in visits:
            run.upload(user, update, stamp, draw)
        return run.close().average


def function_of(value: Staleness | str) -> Staleness:
    """Return a function of staleness from the function itself or from text such as ``polynomial:1``."""
    return value if isinstance(value, Staleness) else staleness.read("staleness", value)


def _come_to(play: rounds.Play, round: int) -> None:
    states = play.network.states
    states[SERVER] = replace(states[SERVER], round=round)
