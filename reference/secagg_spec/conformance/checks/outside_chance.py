"""Checks of what implementations draw themselves, by statistics with a stated false-alarm rate.

Uniform draws break two relations with probability at most 2**-48 in each check: many draws are all different, and each
residue modulo a small number occurs. The report states what a pass cannot rule out (CNF-31).

The number of draws depends only on the number of cases of the run, so that equal runs have equal reports. It counts as
drawn, so that a stored failure is judged again with the same number.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.generators import expanded
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.lightsecagg_parties import Agreed, UserSession
from secagg_spec.conformance.cases.valid import random_secret
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Condition, Exchange, check
from secagg_spec.conformance.checks.scripts import ask, sent, taken
from secagg_spec.conformance.checks.streams import other
from secagg_spec.conformance.outside import chance, seeds, spread
from secagg_spec.protocols.lightsecagg.round import MaskedUpdate

_ENCODE, _SHARE, _QUANTIZE, _EXPAND = "mds.encode", "shamir.share", "quantizer.quantize", "prg.expand"
_AGREE, _SEAL, _BATCH = "pair.agree", "pair.seal", "select.batch"
_LIGHT, _SECAGG = "lightsecagg.user", "secagg.user"
LARGEST_MODULUS, _LARGEST_PRIME = 2**10, 1021
_PIECE = 4096
"""Elements of one answer when residues are counted."""
FINGERPRINT = chance.fingerprint_bits(chance.MOST_DRAWS)
"""How many bits are compared: with so many, even 2**20 uniform draws are all different."""
_SOME, _FEW = 10, 4
"""Draws per case: when one draw is slow, and when it needs operations on keys."""
_COINS = 100
"""How many numbers midway between two integers are rounded. Each shows one bit, except for a rounding error."""
_CHOSEN: Mapping[str, Any] = {
    "N": 120,
    "K": 60,
    "T": 1,
    "strategy": "random",
    "frequencies": [0] * 120,
    "available": list(range(120)),
}
"""A choice with C(120, 60) > 2**116 equally likely results."""
Text = Callable[[Mapping[str, Any] | None], str]
"""Draws once and returns what was drawn, given a seed, or None if the implementation takes no seed."""
Build = Callable[[Caller], Text]


@dataclass(frozen=True)
class Drawing:
    """What an operation draws, as a text that two uniform draws share with probability at most 2**-87."""

    operation: str
    what: str
    text: Text
    verdict: str
    learned: str


def own_draws(operation: str) -> Callable[[Capabilities], bool]:
    """Return the condition that an implementation draws for itself what an operation samples."""
    return lambda caps: caps.grade(operation) != "explicit"


def demand_distinct(call: Caller, drawing: Drawing, n: int, *, seeded: bool) -> None:
    """Fail when two draws are equal: draws of similar seeds, or any of n others."""
    call.by_relation = True
    pairs = seeds.alike() if seeded else []
    for first, second, how in pairs:
        if drawing.text(_rand(first)) == drawing.text(_rand(second)):
            _equal(drawing, f"two seeds, {how}, {first.hex()} and {second.hex()}")
        call.transcript.clear()
    _demand_no_collision(call, drawing, n, seeded)
    bits = chance.visible_bits(n)
    seen = math.floor(100 * chance.detection(n, bits)) / 100
    call.limits.append(
        f"{n} draws were all different: a seed cut to {bits} bits would show so with a probability of at least {seen}, "
        f"one cut to more bits with less; false alarm at most 2**-{chance.ALARM_BITS}"
    )


def _demand_no_collision(call: Caller, drawing: Drawing, n: int, seeded: bool) -> None:
    """Fail when two of n draws are equal. The transcript then has these two, if they can be asked for again.

    Draws without seeds come from two processes, half of them from each (CNF-88).
    """
    found: dict[str, int] = {}
    for at in range(n):
        if not seeded and at in (0, n // 2):
            call.connection.restart()
        rand = _rand(seeds.numbered(drawing.operation, at)) if seeded else None
        text = drawing.text(rand)
        first = found.setdefault(text, at)
        if first != at:
            _ask_again(call, drawing, first, seeded)
            apart = not seeded and first < n // 2 <= at
            _equal(drawing, f"draws {first} and {at} of {n}{', from two processes,' * apart}")
        call.transcript.clear()


def _ask_again(call: Caller, drawing: Drawing, first: int, seeded: bool) -> None:
    if seeded:
        last: list[Exchange] = list(call.transcript)
        call.transcript.clear()
        drawing.text(_rand(seeds.numbered(drawing.operation, first)))
        call.transcript.extend(last)


def _rand(seed: bytes) -> dict[str, str]:
    return {"seed": seed.hex()}


def _equal(drawing: Drawing, which: str) -> None:
    """Fail because two draws are equal."""
    message = f"{drawing.operation}: {which} have the same {drawing.what}: {drawing.learned}"
    raise CheckFailed(drawing.verdict, message, {"coalition": [], "server": True, "learns": drawing.learned})


def distinct(
    operation: str,
    *clauses: str,
    what: str,
    learned: str,
    applies: Condition | None = None,
    verdict: str = "leaked",
    each: int = chance.PER_CASE,
    doc: str = "",
) -> Callable[[Build], Build]:
    """Register the check that an operation's draws are all different; by default it needs draws of its own."""

    def register(build: Build) -> Build:
        def judge(draw: Any, call: Caller) -> None:
            drawing = Drawing(operation, what, build(call), verdict, learned)
            n = chance.draws(draw(st.just(call.cases)), each)
            demand_distinct(call, drawing, n, seeded=_takes_seeds(call.caps, operation))

        judge.__doc__ = doc or f"No two seeds, and no two calls without a seed, give the same {what}."
        check(f"privacy/{operation}/seeds", *clauses, applies=applies or own_draws(operation), examples=1)(judge)
        return build

    return register


