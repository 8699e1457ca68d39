"""BASA, one function at a time, by the reference (spec/basa.md, sections 4 and 5)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import Reject, check_users
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.basecagg_scripts import words
from secagg_spec.crypto import boxes, prg
from secagg_spec.crypto.boxes import Address, Epoch
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.errors import LengthMismatch, ParameterError, TooFewSurvivors
from secagg_spec.protocols import buffers
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks, Parameters
from secagg_spec.protocols.basa.runs import Outcome, Run

_SESSION = 16
_HIDDEN = b"secagg-spec kit."
"""The seed for keys and seeds that do not affect the result."""
_FUNCTION = ("kind", "numerator", "denominator")
_WRITTEN = ("R", "c_l", "c_g")


def read_parameters(**numbers: Any) -> Parameters:
    """Return the parameters of a session from its separate numbers."""
    function = {name: numbers.pop(name) for name in _FUNCTION}
    staleness = Staleness(**function, start=readers.number("start", numbers.pop("start")))
    written = {name: readers.number(name, numbers[name]) for name in _WRITTEN}
    return Parameters(**{**numbers, **written}, staleness=staleness)


def bound_epoch(parameters: Parameters, session: Any, round: Any) -> Epoch:
    """Return the data to which keys and boxes of an epoch are bound, with the encryption per position."""
    id = readers.octets("session", session)
    if len(id) != _SESSION:
        raise LengthMismatch("len(session)", len(id), f"{_SESSION} bytes")
    digest = hash_parameters({**parameters.numbers(), "encryption": boxes.PER_POSITION.number})
    return Epoch(digest, id, readers.u32("round", round), parameters.positions, parameters.settle)


def _mask(
    *, session: Any, round: Any, position: Any, accepted: Any, before: Any, weight: Any, update: Any, **numbers: Any
) -> dict[str, Any]:
    seeds = numbers.pop("seeds")
    parameters = read_parameters(**numbers)
    epoch, P = bound_epoch(parameters, session, round), parameters.positions
    place = validate.integer("position", position, 0, P - 1)
    earlier = basa_cores.check_accepted("accepted", accepted, place)
    received = _seeds("before", before, len(earlier))
    mine = _split(readers.octets("seeds", seeds), P)
    masks = Masks(
        (_stream(parameters, epoch, seed, i, place) for i, seed in zip(earlier, received, strict=True)),
        (_stream(parameters, epoch, mine[j], place, j) for j in range(place + 1, P)),
        _stream(parameters, epoch, mine[place], place) if parameters.settle else None,
    )
    masked = basa_cores.mask_update(parameters, readers.vector("update", update), weight, masks)
    return {"masked": pack(masked)}


def _seal(*, public: Any, seed: Any, rand: Mapping[str, Any], **box: Any) -> dict[str, Any]:
    key, secret = readers.octets("public", public), readers.octets("box_key", rand["box_key"])
    return {"box": boxes.seal(_address(**box), key, readers.octets("seed", seed), secret).hex()}


def _open(*, private: Any, box: Any, **about: Any) -> dict[str, Any]:
    key = readers.octets("private", private)
    return {"seed": boxes.open_box(_address(**about), key, readers.octets("box", box)).hex()}


def _address(*, session: Any, round: Any, sender: Any, purpose: Any, **rest: Any) -> Address:
    source, target = rest.pop("from"), rest.pop("to")
    parameters = read_parameters(**rest)
    check_users("sender", [sender], parameters.N)
    return Address(bound_epoch(parameters, session, round), purpose, sender, source, target)


def _recover(
    *, session: Any, round: Any, accepted: Any, weights: Any, masked: Any, own: Any, skipped: Any, **numbers: Any
) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    epoch, chosen = bound_epoch(parameters, session, round), _accepted(parameters, accepted)
    factors = _weights(parameters, weights, len(chosen))
    uploads = readers.rows("masked", masked, len(chosen), parameters.d)
    mine = _seeds("own", own, len(chosen) if parameters.settle else 0)
    left = _skipped(parameters, chosen, skipped)
    total = basa_cores.recover(
        parameters,
        list(uploads),
        (_stream(parameters, epoch, seed, k) for k, seed in zip(chosen, mine, strict=False)),
        (_stream(parameters, epoch, seed, i, j) for (i, j), seed in left.items()),
    )
    average = buffers.average(parameters.ring, parameters.c_l, factors, total)
    return {"sum": pack(total), "average": pack_reals(average)}


def _epochs(
    *, session: Any, round: Any, updates: Any, schedule: Any, rand: Mapping[str, Any], **numbers: Any
) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    epoch = bound_epoch(parameters, session, round)
    texts = enumerate(updates)
    rows = [parameters.ring.check(f"updates[{at}]", readers.vector("updates", x), (parameters.d,)) for at, x in texts]
    draws = readers.reals("roundings", rand["roundings"])
    buffers.check_rounding("roundings", draws, draws.size)
    run = Run(parameters, SeededSource(_HIDDEN, "basa.epochs"), session=epoch.session, round=epoch.number)
    left = iter(zip(rows, draws.tolist(), strict=False))
    for event in schedule:
        _play(run, left, **event)
    return {"epochs": [_outcome(outcome) for outcome in run.outcomes]}


def _play(run: Run, left: Iterator[tuple[UintArray, float]], event: str, **given: Any) -> None:
    """Play one event of a schedule."""
    if event == "close":
        run.close()
        return
    user, stamp = given["user"], readers.u32("stamp", given["stamp"])
    if event == "expire":
        run.expire(user, stamp, keyed=given["keyed"])
        return
    update, rounding = next(left, (None, 0.0))
    if update is None:
        raise ParameterError("updates, roundings", "nothing", "one of each for every upload")
    (run.upload if event == "upload" else run.late)(user, update, stamp, rounding)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of an epoch in the form of a result."""
    entries, recovered = outcome.entries, outcome.recovered
    return {
        "round": str(outcome.epoch),
        "positions": [entry.position for entry in entries],
        "users": [entry.user for entry in entries],
        "weights": words([entry.weight for entry in entries]),
        "sum": None if recovered is None else pack(recovered.sum),
    }


