"""The adapter of the reference: every operation of the adapter protocol, implemented by the reference's functions."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from secagg_spec import __version__
from secagg_spec.arithmetic import modular, sampling, validate
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.codes import REJECT_CODES, reject_code
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES, Adapter, Reject, check_drop, check_users
from secagg_spec.conformance.targets.reference import (
    active,
    arithmetic,
    basa,
    basecagg,
    basecagg_scripts,
    crypto,
    heterosag,
    heterosag_round,
    messages,
    multi_round,
    neighbours,
    pairs,
    readers,
    sessions,
    shamir,
    staleness,
    sums,
)
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import SERVER

Handler = Callable[..., dict[str, Any]]
_SESSION = b"secagg-spec kit."


_DECLARED = {name: {"ranges": {"R": {"max": MAX_MODULUS}, "N": {"min": 3}, "t": {"min": 3}}} for name in sums.HANDLERS}
"""SecAgg's modulus is at most 2**32, and its T = t - 2 at least 1."""


def build() -> Adapter:
    """Return the reference as an adapter."""
    adapter = Adapter("secagg-spec reference", __version__)
    for name, handler in HANDLERS.items():
        adapter.operation(name, **_DECLARED.get(name, {}))(refusing(handler))
    for name, handler in sessions.handlers().items():
        declared = {"parties": list(PARTIES)} if name == "session.new" else {}
        adapter.operation(name, **declared)(refusing(handler))
    return adapter


def refusing(handler: Handler) -> Handler:
    """Turn the reference's two error classes into rejections."""

    def call(**arguments: Any) -> dict[str, Any]:
        try:
            return handler(**arguments)
        except (ParameterError, ProtocolError) as error:
            code = reject_code(error) if type(error) in REJECT_CODES else "other"
            blamed = sorted(error.blamed) if isinstance(error, ProtocolError) else []
            raise Reject(code, str(error), [messages.named(party) for party in blamed]) from error

    return call


def _echo(data: Any) -> dict[str, Any]:
    return {"data": data}


def _sample(q: Any, n: Any, bytes: Any) -> dict[str, Any]:
    ring = modular.Ring(readers.number("q", q))
    return {"value": pack(sampling.elements_from_bytes(ring, readers.octets("bytes", bytes), n))}


def _mask(q: Any, update: Any, mask: Any) -> dict[str, Any]:
    vectors = readers.vector("update", update), readers.vector("mask", mask)
    return {"masked": pack(lightsecagg.mask_update(readers.field(q), *vectors))}


def _aggregate(q: Any, N: Any, T: Any, surviving: Any, held: Any) -> dict[str, Any]:
    field = readers.field(q)
    _check_deployment(field.modulus, N, T)
    shares = {user: readers.vector(f"share of user {user}", text) for user, text in _held("held", held, N)}
    _check_shares(field, shares)
    return {"share": pack(lightsecagg.aggregate_shares(field, N, T, surviving, shares))}


def _recover(
    q: Any, N: Any, D: Any, U: Any, T: Any, d: Any, surviving: Any, masked: Any, users: Any, shares: Any
) -> dict[str, Any]:
    """Take the server's last two steps as in a round."""
    parameters = lightsecagg.Parameters(readers.number("q", q), N, D, U, T, d)
    survivors = validate.users("surviving", surviving, N)
    answering = validate.users("users", users, N)
    state = lightsecagg.ServerState(parameters, _SESSION, 0, phase="upload", sharers=tuple(range(N)))
    uploads = readers.rows("masked", masked, len(survivors), parameters.d)
    answers = readers.rows("shares", shares, len(answering), parameters.share_length)
    parameters.field.check("masked", uploads, uploads.shape)
    parameters.field.check("shares", answers, answers.shape)
    update = lightsecagg.MaskedUpdate
    inbox = [update(_SESSION, 0, user, SERVER, row) for user, row in zip(survivors, uploads, strict=True)]
    state, _ = lightsecagg.server_upload.take(state, inbox, randomness={})
    share = lightsecagg.AggregatedShare
    mail = [share(_SESSION, 0, user, SERVER, row) for user, row in zip(answering, answers, strict=True)]
    state, _ = lightsecagg.server_recover.take(state, mail, randomness={})
    assert state.aggregate is not None
    return {"aggregate": pack(state.aggregate)}


def _round(
    q: Any, N: Any, D: Any, U: Any, T: Any, d: Any, updates: Any, drop: Any, rand: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = lightsecagg.Parameters(readers.number("q", q), N, D, U, T, d)
    masks = readers.rows("masks", rand["masks"], N, d)
    noises = readers.rows("noises", rand["noises"], N, T * parameters.share_length)
    shape = T, parameters.share_length
    randomness = {user: {"mask": masks[user], "noise": noises[user].reshape(shape)} for user in range(N)}
    check_drop(drop, N)
    for user in range(N):
        parameters.field.check(f"masks[{user}]", masks[user], (d,))
        parameters.field.check(f"noises[{user}]", noises[user], (noises.shape[1],))
    given = {"randomness": randomness, "dropouts": drop, "session": _SESSION, "round": 0}
    result = lightsecagg.run_round(parameters, readers.rows("updates", updates, N, d), **given)
    return {"aggregate": pack(result.aggregate), "contributors": list(result.contributors)}


HANDLERS: dict[str, Handler] = {
    "echo": _echo,
    **{name: handler for name, handler in arithmetic.HANDLERS.items() if name.startswith("field.")},
    "sample.field": _sample,
    **arithmetic.HANDLERS,
    "lightsecagg.mask": _mask,
    "lightsecagg.aggregate_shares": _aggregate,
    "lightsecagg.recover": _recover,
    "lightsecagg.round": _round,
}
for _module in (crypto, pairs, messages, active, shamir, neighbours, sums, staleness, basecagg, sessions):
    HANDLERS |= _module.HANDLERS
for _module in (basecagg_scripts, basa, heterosag, heterosag_round, multi_round):
    HANDLERS |= _module.HANDLERS


def _held(name: str, value: list[Any], N: int) -> list[tuple[int, Any]]:
    check_users(name, [user for user, _ in value], N)
    return [(user, text) for user, text in value]


def _check_deployment(q: int, N: int, T: int) -> None:
    """Refuse numbers that break LSA-01, of those that the request gives."""
    T = validate.integer("T", T, 1)
    validate.integer("N", N, T + 2, q - 1)


def _check_shares(field: modular.PrimeField, held: Mapping[int, UintArray]) -> None:
    """Refuse held shares, including those of dropped users, unless they are vectors of elements of equal length."""
    length = next((share.size for share in held.values()), 0)
    for user, share in held.items():
        field.check(f"share of user {user}", share, (length,))


def main() -> None:
    """Offer the reference, or one of its mutants, on standard input and output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--mutant", help="run as this mutant (for testing the kit)")
    more = "offer arithmetic with moduli up to 2**521 (for testing the kit)"
    parser.add_argument("--wide", action="store_true", help=more)
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.mutant:
            from secagg_spec.conformance.mutants import catalogue as mutants  # noqa: PLC0415 - a right adapter needs none

            try:
                stack.enter_context(mutants.planted(given.mutant))
            except (mutants.EditError, ParameterError) as error:
                parser.error(str(error))
        (_wide if given.wide else build)().run()


def _wide() -> Adapter:
    from secagg_spec.conformance.targets.reference import wide  # noqa: PLC0415 - it needs what stands here

    return wide.build()
