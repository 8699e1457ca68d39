"""BASecAgg, one function at a time, by the reference (spec/basecagg.md, sections 5 and 6)."""

from collections.abc import Callable, Mapping
from typing import Any

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import check_users
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols import buffers
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg.round import Held, Parameters


def _encode(q: Any, K: Any, c_l: Any, c_g: Any, x: Any, rand: Mapping[str, Any]) -> dict[str, Any]:
    field = readers.field(q)
    values = quantizer.quantize(
        readers.reals("x", x),
        level=readers.number("c_l", c_l),
        ring=field,
        weight=_total_weight(field, K, readers.number("c_g", c_g)),
        rounding=readers.reals("rounding", rand["rounding"]),
    )
    return {"value": pack(values)}


def _mask(q: Any, K: Any, c_g: Any, update: Any, mask: Any) -> dict[str, Any]:
    field = readers.field(q)
    weight = _total_weight(field, K, readers.number("c_g", c_g))
    vectors = readers.vector("update", update), readers.vector("mask", mask)
    return {"masked": pack(basecagg.mask_update(field, weight, *vectors))}


def _combine(
    *, q: Any, N: Any, T: Any, K: Any, c_g: Any, tau_max: Any, round: Any, users: Any, held: Any, **given: Any
) -> dict[str, Any]:
    """Answer for a buffer; numbers that the answer does not depend on get their smallest values."""
    columns = [readers.vector(name, given.pop(name)) for name in ("stamps", "weights")]
    numbers = {"q": readers.number("q", q), "N": N, "D": 0, "U": validate.integer("T", T, 1) + 1, "T": T, "d": 1}
    levels = {"K": K, "c_l": 1, "c_g": readers.number("c_g", c_g), "tau_max": tau_max}
    parameters = Parameters(**numbers, **levels, staleness=_staleness(**given))
    shares = _held(parameters.field, N, held)
    entries = basecagg.entries_of(users, *columns)
    return {"share": pack(basecagg.combine_shares(parameters, readers.u32("round", round), entries, shares))}


def _recover(
    q: Any, N: Any, U: Any, T: Any, d: Any, c_l: Any, weights: Any, masked: Any, users: Any, shares: Any
) -> dict[str, Any]:
    code, factors = MaskCode(readers.field(q), N, U, T), readers.vector("weights", weights)
    uploads = readers.rows("masked", masked, factors.size, validate.integer("d", d, 1))
    chosen = validate.users("users", users, code.N)
    answers = readers.rows("shares", shares, len(chosen), code.share_length(d))
    level = validate.integer("c_l", readers.number("c_l", c_l), 1, MAX_LEVEL)
    total = basecagg.recover(code, factors, list(uploads), chosen, answers)
    return {"sum": pack(total), "average": pack_reals(buffers.average(code.field, level, factors, total))}


def _staleness(kind: Any, numerator: Any, denominator: Any, start: Any) -> Staleness:
    return Staleness(kind, numerator, denominator, readers.number("start", start))


def _total_weight(field: PrimeField, K: Any, c_g: int) -> int:
    """Return K c_g if an update of one unit can be carried (BSA-02)."""
    weight = validate.integer("K", K, 1) * validate.integer("c_g", c_g, 1, MAX_LEVEL)
    if weight > (field.modulus - 1) // 2:
        raise ParameterError("K * c_g", weight, f"at most (q - 1) // 2 = {(field.modulus - 1) // 2}")
    return weight


def _held(field: PrimeField, N: int, entries: Any) -> dict[int, Held]:
    """Return the shares that a user holds: all of one length, with at least one element."""
    check_users("held", [user for user, _, _ in entries], N)
    return {
        user: Held(readers.u32(f"stamp of user {user}", stamp), _share(field, user, text, len(entries[0][2]) // 8))
        for user, stamp, text in entries
    }


def _share(field: PrimeField, user: int, text: Any, length: int) -> UintArray:
    share = field.check(f"share of user {user}", readers.vector("share", text), (length,))
    if not length:
        raise LengthMismatch(f"share of user {user}", text, "L >= 1 elements")
    return share


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "basecagg.encode": _encode,
    "basecagg.mask": _mask,
    "basecagg.combine": _combine,
    "basecagg.recover": _recover,
}