def _accepted(parameters: Parameters, accepted: Any) -> tuple[int, ...]:
    """Return the accepted positions of a closed epoch."""
    chosen = basa_cores.check_accepted("accepted", accepted, parameters.positions)
    if len(chosen) < parameters.T + 2:
        raise TooFewSurvivors(f"{len(chosen)} positions are accepted, and T + 2 is {parameters.T + 2}")
    if len(chosen) > parameters.K or (len(chosen) < parameters.K and not parameters.settle):
        allowed = f"at most K = {parameters.K} positions" if parameters.settle else f"all {parameters.K} positions"
        raise ParameterError("accepted", list(chosen), allowed)
    return chosen


def _weights(parameters: Parameters, weights: Any, count: int) -> UintArray:
    """Return the weights of the accepted updates."""
    factors = readers.shaped("weights", weights, 1, count).reshape(-1)
    for at, weight in enumerate(factors):
        validate.integer(f"weights[{at}]", int(weight), 1, parameters.c_g)
    return factors


def _skipped(parameters: Parameters, accepted: Sequence[int], entries: Any) -> dict[tuple[int, int], bytes]:
    """Return the seeds of the masks that remain, by their two positions."""
    after = [j for j in range(parameters.positions) if j not in accepted]
    wanted = {(i, j) for i in accepted for j in after if i < j}
    found = {(i, j): text for i, j, text in entries}
    if len(found) != len(entries):
        raise Reject("duplicate_id", "skipped names two positions twice")
    if set(found) != wanted:
        allowed = "the pairs of an accepted position and a later one that is not, each once"
        raise ParameterError("skipped", sorted(found), allowed)
    return dict(zip(found, _seeds("skipped", list(found.values()), len(found)), strict=True))


def _seeds(name: str, texts: Sequence[str], count: int) -> list[bytes]:
    """Return `count` seeds."""
    if len(texts) != count:
        raise LengthMismatch(name, f"{len(texts)} seeds", f"{count} seeds")
    seeds = [readers.octets(f"{name}[{at}]", text) for at, text in enumerate(texts)]
    for at, seed in enumerate(seeds):
        prg.check_key(f"{name}[{at}]", seed)
    return seeds


def _split(data: bytes, count: int) -> list[bytes]:
    """Return the seeds in a concatenation."""
    size = prg.KEY_BYTES
    if len(data) != count * size:
        raise LengthMismatch("len(seeds)", len(data), f"{count * size}: {size} bytes for each position")
    return [data[at : at + size] for at in range(0, len(data), size)]


def _stream(parameters: Parameters, epoch: Epoch, seed: bytes, source: int, target: int | None = None) -> Iterator[Any]:
    """Return the mask that a seed generates, in pieces."""
    return prg.stream(boxes.mask_key(epoch, seed, source, target), parameters.ring, parameters.d)


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "basa.mask": _mask,
    "basa.seal": _seal,
    "basa.open": _open,
    "basa.recover": _recover,
    "basa.epochs": _epochs,
}
