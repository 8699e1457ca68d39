"""The worlds that stories are told in, and the holes that they find when a repair is taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.privacy.lies import least_sum
from secagg_spec.protocols.basa import cores as positions
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as buffered
from secagg_spec.protocols.heterosag.plan import UNIT
from secagg_spec.protocols.heterosag.plan import Parameters as Session
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from tests.stories import basa as in_basa
from tests.stories import basecagg as in_basecagg
from tests.stories import lies, logged, mixed, requests
from tests.stories import lightsecagg as in_lightsecagg
from tests.stories import secagg as in_secagg
from tests.stories.engine import World
from tests.stories.letters import Rules
from tests.stories.rounds import PRIME

_LIGHT = lightsecagg.Parameters(q=PRIME, N=5, D=1, U=3, T=1, d=2)
_LIGHT_ACTIVE = lightsecagg_active.Parameters(q=PRIME, N=5, D=1, U=3, T=1, d=2, W=4)
_BASECAGG = basecagg_active.Parameters(
    q=PRIME, N=5, D=1, U=3, T=1, d=2, K=3, c_l=1, c_g=3, tau_max=1, staleness=Staleness.polynomial(1), W=4
)
_SECAGG = secagg.Parameters(R=PRIME, N=5, D=1, T=1, t=3, k=4, d=1)
_SPARSE = secagg.Parameters(R=PRIME, N=7, D=2, T=1, t=2, k=2, d=1)
_SECAGG_ACTIVE = secagg_active.Parameters(R=PRIME, N=6, D=1, T=1, t=4, k=5, d=1)

LIGHTSECAGG = World(
    "LightSecAgg",
    "semi-honest",
    "N = 5, T = 1, U = 3, d = 2",
    lambda rules, random: in_lightsecagg.LightSecAggPlay(_LIGHT, rules, random),
)
LIGHTSECAGG_ACTIVE = World(
    "LightSecAgg",
    "active",
    "N = 5, T = 1, U = 3, d = 2, W = 4",
    lambda rules, random: in_lightsecagg.ActivePlay(_LIGHT_ACTIVE, rules, random),
    60,
)
_MIXED = lightsecagg_active.Parameters(q=PRIME, N=7, D=1, U=3, T=1, d=2, W=5)
MIXED = World(
    "LightSecAgg",
    "both profiles in a round",
    "N = 7, T = 1, U = 3, d = 2, W = 5",
    lambda rules, random: mixed.LightSecAggPlay(_MIXED, rules, random),
    60,
)
MIXED_SECAGG = World(
    "SecAgg",
    "both profiles in a round",
    "N = 6, T = 1, t = 4, d = 1",
    lambda rules, random: mixed.SecAggPlay(_SECAGG_ACTIVE, rules, random),
    90,
)
_MIXED_BASECAGG = replace(_BASECAGG, N=6, D=2)
MIXED_BASECAGG = World(
    "BASecAgg",
    "both profiles in a session",
    "N = 6, T = 1, U = 3, K = 3, d = 2, W = 4",
    lambda rules, random: mixed.BASecAggPlay(_MIXED_BASECAGG, rules, random),
    80,
)
SECAGG = World(
    "SecAgg",
    "semi-honest",
    "N = 5, T = 1, t = 3, d = 1",
    lambda rules, random: in_secagg.SecAggPlay(_SECAGG, rules, random),
)
SPARSE = World(
    "SecAgg+",
    "semi-honest",
    "N = 7, T = 1, t = 2, k = 2, d = 1",
    lambda rules, random: in_secagg.SparsePlay(_SPARSE, rules, random),
)
SECAGG_ACTIVE = World(
    "SecAgg",
    "active",
    "N = 6, T = 1, t = 4, d = 1",
    lambda rules, random: in_secagg.ActivePlay(_SECAGG_ACTIVE, rules, random),
    90,
)
BASECAGG_ACTIVE = World(
    "BASecAgg",
    "active",
    "N = 5, T = 1, U = 3, K = 3, d = 2, W = 4",
    lambda rules, random: in_basecagg.BASecAggPlay(_BASECAGG, rules, random),
    80,
)

_BUFFERED = buffered.Parameters(
    q=PRIME, N=5, D=1, U=3, T=1, d=2, K=3, c_l=1, c_g=3, tau_max=1, staleness=Staleness.polynomial(1)
)
BASECAGG = World(
    "BASecAgg",
    "semi-honest",
    "N = 5, T = 1, U = 3, K = 3, d = 2",
    lambda rules, random: in_basecagg.HonestPlay(_BUFFERED, rules, random),
    80,
)


_BASA = positions.Parameters(
    R=PRIME, N=6, T=1, d=1, K=3, S=1, c_l=1, c_g=3, tau_max=1, staleness=Staleness.polynomial(1)
)
BASA = World(
    "BASA",
    "settle",
    "N = 6, T = 1, K = 3, S = 1, d = 1",
    lambda rules, random: in_basa.BasaPlay(_BASA, rules, random),
    150,
)
_BASA_VOID = replace(_BASA, S=0, timeouts=positions.VOID)
BASA_VOID = World(
    "BASA",
    "void",
    "N = 6, T = 1, K = 3, d = 1",
    lambda rules, random: in_basa.BasaPlay(_BASA_VOID, rules, random),
    150,
)


def lying(least: int) -> World:
    """Return the world of a server of SecAgg that lies about survivors, which may learn sums of `least` users."""
    return World(
        "SecAgg",
        "semi-honest, a server that lies",
        f"N = 5, nobody colludes, t = 3, sums of {least} users and more",
        lambda rules, random: in_secagg.LyingPlay(_SECAGG, rules, random, colluding=0, least=least),
    )


def withholding(N: int, t: int, least: int) -> World:
    """Return the world of a server of SecAgg that also withholds shares, which may learn sums of `least` users."""
    parameters = secagg.Parameters(R=PRIME, N=N, D=N - t, T=1, t=t, k=N - 1, d=1)
    return World(
        "SecAgg",
        "semi-honest, a server that lies and withholds shares",
        f"N = {N}, nobody colludes, t = {t}, sums of {least} users and more",
        lambda rules, random: lies.WithholdingPlay(parameters, rules, random, colluding=0, least=least),
    )


def in_batches(K: int, t: int, *, withholds: bool) -> World:
    """Return the world of a server that lies to the K users of a round in batches of 3, one of whom colludes."""
    parameters = secagg.Parameters(R=PRIME, N=K, D=K - t, T=1, t=t, k=K - 1, d=1)
    return World(
        "Multi-RoundSecAgg over SecAgg",
        "a server that lies" + " and withholds shares" * withholds,
        f"K = {K}, T = 3, c = 1, t = {t}",
        lambda rules, random: lies.BatchPlay(parameters, rules, random, T=3, withholds=withholds),
        60,
    )


def session(sizes: tuple[int, ...], t: int, matrix: str) -> World:
    """Return the world of a HeteroSAg session with subgroups of some sizes, one user of which colludes."""
    N, one = sum(sizes), (1,) * len(sizes)
    parameters = Session(N, N - t, 1, t, 2, sizes, one, (2,) * len(sizes), UNIT, matrix)
    return World(
        "HeteroSAg",
        "a server that goes back on its requests",
        f"N = {N}, T = 1, t = {t}, subgroups of {' and '.join(map(str, sizes))}, {matrix}",
        lambda rules, random: requests.SessionPlay(parameters, rules, random),
    )


_LOGGED = lightsecagg.Parameters(q=PRIME, N=6, D=3, U=3, T=1, d=2)
LOGGED = World(
    "Multi-RoundSecAgg over LightSecAgg",
    "semi-honest",
    "K = 6, T = 3, c = 1, U = 3, d = 2",
    lambda rules, random: logged.LoggedPlay(_LOGGED, rules, random, T=3),
)
LIES_BOUND = lying(2)
"""With m = 2t - N - c = 1 and H = N - c = 5, a sum that is learned has at least 2mH / (H + m) users, so two."""
WITHHELD_BOUND = withholding(6, 4, least_sum(6, 4, 0, withheld=True))
BATCH_BOUNDS = (in_batches(9, 6, withholds=False), in_batches(12, 9, withholds=True))
"""The first has 2t > K + c, and relays all shares; the second has 3t >= 2K + c, and room to drop a batch."""
SESSION_BOUNDS = (session((7, 3), 8, "perfect"), session((7, 4), 8, "separate"))
"""Both have M(N - t) < N - T for their largest cell; in the second a batch of T + 2 users may drop out."""
WORLDS = (
    LIGHTSECAGG,
    LIGHTSECAGG_ACTIVE,
    MIXED,
    MIXED_SECAGG,
    MIXED_BASECAGG,
    SECAGG,
    SPARSE,
    SECAGG_ACTIVE,
    LIES_BOUND,
    BASECAGG,
    BASECAGG_ACTIVE,
    BASA,
    BASA_VOID,
    WITHHELD_BOUND,
    *BATCH_BOUNDS,
    *SESSION_BOUNDS,
    LOGGED,
)


AGAIN = Rules(numbers=False)
"""Users that forget which numbers they used."""


def before(*steps: str) -> Rules:
    """Return the rules of users that go back to a state before one of some steps."""
    return Rules(stored=False, back_to=steps)


FORGETFUL = (
    (LIGHTSECAGG, AGAIN),
    (LIGHTSECAGG_ACTIVE, AGAIN),
    (MIXED, AGAIN),
    (MIXED_SECAGG, AGAIN),
    (MIXED_BASECAGG, AGAIN),
    (SECAGG, AGAIN),
    (SPARSE, AGAIN),
    (SECAGG_ACTIVE, AGAIN),
    (BASECAGG, AGAIN),
    (BASECAGG_ACTIVE, AGAIN),
    (LIGHTSECAGG, before("share")),
    (SECAGG, before("share_keys")),
)
"""Where ballots and sealing hold by themselves, although users forget: nothing is learned here either."""


@dataclass(frozen=True)
class Hole:
    """A world in which honest users do without a rule; mutants, and a function, take the other repairs out.

    `stands_in` is put in the place of the function of the reference with the name in `for_`. A hole that is `late` is
    found only after seconds.
    """

    name: str
    world: World
    rules: Rules
    plants: tuple[str, ...] = ()
    for_: str = ""
    stands_in: Callable[..., Any] | None = None
    late: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Take the repairs out for the duration of the context."""
        with ExitStack() as stack:
            for name in self.plants:
                stack.enter_context(mutants.planted(name))
            if self.stands_in is not None:
                stack.enter_context(patch(self.for_, self.stands_in))
            yield


