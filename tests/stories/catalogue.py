"""The worlds that stories are told in, and the holes that they find when a repair is taken out."""

from __future__ import annotations

from dataclasses import dataclass

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.protocols import basecagg_active, lightsecagg, lightsecagg_active, secagg, secagg_active
from tests.stories import basecagg as in_basecagg
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
SECAGG = World(
    "SecAgg",
    "semi-honest",
    "N = 5, T = 1, t = 3, d = 1",
    lambda rules, random: in_secagg.SecAggPlay(_SECAGG, rules, random),
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


def lying(least: int) -> World:
    """Return the world of a server of SecAgg that lies about survivors, which may learn sums of `least` users."""
    return World(
        "SecAgg",
        "semi-honest, a server that lies",
        f"N = 5, nobody colludes, t = 3, sums of {least} users and more",
        lambda rules, random: in_secagg.LyingPlay(_SECAGG, rules, random, colluding=0, least=least),
    )


LIES_BOUND = lying(2)
"""With m = 2t - N - c = 1 and H = N - c = 5, a sum that is learned has at least 2mH / (H + m) users, so two."""
WORLDS = (LIGHTSECAGG, LIGHTSECAGG_ACTIVE, SECAGG, SECAGG_ACTIVE, LIES_BOUND, BASECAGG_ACTIVE)


@dataclass(frozen=True)
class Hole:
    """A world in which honest users do without a rule, and the mutants that take the other repairs out."""

    name: str
    world: World
    rules: Rules
    plants: tuple[str, ...] = ()


_AGAIN = Rules(numbers=False)
HOLES = (
    Hole("a number used twice, sealed with one key and nonce", LIGHTSECAGG, _AGAIN),
    Hole("a number used twice, since it need not be above the last", LIGHTSECAGG, Rules(), ("round-begun-again",)),
    Hole("a number used twice, ballots of another attempt", LIGHTSECAGG_ACTIVE, _AGAIN),
    Hole("a session begun again, ballots of another attempt", BASECAGG_ACTIVE, _AGAIN),
    Hole("a number used twice, ballots of another attempt", SECAGG_ACTIVE, _AGAIN),
    Hole("restored from before share_keys", SECAGG, Rules(stored=False, back_to=("share_keys",))),
    Hole("restored from before share_keys", SECAGG_ACTIVE, Rules(stored=False, back_to=("share_keys",))),
    Hole("restored from before share", BASECAGG_ACTIVE, Rules(stored=False, back_to=("asked",))),
    Hole("restored from before share", LIGHTSECAGG, Rules(stored=False, back_to=("share",))),
    Hole("a failed round counts as empty", LIGHTSECAGG, Rules(failed=False)),
    Hole("sums of fewer than t users", lying(3), Rules()),
)
