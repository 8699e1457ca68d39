"""Checks of BASA, one function at a time (spec/basa.md, sections 4 and 5)."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import basa_functions as scenes
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import one_of, place_of
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, equal, fail, octets, same
from secagg_spec.conformance.checks.basecagg import demand_average
from secagg_spec.conformance.checks.crypto import altered, low_order
from secagg_spec.conformance.checks.streams import standard
from secagg_spec.conformance.sessions.basa_positions import MASK, OPEN, RECOVER, SEAL, Box, Buffer, digest, epoch_of
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.crypto import boxes
from secagg_spec.crypto.boxes import PAIR, SELF, Address
from secagg_spec.errors import DecryptionFailed
from secagg_spec.protocols.basa.cores import SETTLE, VOID, Parameters

UPDATE = reject.LENGTH | reject.NONCANONICAL | reject.BAD_PARAM
ELSEWHERE = reject.MALFORMED | reject.BAD_PARAM | reject.LENGTH | reject.TWICE | reject.TOO_FEW | reject.OUTSIDE
ELSEWHERE |= reject.NONCANONICAL
"""The codes for wrong numbers, updates and requests: the table of spec/adapter.md, section 5."""

_BYTES = 32
_WRONG_ROUND = (str(2**32), "-1")


@check("basa.mask/exact", "BAA-26", "BAA-03", applies=standard)
def mask(draw: Any, call: Caller) -> None:
    """The masked update adds its own mask and the masks to later positions, and subtracts those of accepted ones."""
    chosen, k = scenes.drawn(draw)
    same(f"masked update of position {k}", masked_update(call, chosen, k), chosen.masked(k))


@check("basa.mask/cancel", "BAA-26", examples=60)
def cancel(draw: Any, call: Caller) -> None:
    """In the profile void, the masked updates of all positions sum to the sum of the weighted updates."""
    chosen = scenes.buffer(draw, scenes.parameters(draw, timeouts=VOID))
    call.by_relation |= not standard(call.caps)
    total = np.zeros(chosen.parameters.d, dtype=np.uint64)
    for k in chosen.accepted:
        total = chosen.parameters.ring.add(total, masked_update(call, chosen, k))
    same("sum of the masked updates", total, chosen.sum())


@check("basa.mask/bound", "BAA-03", examples=60)
def bound(draw: Any, call: Caller) -> None:
    """The same seeds give other masks under another session, epoch or parameters."""
    p = replace(scenes.parameters(draw), R=2**32, d=8)
    chosen = scenes.buffer(draw, p)
    k = chosen.accepted[0]
    shape = attrgetter("R", "d", "positions", "timeouts")
    others = {name: other for name, other in scenes.others(p).items() if shape(other) == shape(p)}
    name = draw(among(("session", "epoch", *sorted(others))))
    moved = _elsewhere(chosen, name, others)
    call.by_relation |= not standard(call.caps)
    first = masked_update(call, chosen, k)
    weighed = replace(moved, weights={**chosen.weights, k: 1}, updates=_zeros(chosen))
    second = masked_update(call, weighed, k)
    if np.array_equal(p.ring.subtract(first, _weighted(chosen, k)), second):
        fail(f"the masks are the same under another {name}")


def _elsewhere(chosen: Buffer, name: str, others: Mapping[str, Parameters]) -> Buffer:
    """Return the same uploads under another session, another epoch, or other parameters."""
    if name == "session":
        return replace(chosen, session=bytes([chosen.session[0] ^ 1]) + chosen.session[1:])
    if name == "epoch":
        return replace(chosen, number=chosen.number ^ 1)
    return replace(chosen, parameters=others[name])


def _zeros(chosen: Buffer) -> dict[int, UintArray]:
    return {k: chosen.parameters.ring.zeros(chosen.parameters.d) for k in chosen.accepted}


def _weighted(chosen: Buffer, k: int) -> UintArray:
    ring, update = chosen.parameters.ring, chosen.updates[k]
    return ring.multiply(update, np.full(update.shape, chosen.weights[k], dtype=np.uint64))


@check("basa.mask/unused-seeds", "BAA-26", examples=20)
def unused_seeds(draw: Any, call: Caller) -> None:
    """Seeds to earlier positions change nothing. In the profile void, a position's own seed changes nothing."""
    chosen, k = scenes.drawn(draw)
    last = k + (not chosen.parameters.settle)
    other = (bytes(_BYTES),) * last + chosen.seeds[k][last:]
    call.by_relation |= not standard(call.caps)
    moved = replace(chosen, seeds={**chosen.seeds, k: other})
    same("masked update with other unused seeds", masked_update(call, moved, k), masked_update(call, chosen, k))


