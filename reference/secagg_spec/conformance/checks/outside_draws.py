"""Checks of other draws: roundings, secrets and the polynomials that share them, by counts (CNF-31).

A number below 2**k, or an element of the field of p = 2**521 - 1, is split into digits of four bits. These are uniform
and independent, except for 2**-521 of the draws in the field. `SAMPLED` names the checks of every sampled value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import shake_256
from typing import Any

import numpy as np

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.cases import drawn_rounds, heterosag_rounds, strategies
from secagg_spec.conformance.cases.requests import own_field
from secagg_spec.conformance.checks import outside_chance
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, octets
from secagg_spec.conformance.checks.outside_chance import own_draws
from secagg_spec.conformance.checks.outside_noise import demand_uniform
from secagg_spec.conformance.checks.playing import NEW, SESSIONS, Through, as_failure
from secagg_spec.conformance.checks.scripts import ask, sent
from secagg_spec.conformance.outside import seeds
from secagg_spec.conformance.sessions import basa_fixed, mixed
from secagg_spec.conformance.sessions.basa_acts import Act, Director, part_of
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.protocols.steps import AUTHORITY

_QUANTIZE, _SHARE = "quantizer.quantize", "shamir.share"
_COINS = 3000
"""Numbers that are rounded for each fraction. Weights come one per request, so half as many are rounded in total."""
_QUARTERS = (0.25, 0.5, 0.75)
_DEALS = 24
"""How often secrets are shared."""
_FIRST = (Act("open"), Act("upload", 0, 9))
"""An epoch of BASA that one user visited."""
_DIGITS = 60
"""Digits of four bits that are compared: those of 30 bytes at either end of a field element."""


def _rand(call: Caller, operation: str, at: int) -> dict[str, str] | None:
    return {"seed": seeds.numbered(f"{operation} draws", at).hex()} if call.caps.grade(operation) == "seeded" else None


def polynomial(points: Mapping[int, int]) -> list[int]:
    """Return the coefficients mod p, constant first, of the polynomial with the given values at the given points."""
    left, found, p = dict(points), list[int](), shamir.PRIME
    while left:
        at_zero = 0
        for x, value in left.items():
            others = [z for z in left if z != x]
            numerator, denominator = 1, 1
            for z in others:
                numerator, denominator = numerator * z % p, denominator * (z - x) % p
            at_zero += value * numerator * pow(denominator, -1, p)
        found.append(at_zero % p)
        left.popitem()
        left = {x: (value - at_zero) * pow(x, -1, p) % p for x, value in left.items()}
    return found


def _digits(number: int, first: int) -> list[int]:
    """Return the digits of four bits of a number, starting at a given bit."""
    return [number >> first + 4 * at & 15 for at in range(_DIGITS)]


def _ends(name: str, coefficients: Sequence[int]) -> dict[str, list[int]]:
    """Return the lower and the upper digits of coefficients."""
    ends = {"lower": 0, "upper": 520 - 4 * _DIGITS}
    return {
        f"the {end} digits of {name} {at}": _digits(value, first)
        for at, value in enumerate(coefficients, 1)
        for end, first in ends.items()
    }


def demand_digits(call: Caller, what: str, dealt: Sequence[Mapping[str, Sequence[int]]]) -> None:
    """Fail when digits of repeated deals are not uniform and independent."""
    names = list(dealt[0])
    demand_uniform(call, what, 16, names, np.array([[one[name] for name in names] for one in dealt], dtype=np.uint64))


@check(
    f"privacy/{_SHARE}/uniform", "SHM-07", applies=lambda caps: own_field(caps) and own_draws(_SHARE)(caps), examples=1
)
def coefficients(draw: Any, call: Caller) -> None:
    """The coefficients that an implementation draws are uniform over the field, each alone and with any other one."""
    call.by_relation = True
    space = strategies.Space(call.caps, (_SHARE,))
    few = [(t, n) for n in strategies.holders(space)[:20] for t in space.options("t", 2, min(n, 4))]
    t, n = max(few or [(space.options("t", 2, n)[0], n) for n in strategies.holders(space)[:1]], key=lambda one: one[0])
    dealt = []
    for at in range(_DEALS):
        params = {"t": t, "n": n, "secret": seeds.numbered("coefficients", at).hex()}
        shares = call.result(_SHARE, params, _rand(call, _SHARE, at)).get("shares")
        try:
            values = {user + 1: shamir.element_from_bytes("share", octets("share", shares[user])) for user in range(t)}  # type: ignore[index]
        except (TypeError, ValueError, IndexError) as error:
            message = f"{_SHARE}: the shares are not {n} numbers of the field: {error}"
            raise CheckFailed("wrong_value", message) from None
        dealt.append(_ends("the coefficient", polynomial(values)[1:]))
    demand_digits(call, _SHARE, dealt)


@dataclass(frozen=True, eq=False)
class Numbered(mixed.Player):
    """A player whose users draw from a different seed in each round."""

    at: int = 0

    def rand(self, deal: SessionInputs, party: int) -> dict[str, Any] | None:
        """Return the ``rand`` of a user in the grade of the adapter."""
        seeded = self.caps.grade(NEW) == "seeded" and deal.rand(party)
        return {"seed": seeds.numbered(f"secrets of {party}", self.at).hex()} if seeded else None


def _secrets(protocol: str, deal_of: Callable[[Any], SessionInputs]) -> None:
    """Register the check of what a user of SecAgg's round draws, as the holders of its shares see it."""
    party = f"{protocol}.user"

    about: Any = {"applies": lambda caps: party in caps.parties and own_draws(NEW)(caps), "examples": 1}

    @check(f"privacy/{NEW}/{party}", "SHM-07", "SHM-12", operations=SESSIONS, **about)
    def judge(draw: Any, call: Caller) -> None:
        """The self seeds, masking keys and coefficients that a user draws are uniform, as its neighbours see them."""
        deal, rows = deal_of(draw), []
        call.by_relation = True
        for at in range(_DEALS):
            player = Numbered(Through(call), call.caps, at)
            with as_failure():
                network = mixed.play(replace(deal, session=seeds.numbered(party, at)[:16]), {0: player})
            answers = [event for event in network.transcript if event.step.phase == "masked_input"]
            states = {event.party: event.state.state for event in answers if event.party in deal.users[1:]}
            shares = {user: getattr(state, "base", state).held[0] for user, state in states.items()}
            held = dict(list(shares.items())[: deal.numbers["t"]])
            values = ({user + 1: getattr(share, kind) for user, share in held.items()} for kind in ("key", "seed"))
            key, seed = map(polynomial, values)
            own = {
                f"the digits of the {what}": _digits(one[0], 8)
                for what, one in (("masking key", key), ("self seed", seed))
            }
            rows.append({**own, **_ends("key coefficient", key[1:]), **_ends("seed coefficient", seed[1:])})
        demand_digits(call, party, rows)