def _takes_seeds(caps: Capabilities, operation: str) -> bool:
    """Return whether a given seed or key determines what is drawn. Operations on pairs draw their own seeds."""
    return operation == _EXPAND or (caps.grade(operation) == "seeded" and operation not in (_AGREE, _SEAL))


_DIFFERENCE = "the server alone learns the difference of two updates that are masked so"


def smallest_code(caps: Capabilities) -> dict[str, int]:
    """Return the simplest declared numbers of users, with the largest modulus."""
    numbers = _smallest(caps, _ENCODE)
    return {**numbers, "q": max(_moduli(caps, _ENCODE, numbers["N"]))}


def _smallest(caps: Capabilities, operation: str) -> dict[str, int]:
    """Return the simplest numbers of users that an operation declares."""
    space = strategies.Space(caps, (operation,))
    sets = space.sets()
    chosen = dict(sets[0]) if sets else {}
    if not chosen:
        N = next(N for N in space.rosters() if space.colluders(N))
        T = space.colluders(N)[0]
        chosen = {"N": N, "T": T, "D": space.tolerated(N, T)[0]}
    if "U" not in chosen:
        chosen["U"] = space.thresholds(chosen["N"], chosen["T"], chosen.get("D", 0))[0]
    return {"D": 0, **chosen}


def _moduli(caps: Capabilities, operation: str, above: int) -> Sequence[int]:
    return strategies.Space(caps, (operation,)).moduli(prime=True, above=above)


def _length(q: int) -> int:
    """Return how many uniform elements modulo q have as many bits as are compared."""
    return math.ceil(FINGERPRINT / math.log2(q))


def _held(call: Caller, code: Mapping[str, int], L: int, rand: Mapping[str, Any] | None) -> str:
    """Return user 0's share of L zeros, which is as uniform as the noise (MDS-10)."""
    params = {name: code[name] for name in ("q", "N", "U", "T")}
    mask = pack(np.zeros(L * (code["U"] - code["T"]), dtype=np.uint64))
    shares = call.listed(_ENCODE, {**params, "mask": mask}, "shares", code["N"], rand)
    call.read(_ENCODE, shares[0], "shares[0]", L, code["q"])
    return str(shares[0])