@check("basa.mask/used-seeds", "BAA-26", examples=40)
def used_seeds(draw: Any, call: Caller) -> None:
    """Each seed to a later position or from an accepted earlier one makes a mask; in *settle*, so does the own seed."""
    chosen = scenes.buffer(draw, replace(scenes.parameters(draw), R=2**32, d=8))
    p, k = chosen.parameters, int(draw(among(chosen.accepted)))
    used = {
        "of the self mask": [(k, k)] * p.settle,
        "to a position after": [(k, j) for j in range(k + 1, p.positions)],
        "from a position before": [(i, k) for i in chosen.before(k)],
    }
    which = draw(among([name for name, ends in used.items() if ends]))
    i, j = draw(among(used[which]))
    seeds = chosen.seeds[i]
    other = (*seeds[:j], bytes([seeds[j][0] ^ 1]) + seeds[j][1:], *seeds[j + 1 :])
    call.by_relation |= not standard(call.caps)
    moved = replace(chosen, seeds={**chosen.seeds, i: other})
    if np.array_equal(masked_update(call, moved, k), masked_update(call, chosen, k)):
        fail(f"the masked update of position {k} is the same with another seed {which}")


@check("basa.mask/budget", "BAA-25", examples=40)
def budget(draw: Any, call: Caller) -> None:
    """An update is refused if K c_g times one of its integers is beyond (R - 1) / 2, whatever its weight."""
    chosen, k = scenes.drawn(draw)
    p = chosen.parameters
    most = scenes.half(p.R)
    only_if(p.budget != most)
    value = draw(among((p.budget + 1, -p.budget - 1, most, -most)) | st.integers(p.budget + 1, most))
    update = chosen.updates[k].copy()
    update[draw(st.integers(0, p.d - 1))] = value + p.R if value < 0 else value
    why = f"|{value}| * {p.K} * {p.c_g} is above {most}, so that the budget is {p.budget}"
    call.refused(MASK, chosen.mask_params(k, update=pack(update)), reject.NOT_FINITE, why)


@check("basa.mask/update", "BAA-24", examples=30)
def update(draw: Any, call: Caller) -> None:
    """An update with a length other than d or a number not below R is refused."""
    chosen, k = scenes.drawn(draw)
    right, R = chosen.updates[k], chosen.parameters.R
    wrong = [right[:-1], np.append(right, np.uint64(0)), np.tile(right, 2)]
    if R < 2**32:
        high = right.copy()
        high[place_of(draw, right.tolist())] = draw(among((R, 2**32 - 1)))
        wrong += [high] * 3
    changed = one_of(draw, wrong)
    why = f"the update is {changed.tolist()}, d is {right.size} and R is {R}"
    call.refused(MASK, chosen.mask_params(k, update=pack(changed)), UPDATE, why)


@check("basa.mask/request", "ADP-37", examples=80)
def mask_request(draw: Any, call: Caller) -> None:
    """Positions, weights and seeds that the text forbids are refused."""
    chosen = scenes.buffer(draw, scenes.parameters(draw))
    k = chosen.accepted[draw(st.integers(1, len(chosen.accepted) - 1))]
    call.some_refused(draw, MASK, chosen.mask_params(k), _wrong_uploads(chosen, k), ELSEWHERE)