_SIMPLE = {"R": "8", "N": 4, "D": 1, "T": 1, "t": 3, "k": 3, "d": 1}


_secrets("secagg", lambda draw: drawn_rounds.secagg_round(draw, _SIMPLE))
_secrets("secagg-active", lambda draw: drawn_rounds.active_round(draw, _SIMPLE))
_secrets("heterosag", lambda draw: heterosag_rounds.inputs(draw, heterosag_rounds.parameters(draw, spare=1), []))


def _visit() -> Director:
    """Return a session in which user 0 came first, so that no message to it depends on its draws."""
    return basa_fixed.played(lambda name, size: shake_256(name.encode()).digest(size), basa_fixed.NUMBERS, 9, _FIRST)


def _first_sent(party: int, phase: str, member: str) -> outside_chance.Build:
    """Return a function that runs a party's script and shows 32 bytes or elements of a message it sends in a phase."""

    def build(call: Caller) -> outside_chance.Text:
        part = part_of(_visit(), party)
        steps, operation = part.calls(), part.inputs.named(part.party)
        place = [step.phase for step in steps].index(phase)

        def text(rand: Mapping[str, Any] | None) -> str:
            entries = ask(call, operation, part.params(steps), dict(rand) if rand else None)
            try:
                [message] = sent(operation, entries[place], phase)
                return str(list(getattr(message, member)[:KEY_BYTES]))
            except (AttributeError, ValueError) as error:
                raise CheckFailed("wrong_value", f"{operation}: {phase} sends no such message: {error}") from None

        return text

    return build


_of_basa = partial(outside_chance.distinct, each=4)
_of_basa("basa.user", "BAA-26", what="mask", learned="the server learns the difference of two updates")(
    _first_sent(0, "upload", "masked")
)
_of_basa("basa.authority", "BAA-07", what="public keys of a position", learned="keys of an epoch open another")(
    _first_sent(AUTHORITY, "open", "keys")
)


@_of_basa("basa.seal", "BAA-04", what="box of one seed", learned="the server alone learns that two seeds are equal")
def _box(call: Caller) -> outside_chance.Text:
    about = {"session": bytes(16).hex(), "round": "1", "sender": 0, "from": 0, "to": 1, "purpose": "pair-box"}
    params = {**basa_fixed.NUMBERS, **about, "public": public_key(bytes([1] * 32)).hex(), "seed": bytes(32).hex()}
    return lambda rand: str(call.result("basa.seal", params, rand).get("box"))


_CODED = "privacy/{0}/uniform"
_KEPT = {
    "sum": "The operation shows sums of many users' values alone, which ADP-30, HSA-20 and their like bound.",
    "inside": "The operation shows the recovered sum alone, in which masks and noise no longer are.",
    "script": "It leaves the party sealed for keys that the script cannot foresee; a session shows it.",
    "weight": "It decides which of two weights an announcement holds; staleness.weight shows how often each comes.",
    "basa": "The scripts of BASA show it, whose parties are those of sessions; in sessions no check of this kit looks.",
    "private": "Of a private key the public key is all that is ever shown, and different draws give different ones.",
}
"""Why the answers of an operation do not show the distribution of a sampled value, or not to this kit."""
_Looks = Mapping[str, tuple[str, ...] | str]
_SHARED = ("masking_key", "self_seed", "key_coefficients", "seed_coefficients")
_SECAGG: _Looks = {"sealing_key": _KEPT["private"], **dict.fromkeys(_SHARED, (f"privacy/{NEW}/{{0}}",))}
_SCRIPT: _Looks = {"sealing_key": _KEPT["private"], **dict.fromkeys(_SHARED, _KEPT["script"])}