_ZERO = ("nonce-is-zero-again",)
_ADVERTISED = ("advertised-keys-not-in-the-ballot",)
HOLES = (
    Hole("a number used twice, sealed with one key and nonce", LIGHTSECAGG, AGAIN, _ZERO),
    Hole("keys of two sessions, sealed with one nonce", LIGHTSECAGG, Rules(), (*_ZERO, "session-not-in-salt")),
    Hole(
        "ballots of another session",
        LIGHTSECAGG_ACTIVE,
        Rules(),
        ("session-is-not-signed", "keys-not-in-the-ballot"),
    ),
    Hole("a number that need not be above the last", LIGHTSECAGG, Rules(), (*_ZERO, "round-begun-again")),
    Hole(
        "seals of both profiles are bound alike",
        MIXED,
        Rules(),
        for_="secagg_spec.protocols.lightsecagg.active.binding_context",
        stands_in=mixed.bound_alike,
    ),
    Hole(
        "seals of both profiles are bound alike",
        MIXED_SECAGG,
        Rules(),
        ("active-profile-under-the-old-name", "advertised-keys-not-in-the-seal"),
    ),
    Hole(
        "seals of both profiles are bound alike",
        MIXED_BASECAGG,
        Rules(),
        for_="secagg_spec.protocols.basecagg.active.sealing_context",
        stands_in=mixed.buffers_bound_alike,
    ),
    Hole("a number used twice, ballots of another attempt", LIGHTSECAGG_ACTIVE, AGAIN, ("keys-not-in-the-ballot",)),
    Hole("a session begun again, sealed with one key and nonce", BASECAGG, AGAIN, _ZERO),
    Hole("a session begun again, other ballots", BASECAGG_ACTIVE, AGAIN, ("buffer-keys-not-in-the-ballot",)),
    Hole("a number used twice, ballots of another attempt", SECAGG_ACTIVE, AGAIN, _ADVERTISED, late=True),
    Hole("restored from before share_keys", SECAGG, before("share_keys"), _ZERO),
    Hole("restored from before share_keys", SPARSE, before("share_keys"), _ZERO),
    Hole("restored from before share_keys", SECAGG_ACTIVE, before("share_keys"), _ZERO),
    Hole("restored from before share", BASECAGG_ACTIVE, before("asked"), _ZERO),
    Hole("restored from before share", LIGHTSECAGG, before("share"), _ZERO),
    Hole("both keys of an accepted position", BASA, Rules(), ("both-keys-released",)),
    Hole("the self key of a skipped position", BASA, Rules(), ("self-key-of-a-skipped-position",)),
    Hole("a position given again", BASA, Rules(), ("position-given-again",)),
    Hole("a key used for two updates", BASA, Rules(), ("offer-of-a-spent-epoch",)),
    Hole("keys of an epoch that was abandoned", BASA, Rules(), ("keys-released-when-abandoned",)),
    Hole("an authority restored from an older state", BASA, before("open")),
    Hole("a timeout does not end the epoch", BASA_VOID, Rules(), ("void-epoch-goes-on",)),
    Hole("a position given again", BASA_VOID, Rules(), ("position-given-again",)),
    Hole("keys of positions are released", BASA_VOID, Rules(), ("keys-released-in-void",)),
    Hole("a key used for two updates", BASA_VOID, Rules(), ("offer-of-a-spent-epoch",)),
    Hole("an authority restored from an older state", BASA_VOID, before("open")),
    Hole("a failed round counts as empty", LIGHTSECAGG, Rules(failed=False)),
    Hole("sums of fewer than t users", lying(3), Rules()),
    Hole("2t > N + c, and shares are withheld", withholding(5, 3, 2), Rules()),
    Hole("the bound of least_sum is attained", withholding(6, 4, 4), Rules(), late=True),
    Hole("t > K/2 alone", in_batches(6, 3, withholds=False), Rules()),
    Hole("2t > K + c, and shares are withheld", in_batches(15, 9, withholds=True), Rules(), late=True),
    Hole("a failed round is not in the log", LOGGED, Rules(failed=False)),
    Hole("2(N - t) is N - T or more", session((6, 6), 3, "perfect"), Rules()),
    Hole("2(N - t) < N - T alone, three requests", session((7, 3), 6, "perfect"), Rules()),
    Hole("2(N - t) < N - T alone, three requests", session((7, 4), 7, "separate"), Rules()),
)