def _wrong_uploads(chosen: Buffer, k: int) -> dict[str, dict[str, Any]]:
    """Return forbidden changes of a request, by name."""
    params, P = chosen.mask_params(k), chosen.parameters.positions
    accepted, before, seeds = params["accepted"], params["before"], params["seeds"]
    found = {
        "a position after the last": {"position": P},
        "a negative position": {"position": -1},
        "a position before those that are accepted": {"position": accepted[-1]},
        "an accepted position after its own": {"accepted": [*accepted[:-1], P - 1 if k < P - 1 else P]},
        "its own position among the accepted ones": {"accepted": [*accepted[:-1], k]},
        "a negative accepted position": {"accepted": [-1, *accepted[1:]]},
        "an accepted position twice": {"accepted": [*accepted, accepted[-1]], "before": [*before, before[-1]]},
        "a seed too few": {"before": before[:-1]},
        "a seed too many": {"before": [*before, before[-1]]},
        "a short seed of another position": {"before": [*before[:-1], before[-1][:-2]]},
        "a long seed of another position": {"before": [*before[:-1], before[-1] + "00"]},
        "one byte of its own seeds too few": {"seeds": seeds[:-2]},
        "one seed of its own too few": {"seeds": seeds[:-64]},
        "one seed of its own too many": {"seeds": seeds + seeds[-64:]},
        "a weight of 0": {"weight": 0},
        "a negative weight": {"weight": -1},
        "a weight above c_g": {"weight": chosen.parameters.c_g + 1},
        "a session id of 15 bytes": {"session": params["session"][:-2]},
        "a session id of 17 bytes": {"session": params["session"] + "00"},
        **{f"the round {round}": {"round": round} for round in _WRONG_ROUND},
    }
    return found if len(accepted) < 2 else {**found, "no order of positions": {"accepted": accepted[::-1]}}


def masked_update(call: Caller, chosen: Buffer, k: int) -> UintArray:
    """Return the masked update of a position."""
    p = chosen.parameters
    return call.read(MASK, call.result(MASK, chosen.mask_params(k)).get("masked"), "masked", p.d, p.R)


def _explicit(caps: Capabilities) -> bool:
    return caps.grade(SEAL) == "explicit"


@check("basa.seal/exact", "BAA-04", applies=_explicit)
def seal(draw: Any, call: Caller) -> None:
    """A box is the sender's public key and the sealed seed, bound to everything that the text lists."""
    chosen = scenes.box(draw)
    equal("the box is", _sealed(call, chosen).hex(), chosen.sealed().hex())


@check("basa.seal/opens", "BAA-04", "BAA-05")
def opens(draw: Any, call: Caller) -> None:
    """The private key opens a box to its seed, whatever the sender drew. The box does not show the seed in clear."""
    chosen = scenes.box(draw)
    box = _sealed(call, chosen, draw(st.integers(0, 2**32)))
    try:
        seed = boxes.open_box(chosen.address, chosen.private, box)
    except DecryptionFailed:
        fail(f"the box {box.hex()} of {len(box)} bytes does not open")
    if seed != chosen.seed:
        fail(f"the box holds the seed {seed.hex()}, must hold {chosen.seed.hex()}", chosen.seed.hex())


@check("basa/own-boxes", "BAA-04", "BAA-05", operations=(SEAL, OPEN))
def own_boxes(draw: Any, call: Caller) -> None:
    """A box that the adapter sealed opens to its seed."""
    chosen = scenes.box(draw)
    sealed = _sealed(call, chosen, draw(st.integers(0, 2**32)))
    _opened(call, chosen, sealed)


@check("basa.seal/low-order", "BAA-06", examples=30)
def seal_weak(draw: Any, call: Caller) -> None:
    """Sealing to a public key of low order is refused."""
    chosen = scenes.box(draw)
    rand = call.randomness(SEAL, {"box_key": chosen.box_key.hex()})
    why = "the secret is all zero"
    call.refused(SEAL, chosen.seal_params(public=low_order(draw).hex()), reject.WEAK_KEY, why, rand)


@check("basa.open/exact", "BAA-05", "BAA-04")
def open_box(draw: Any, call: Caller) -> None:
    """A box opens to its seed."""
    chosen = scenes.box(draw)
    _opened(call, chosen, chosen.sealed())


@check("basa.open/altered", "BAA-05", examples=60)
def open_altered(draw: Any, call: Caller) -> None:
    """A box that was altered, cut or extended does not open."""
    chosen = scenes.box(draw)
    box = altered(draw, chosen.sealed())
    call.refused(OPEN, chosen.open_params(box), reject.BAD_CIPHERTEXT, "the box was altered")


@check("basa.open/low-order", "BAA-06", examples=30)
def open_weak(draw: Any, call: Caller) -> None:
    """A box with a public key of low order does not open, even if it is sealed under the shared secret 0."""
    chosen, weak = scenes.box(draw), low_order(draw)
    box = scenes.weak_box(chosen, weak)
    call.refused(OPEN, chosen.open_params(box), reject.BAD_CIPHERTEXT, "it holds a key of low order")