@distinct(
    _ENCODE,
    "MDS-10",
    what="shares of one vector",
    learned="user 0 alone learns the difference of two masks that are shared so",
)
def _encoder(call: Caller) -> Text:
    code = smallest_code(call.caps)
    return lambda rand: _held(call, code, _length(code["q"]), rand)


@distinct(
    _SHARE,
    *("SHM-12", "SHM-07"),
    what="share of one secret for user 0",
    learned="user 0 alone learns the difference of two secrets that are shared so",
)
def _sharer(call: Caller) -> Text:
    """Share one secret. A share hides it and so has at least its entropy, 256 bits (SHM-12)."""
    space = strategies.Space(call.caps, (_SHARE,))
    n = strategies.holders(space)[0]
    params: dict[str, Any] = {"t": strategies.shared_thresholds(space, n)[0], "n": n}
    params["secret"] = random_secret(call.caps, b"secret").hex()

    def text(rand: Mapping[str, Any] | None) -> str:
        share = call.listed(_SHARE, params, "shares", n, rand)[0]
        if not isinstance(share, str):
            raise CheckFailed("wrong_value", f"{_SHARE}: shares must be text")
        return share

    return text


def roundable(caps: Capabilities) -> list[dict[str, int]]:
    """Return numbers with which 0 and 1 can be quantised. Those with a power of two as level come first."""
    space = strategies.Space(caps, (_QUANTIZE,))
    moduli, weight = space.moduli(prime=False), strategies.weights(caps)
    levels = sorted(strategies.levels(caps, _QUANTIZE), key=lambda level: level & level - 1 != 0)
    found = [{"q": q, "level": c, "weight": weight[0]} for q in moduli for c in levels[:1] if q > 2 * weight[0]]
    return found[:1]


@distinct(
    _QUANTIZE,
    "QNT-03",
    what="roundings of 100 numbers midway between two integers",
    applies=lambda caps: (
        own_draws(_QUANTIZE)(caps) and caps.policy("quantizer.rounding") == "stochastic" and bool(roundable(caps))
    ),
    learned="roundings repeat, so that errors of an average do not cancel; an implementation that rounds to the "
    "nearest, or down, declares the policy quantizer.rounding",
    verdict="wrong_value",
)
def _quantiser(call: Caller) -> Text:
    scale = roundable(call.caps)[0]
    x = pack_reals(strategies.taken(call.caps, np.full(_COINS, 0.5 / scale["level"])))

    def text(rand: Mapping[str, Any] | None) -> str:
        return str(call.vector(_QUANTIZE, {**scale, "x": x}, "value", _COINS, rand).tolist())

    return text


@distinct(
    _EXPAND,
    "PRG-05",
    what="stream",
    applies=other,
    learned=_DIFFERENCE,
    doc="Distinct keys give distinct streams, even similar keys, and even many of them.",
)
def _stream(call: Caller) -> Text:
    """Expand the seed as a key."""
    q = max(strategies.moduli(call.caps.range(_EXPAND, "q"), prime=False))
    n = _length(q)

    def text(rand: Mapping[str, Any] | None) -> str:
        assert rand is not None
        return str(expanded(call, q, bytes.fromhex(rand["seed"]), n).tolist())

    return text


@distinct(
    _AGREE,
    "KEY-06",
    what="agreed secrets",
    applies=lambda caps: True,
    learned="two users learn what two others agree on",
    each=_FEW,
    doc="New key pairs agree on a new secret each time.",
)
def _agreed(call: Caller) -> Text:
    return lambda rand: str(call.result(_AGREE, {}).get("first"))


@distinct(
    _SEAL,
    "SEA-06",
    what="payload of one plaintext",
    applies=lambda caps: True,
    learned="the server alone learns that two plaintexts are equal",
    each=_FEW,
    doc="Payloads of one plaintext under new keys differ each time.",
)
def _sealed(call: Caller) -> Text:
    params = {"plaintext": bytes(32).hex(), "sender": 0, "receiver": 1, "alter": None}
    return lambda rand: str(call.result(_SEAL, params).get("payload"))