SAMPLED: Mapping[str, _Looks] = {
    "mds.encode": {"noise": (_CODED, "privacy/{0}/residues", "privacy/{0}/seeds", "{0}/hides", "{0}/coalitions")},
    "quantizer.quantize": {"rounding": ("{0}/rate", "privacy/{0}/seeds")},
    "basecagg.encode": {"rounding": ("{0}/rate",)},
    "quantize.levels": {"rounding": ("{0}/rate",)},
    "staleness.weight": {"rounding": ("{0}/rate",)},
    "shamir.share": {"coefficients": (_CODED, "privacy/{0}/seeds", "{0}/hides")},
    "select.batch": {"draws": ("{0}/often-uniform", "{0}/alike-uniform", "privacy/{0}/seeds")},
    "lightsecagg.user": {"mask": (_CODED, "privacy/{0}/residues", "privacy/{0}/seeds"), "noise": (_CODED,)},
    "lightsecagg_active.user": dict.fromkeys(("mask", "noise"), (_CODED,)),
    **dict.fromkeys(("basecagg.user", "basecagg_active.user"), dict.fromkeys(("masks", "noises"), (_CODED,))),
    "lightsecagg.round": dict.fromkeys(("masks", "noises"), _KEPT["inside"]),
    "basecagg.rounds": {"masks": _KEPT["inside"], "noises": _KEPT["inside"], "roundings": _KEPT["weight"]},
    "basecagg.server": {"roundings": _KEPT["weight"]},
    "basecagg_active.server": {"roundings": _KEPT["weight"]},
    "secagg.user": _SCRIPT,
    "secagg_active.user": _SCRIPT,
    "heterosag.user": _SCRIPT,
    "secagg.average": {"rounding": ("{0}/rate",)},
    "secagg.recovery": {"rounding": _KEPT["sum"]},
    "heterosag.round": {"rounding": ("{0}/rate",)},
    "basa.epochs": {"roundings": _KEPT["weight"]},
    "basa.user": {"seeds": ("privacy/{0}/seeds",), "box_keys": _KEPT["private"], "roundings": _KEPT["weight"]},
    "basa.authority": {"pair_keys": ("privacy/{0}/seeds",), "self_keys": _KEPT["private"]},
    "basa.seal": {"box_key": ("privacy/{0}/seeds",)},
    "pair.agree": {"keys": ("privacy/{0}/seeds",)},
    "pair.seal": {"keys": ("privacy/{0}/seeds",)},
    "secagg.sum": {"keys": "a sum does not depend on what is drawn, and nothing else comes out"},
    "secagg.view": {"keys": ("privacy/{0}", "privacy/{0}/contrast", "privacy/{0}/rounds")},
    "secagg.coalition": {"keys": ("privacy/{0}",)},
    f"{NEW} lightsecagg.user": dict.fromkeys(("mask", "noise"), (f"privacy/{NEW}/{{0}}",)),
    f"{NEW} lightsecagg-active.user": dict.fromkeys(("mask", "noise"), (f"privacy/{NEW}/{{0}}",)),
    f"{NEW} basecagg.user": dict.fromkeys(("masks", "noises"), (f"privacy/{NEW}/{{0}}",)),
    f"{NEW} basecagg-active.user": dict.fromkeys(("masks", "noises"), (f"privacy/{NEW}/{{0}}",)),
    f"{NEW} secagg.user": _SECAGG,
    f"{NEW} secagg-active.user": _SECAGG,
    f"{NEW} heterosag.user": _SECAGG,
    f"{NEW} basecagg.server": {"roundings": _KEPT["weight"]},
    f"{NEW} basecagg-active.server": {"roundings": _KEPT["weight"]},
    f"{NEW} basa.user": {"seeds": _KEPT["basa"], "box_keys": _KEPT["private"], "roundings": _KEPT["weight"]},
    f"{NEW} basa.authority": dict.fromkeys(("pair_keys", "self_keys"), _KEPT["basa"]),
}
"""For each sampled value of each operation and each party of a session, the checks that see its distribution.

A value has the ids of its checks, with the operation or the party for ``{0}``, or the reason why no check sees it.
"""


def looking(operation: str, value: str) -> list[str] | str:
    """Return the checks that see how an operation or a party of ``session.new`` draws a value, or why none does."""
    found = SAMPLED[operation][value]
    return found if isinstance(found, str) else [check.format(operation.rpartition(" ")[2]) for check in found]