@check("basa.open/another-context", "BAA-05", examples=120)
def open_elsewhere(draw: Any, call: Caller) -> None:
    """A box does not open if any field of its binding differs from what the receiver expects."""
    chosen = scenes.box(draw)
    places, others = _other_places(draw, chosen), scenes.others(chosen.parameters)
    kind = draw(among([*sorted(places), "session", "parameters", "key"]))
    number, epoch = draw(among(sorted(others))), chosen.address.epoch
    places["session"] = {"epoch": replace(epoch, session=bytes([epoch.session[0] ^ 1]) + epoch.session[1:])}
    places["parameters"] = {"epoch": epoch_of(others[number], epoch.session, epoch.number)}
    other_key = replace(chosen, private=chosen.box_key, box_key=chosen.private)
    box = other_key.sealed() if kind == "key" else _for_place(chosen, places[kind])
    what = f"parameters ({number})" if kind == "parameters" else kind
    call.refused(OPEN, chosen.open_params(box), reject.BAD_CIPHERTEXT, f"it was sealed for another {what}")


def _other_places(draw: Any, chosen: Box) -> dict[str, dict[str, Any]]:
    """Return changes of the binding, by the field that differs."""
    a, P, N = chosen.address, chosen.parameters.positions, chosen.parameters.N
    found: dict[str, dict[str, Any]] = {
        "sender": {"sender": (a.sender + draw(among((1, N - 1)))) % N},
        "epoch": {"epoch": replace(a.epoch, number=a.epoch.number ^ draw(among((1, 2**8, 2**31))))},
    }
    if a.purpose == SELF:
        return {**found, "purpose": {"purpose": PAIR}, "position": {"source": (a.source + 1) % P}}
    found |= {"purpose": {"purpose": SELF}, "order of positions": {"source": a.target, "target": a.source}}
    return {**found, "source": {"source": (a.source + 1) % P}, "target": {"target": (a.target + 1) % P}}


def _for_place(chosen: Box, changed: Mapping[str, Any]) -> bytes:
    """Return a box with another binding, even one that no honest sender makes."""
    a = chosen.address
    other = Address(a.epoch, a.purpose, a.sender, a.source, a.target)
    for name, value in changed.items():
        object.__setattr__(other, name, value)
    if a.purpose == SELF and "source" in changed:
        object.__setattr__(other, "target", changed["source"])
    return chosen.sealed(other)


@check("basa.open/another-encryption", "BAA-05", examples=10)
def open_encryption(draw: Any, call: Caller) -> None:
    """A box sealed under the parameters of the other encryption does not open."""
    chosen = scenes.box(draw)
    epoch = chosen.address.epoch
    other = digest(chosen.parameters, encryption=1)
    box = _for_place(chosen, {"epoch": replace(epoch, parameters=other)})
    call.refused(OPEN, chosen.open_params(box), reject.BAD_CIPHERTEXT, "it was sealed for another encryption")


@check("basa.seal/request", "ADP-37", examples=60)
def seal_request(draw: Any, call: Caller) -> None:
    """Positions, users, purposes, seeds and keys that the text forbids are refused."""
    chosen = scenes.box(draw)
    params = chosen.seal_params()
    wrong = {**_wrong_boxes(chosen), **_lengths(params, "public"), **_lengths(params, "seed")}
    rand = call.randomness(SEAL, {"box_key": chosen.box_key.hex()})
    call.some_refused(draw, SEAL, params, wrong, ELSEWHERE, rand)


@check("basa.seal/box-key", "RND-04", applies=_explicit, examples=10)
def seal_box_key(draw: Any, call: Caller) -> None:
    """A sampled key that is not 32 bytes long is refused."""
    chosen = scenes.box(draw)
    wrong = draw(among((chosen.box_key[:-1], chosen.box_key + b"\0", b"")))
    call.refused(SEAL, chosen.seal_params(), ELSEWHERE, f"box_key has {len(wrong)} bytes", {"box_key": wrong.hex()})


@check("basa.open/request", "ADP-37", examples=60)
def open_request(draw: Any, call: Caller) -> None:
    """Positions, users, purposes and keys that the text forbids are refused."""
    chosen = scenes.box(draw)
    params = chosen.open_params(chosen.sealed())
    wrong = {**_wrong_boxes(chosen), **_lengths(params, "private")}
    call.some_refused(draw, OPEN, params, wrong, ELSEWHERE | reject.BAD_CIPHERTEXT)