@distinct(
    _BATCH,
    "MRA-07",
    what="60 of 120 users",
    applies=lambda caps: own_draws(_BATCH)(caps) and caps.declares(_BATCH, _CHOSEN),
    learned="who takes part can be foretold by trying seeds",
    each=_SOME,
    verdict="wrong_value",
)
def _chooser(call: Caller) -> Text:
    return lambda rand: str(call.result(_BATCH, _CHOSEN, rand).get("chosen"))


def light_user(caps: Capabilities, d: int, q: int | None = None) -> UserSession:
    """Return a user of the smallest declared round whose update and received shares are zeros."""
    numbers = _smallest(caps, _LIGHT)
    q = max(_moduli(caps, _LIGHT, numbers["N"])) if q is None else q
    L = -(-d // (numbers["U"] - numbers["T"]))
    zeros, share = np.zeros(d, dtype=np.uint64), np.zeros(L, dtype=np.uint64)
    agreed = Agreed({**numbers, "q": q, "d": d}, bytes(16), 0)
    received = dict.fromkeys(range(1, numbers["N"]), share)
    noise = np.zeros((numbers["T"], L), dtype=np.uint64)
    return UserSession(agreed, 0, zeros, zeros, noise, received, tuple(range(numbers["N"])))


def _masked_zeros(call: Caller, scene: UserSession, rand: Mapping[str, Any] | None) -> UintArray:
    """Return the masked update of a zero update, which is the mask."""
    calls = scene.calls()[:2]
    entries = ask(call, _LIGHT, scene.params(calls), dict(rand) if rand else None)
    messages = sent(_LIGHT, entries[1], "upload")
    masked = [message.masked for message in messages if isinstance(message, MaskedUpdate)]
    if len(masked) != 1 or masked[0].size != scene.update.size or int(masked[0].max()) >= scene.agreed.numbers["q"]:
        raise CheckFailed("wrong_value", f"{_LIGHT}: the step upload must send one masked update of d elements")
    return np.asarray(masked[0], dtype=np.uint64)


@distinct(_LIGHT, "LSA-02", what="mask", learned=_DIFFERENCE, each=_SOME)
def _masker(call: Caller) -> Text:
    q = max(_moduli(call.caps, _LIGHT, _smallest(call.caps, _LIGHT)["N"]))
    scene = light_user(call.caps, _length(q), q)
    return lambda rand: str(_masked_zeros(call, scene, rand).tolist())


@distinct(
    _SECAGG,
    "KEY-06",
    what="public keys",
    learned="whoever tries the seeds learns the private keys, and all masks made of them",
    each=_FEW,
)
def _advertiser(call: Caller) -> Text:
    numbers = {"R": "8", "N": 3, "D": 0, "T": 1, "t": 3, "k": 2, "d": 1, "session": bytes(16).hex(), "round": "0"}
    step = {"phase": "advertise_keys", "inbox": []}
    params = {**numbers, "user": 0, "order": [0, 1, 2], "update": pack(np.zeros(1, np.uint64)), "steps": [step]}

    def text(rand: Mapping[str, Any] | None) -> str:
        entries = ask(call, _SECAGG, params, dict(rand) if rand else None)
        return str(taken(_SECAGG, entries[0], "advertise_keys"))

    return text


_WIDEST = 70
"""The most elements of a vector, or of the shares of T users, that are judged one by one."""


def demand_spread(
    call: Caller, operation: str, q: int, cases_of_run: int, elements: Callable[[int], UintArray], what: str
) -> None:
    """Fail when draws of a uniform vector leave an element, or a combination of elements, fixed (CNF-65).

    ``elements(number)`` is the draw with that number. All draws have the same number of elements.
    """
    call.by_relation = True
    first, bits = elements(0), chance.shared_bits(cases_of_run)
    n = spread.enough(q, first.size, bits, residues=True)
    rows = np.array([first, *(elements(number) for number in range(1, n))])
    found = spread.blind(q, rows, residues=True)
    if found is not None:
        learned = f"the server alone, or with what T users hold, learns of {what} what {found.text} tells"
        message = f"{operation}: in {n} draws of {what}, {found.text} {found.how}: {learned}"
        raise CheckFailed("leaked", message, {"coalition": [], "server": True, "learns": learned})
    call.transcript.clear()
    each = f"each element's even and odd numbers in each quarter, or half, of [0, {q}),"
    if q <= spread.SMALL:
        each = f"all residues modulo {q} of each element and each combination of two neighbours"
    call.limits.append(
        f"in {n} draws each combination of elements moved, and {each} came; "
        f"how often is not judged here; false alarm at most 2**-{chance.SPREAD_BITS}"
    )


def some_modulus(draw: Any, caps: Capabilities, operation: str, above: int, *, prime: bool = True) -> int:
    """Draw a modulus, the smallest one in half of the cases."""
    found = strategies.Space(caps, (operation,)).moduli(prime=prime, above=above)
    return int(draw(st.just(min(found)) | st.sampled_from(found)))


def numbered_seeds(draw: Any, call: Caller, operation: str) -> Callable[[int], dict[str, str] | None]:
    """Draw the seeds to use."""
    first = draw(st.integers(0, 2**32 - 1))
    seeded = _takes_seeds(call.caps, operation)
    return lambda number: _rand(seeds.numbered(f"{operation} {first}", number)) if seeded else None


@check(f"privacy/{_ENCODE}/elements", "MDS-10", applies=own_draws(_ENCODE), examples=6, grows=True)
def noise_elements(draw: Any, call: Caller) -> None:
    """The shares of one vector that T users get vary: each element, and each combination of elements."""
    code = strategies.code(draw, call.caps, _ENCODE)
    q = code["q"] = some_modulus(draw, call.caps, _ENCODE, code["N"])
    L = draw(st.integers(1, 4) | st.just(max(4, _WIDEST // code["T"])))
    users = strategies.subset(draw, range(code["N"]), code["T"], code["T"])
    params = {**code, "mask": pack(np.zeros(L * (code["U"] - code["T"]), dtype=np.uint64))}
    rand, cases_of_run = numbered_seeds(draw, call, _ENCODE), draw(st.just(call.cases))

    def elements(number: int) -> UintArray:
        shares = call.listed(_ENCODE, params, "shares", code["N"], rand(number))
        return np.concatenate([call.read(_ENCODE, shares[user], f"shares[{user}]", L, q) for user in users])

    demand_spread(call, _ENCODE, q, cases_of_run, elements, f"the shares of the users {sorted(users)}")


@check("privacy/prg.expand/elements", "PRG-04", applies=other, examples=6, grows=True)
def stream_elements(draw: Any, call: Caller) -> None:
    """Streams of different keys vary: each element, and each combination of elements."""
    q = some_modulus(draw, call.caps, _EXPAND, 1, prime=False)
    n = draw(st.integers(1, 8) | st.sampled_from((20, 33, _WIDEST)))
    first, cases_of_run = draw(st.integers(0, 2**32 - 1)), draw(st.just(call.cases))

    def elements(number: int) -> UintArray:
        return expanded(call, q, seeds.numbered(f"elements {first}", number), n)

    demand_spread(call, _EXPAND, q, cases_of_run, elements, "streams")


@lru_cache(maxsize=64)
def _enough(q: int) -> int:
    return chance.enough(q)


def small_moduli(moduli: Sequence[int]) -> list[int]:
    """Return the smallest and the largest of the given moduli up to 2**10."""
    few = [q for q in moduli if q <= LARGEST_MODULUS]
    return sorted({min(few), max(few)}) if few else []


def demand_residues(
    call: Caller, operation: str, moduli: Sequence[int], elements: Callable[[int, int, int], UintArray]
) -> None:
    """Fail when a residue never occurs. ``elements(q, count, number)`` draws some elements; `number` starts at 0."""
    call.by_relation = True
    for q in moduli:
        n, counts, number = _enough(q), np.zeros(q, dtype=np.int64), 0
        while counts.sum() < n:
            size = min(_PIECE, n - int(counts.sum()))
            counts += np.bincount(elements(q, size, number).astype(np.int64), minlength=q)
            number += 1
        missing = np.flatnonzero(counts == 0).tolist()
        if missing:
            _never(operation, q, missing, n)
        call.transcript.clear()
        call.limits.append(
            f"modulo {q} each residue occurs among {n} elements; how often is not judged here; "
            f"false alarm at most 2**-{chance.ALARM_BITS}"
        )


def _never(operation: str, q: int, missing: list[int], n: int) -> None:
    """Fail because residues are missing."""
    which = f"{missing[0]}{' (the last residue)' if missing[0] == q - 1 else ''}{' (the first)' * (missing[0] == 0)}"
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    learned = f"the server alone learns of a masked element y that the element is not y - {missing[0]} modulo {q}"
    message = f"{operation}: modulo {q} the residue {which}{more} never occurs among {n} elements: {learned}"
    raise CheckFailed("leaked", message, {"coalition": [], "server": True, "learns": learned, "missing": missing})


def _seeded_rand(call: Caller, operation: str, q: int, number: int) -> dict[str, str] | None:
    seeded = call.caps.grade(operation) == "seeded"
    return _rand(seeds.numbered(f"{operation} {q}", number)) if seeded else None


def _small_codes(caps: Capabilities) -> list[int]:
    return _listed(caps, _ENCODE, _smallest(caps, _ENCODE)["N"])


def _listed(caps: Capabilities, operation: str, above: int) -> list[int]:
    """Return two declared prime moduli above a number, 1021 among them if it is declared."""
    return small_moduli([*_moduli(caps, operation, above), *_where_declared(caps, operation, above, _LARGEST_PRIME)])


def _where_declared(caps: Capabilities, operation: str, above: int, q: int) -> list[int]:
    return [q] if q in caps.range(operation, "q") and above < q else []


@check(
    "privacy/mds.encode/residues",
    "MDS-10",
    applies=lambda caps: own_draws(_ENCODE)(caps) and bool(_small_codes(caps)),
    examples=1,
)
def noise_residues(draw: Any, call: Caller) -> None:
    """Modulo a number up to 2**10, each residue occurs in shares, including the first and the last."""
    code = _smallest(call.caps, _ENCODE)

    def elements(q: int, count: int, number: int) -> UintArray:
        text = _held(call, {**code, "q": q}, count, _seeded_rand(call, _ENCODE, q, number))
        return call.read(_ENCODE, text, "shares[0]", count, q)

    demand_residues(call, _ENCODE, _small_codes(call.caps), elements)


def _small_streams(caps: Capabilities) -> list[int]:
    declared = strategies.moduli(caps.range(_EXPAND, "q"), prime=False)
    return small_moduli([*declared, *_where_declared(caps, _EXPAND, 1, LARGEST_MODULUS)])


@check(
    "privacy/prg.expand/residues", "PRG-04", applies=lambda caps: other(caps) and bool(_small_streams(caps)), examples=1
)
def stream_residues(draw: Any, call: Caller) -> None:
    """Modulo a number up to 2**10, each residue occurs in streams, including the first and the last."""

    def elements(q: int, count: int, number: int) -> UintArray:
        return expanded(call, q, seeds.numbered(f"residues {q}", number), count)

    demand_residues(call, _EXPAND, _small_streams(call.caps), elements)


def _small_rounds(caps: Capabilities) -> list[int]:
    return _listed(caps, _LIGHT, _smallest(caps, _LIGHT)["N"])


@check(
    "privacy/lightsecagg.user/residues",
    "LSA-02",
    applies=lambda caps: own_draws(_LIGHT)(caps) and bool(_small_rounds(caps)),
    examples=1,
)
def mask_residues(draw: Any, call: Caller) -> None:
    """Modulo a number up to 2**10, each residue occurs in masks, including the first and the last."""

    def elements(q: int, count: int, number: int) -> UintArray:
        scene = light_user(call.caps, count, q)
        return _masked_zeros(call, scene, _seeded_rand(call, _LIGHT, q, number))

    demand_residues(call, _LIGHT, _small_rounds(call.caps), elements)