def _wrong_boxes(chosen: Box) -> dict[str, dict[str, Any]]:
    """Return forbidden changes of a request, by name."""
    a, p = chosen.address, chosen.parameters
    session = a.epoch.session.hex()
    own, others = a.purpose == SELF, {"settle": SELF if a.purpose == PAIR else PAIR, "void": SELF}
    return {
        "a position after the last": {"to": p.positions, "from": p.positions if own else a.source},
        "a negative position": {"from": -1, "to": -1 if own else a.target},
        "no ascent of the positions": {"from": a.target + 1} if own else {"from": a.target, "to": a.source},
        "one position of two, or two of one": {"from": a.target} if a.purpose == PAIR else {"to": a.target + 1},
        "another purpose": {"purpose": others[p.timeouts]},
        "an unknown purpose": {"purpose": "pair"},
        "a sender outside the roster": {"sender": p.N},
        "a negative sender": {"sender": -1},
        "a session id of 15 bytes": {"session": session[:-2]},
        "a session id of 17 bytes": {"session": session + "00"},
        **{f"the round {round}": {"round": round} for round in _WRONG_ROUND},
    }


def _lengths(params: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    text = params[name]
    return {f"a short {name}": {name: text[:-2]}, f"a long {name}": {name: text + "00"}, f"no {name}": {name: ""}}


@check("basa.seal/void", "ADP-37", examples=5)
def seal_void(draw: Any, call: Caller) -> None:
    """In the profile void, a self box is refused, because the profile has none."""
    chosen = scenes.box(draw, purpose=PAIR)
    p = replace(chosen.parameters, S=0, timeouts=VOID)
    params = replace(chosen, parameters=p).seal_params(purpose=SELF, **{"from": 0, "to": 0})
    rand = call.randomness(SEAL, {"box_key": chosen.box_key.hex()})
    call.refused(SEAL, params, ELSEWHERE, "the profile void has no self boxes", rand)


def _sealed(call: Caller, chosen: Box, seed: int = 1) -> bytes:
    """Return the box that the adapter seals."""
    rand = call.randomness(SEAL, {"box_key": chosen.box_key.hex()}, seed)
    return octets(f"{SEAL}: box", call.result(SEAL, chosen.seal_params(), rand).get("box"))


def _opened(call: Caller, chosen: Box, sealed: bytes) -> None:
    """Demand that a box opens to its seed."""
    got = octets(f"{OPEN}: seed", call.result(OPEN, chosen.open_params(sealed)).get("seed"))
    equal("the seed is", got.hex(), chosen.seed.hex())


@check("basa.recover/exact", "BAA-41", "BAA-43", applies=standard)
def recover(draw: Any, call: Caller) -> None:
    """Recovery subtracts exactly each accepted position's own mask and its masks to positions not accepted."""
    chosen, params = scenes.recovery(draw)
    _recovered(call, chosen, params)


@check("basa.recover/skips", "BAA-41", applies=standard, examples=60)
def skips(draw: Any, call: Caller) -> None:
    """The masks to skipped and unused positions are subtracted, whatever the order of their seeds."""
    chosen, params = scenes.recovery(draw, spare=1)
    entries = [params["skipped"][at] for at in strategies.shuffled(draw, range(len(params["skipped"])))]
    _recovered(call, chosen, {**params, "skipped": entries})


@check("basa/own-masks", "BAA-26", "BAA-41", "BAA-43", operations=(MASK, RECOVER), examples=60)
def own_masks(draw: Any, call: Caller) -> None:
    """Updates under the adapter's own masks are recovered as the sum of the weighted updates."""
    chosen = scenes.buffer(draw, scenes.parameters(draw))
    rows = [masked_update(call, chosen, k) for k in chosen.accepted]
    call.by_relation |= not standard(call.caps)
    _recovered(call, chosen, chosen.recover_params(rows))


def _recovered(call: Caller, chosen: Buffer, params: Mapping[str, Any]) -> None:
    p = chosen.parameters
    divisor = p.c_l * sum(chosen.weights[k] for k in chosen.accepted)
    demand_average(call, RECOVER, params, p.ring, p.d, chosen.sum(), divisor)


@check("basa.recover/request", "ADP-37", examples=100)
def recover_request(draw: Any, call: Caller) -> None:
    """Positions, weights, vectors and seeds that the text forbids are refused."""
    chosen, params = scenes.recovery(draw)
    wrong = {**_wrong_lists(chosen, params), **_wrong_skips(chosen, params)}
    call.some_refused(draw, RECOVER, params, wrong, ELSEWHERE)


def _wrong_lists(chosen: Buffer, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes of the lists that follow the accepted positions."""
    p, weights, masked, own = chosen.parameters, params["weights"], params["masked"], params["own"]
    accepted = params["accepted"]
    found = {
        "no order of the accepted positions": {"accepted": accepted[::-1]},
        "an accepted position twice": {"accepted": [*accepted[:-1], accepted[-2]]},
        "a position after the last": {"accepted": [*accepted[:-1], p.positions]},
        "a negative position": {"accepted": [-1, *accepted[1:]]},
        "a weight too few": {"weights": weights[:-8]},
        "a weight too many": {"weights": weights + weights[-8:]},
        "a weight of 0": {"weights": "00000000" + weights[8:]},
        "a weight above c_g": {"weights": weights[:-8] + pack(np.array([p.c_g + 1], dtype=np.uint64))},
        "a masked update too few": {"masked": masked[:-1]},
        "a masked update too many": {"masked": [*masked, masked[-1]]},
        "a short masked update": {"masked": [masked[0][:-8], *masked[1:]]},
        "a long masked update": {"masked": [*masked[:-1], masked[-1] + masked[-1][:8]]},
        "an own seed too many": {"own": [*own, "00" * _BYTES]},
        "a session id of 15 bytes": {"session": params["session"][:-2]},
        **{f"the round {round}": {"round": round} for round in _WRONG_ROUND},
    }
    if p.R < 2**32:
        found["a number that is not below R"] = {"masked": [pack(np.full(p.d, p.R, dtype=np.uint64)), *masked[1:]]}
    if own:
        found |= {"an own seed too few": {"own": own[:-1]}, "a short own seed": {"own": [own[0][:-2], *own[1:]]}}
    return found


def _wrong_skips(chosen: Buffer, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes of the seeds of the masks that are left."""
    skipped, accepted = params["skipped"], params["accepted"]
    extra = [accepted[0], accepted[1], "00" * _BYTES]
    found = {"a seed between accepted positions": {"skipped": [*skipped, extra]}}
    if skipped:
        i, j, seed = skipped[-1]
        found |= {
            "a seed too few": {"skipped": skipped[:-1]},
            "a seed twice": {"skipped": [*skipped, skipped[0]]},
            "a short seed": {"skipped": [*skipped[:-1], [i, j, seed[:-2]]]},
            "a seed back": {"skipped": [*skipped[:-1], [j, i, seed]]},
        }
    return found


@check("basa.recover/count", "ADP-37", examples=40)
def count(draw: Any, call: Caller) -> None:
    """Recovery is refused for fewer than T + 2 or more than K accepted positions. The profile void needs every one."""
    timeouts = draw(among((SETTLE, VOID)))
    p = scenes.parameters(draw, timeouts=timeouts, spare=int(timeouts == SETTLE), short=True)
    wrong = [*range(1, p.T + 2), *([p.K + 1] if p.settle else range(p.T + 2, p.K))]
    size = draw(among(wrong))
    accepted = tuple(range(size))
    chosen = scenes.buffer(draw, p, accepted=accepted)
    params = chosen.recover_params(list(chosen.updates.values()))
    call.refused(RECOVER, params, ELSEWHERE, f"{size} positions are accepted; T is {p.T}, K is {p.K}, {p.timeouts}")


def _numbers(operation: str) -> None:
    @check(f"{operation}/numbers", "BAA-01", "BAA-02", "STL-01", examples=60)
    def numbers(draw: Any, call: Caller) -> None:
        """Numbers of a session that the text forbids are refused."""
        p = scenes.parameters(draw)
        params, rand = _request(draw, operation, p)
        given, why = call.randomness(operation, rand), "there is a rule broken ({})"
        call.some_refused(draw, operation, params, scenes.wrong_numbers(p), ELSEWHERE, given, why)


def _request(draw: Any, operation: str, p: Parameters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a right request with these numbers."""
    if operation in (SEAL, OPEN):
        chosen = scenes.box(draw, given=p)
        params = chosen.seal_params() if operation == SEAL else chosen.open_params(chosen.sealed())
        return params, {"box_key": chosen.box_key.hex()}
    made = scenes.buffer(draw, p)
    zeros = _zeros(made)
    if operation == MASK:
        return replace(made, updates=zeros).mask_params(made.accepted[0]), {}
    return made.recover_params(list(zeros.values())), {}


for _name in (MASK, SEAL, OPEN, RECOVER):
    _numbers(_name)
