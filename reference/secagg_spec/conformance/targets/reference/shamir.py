"""Operations of secret sharing, by the reference (spec/conventions.md, section 11)."""

from collections.abc import Callable, Mapping
from typing import Any

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.targets.reference import readers


def _share(t: Any, n: Any, secret: Any, rand: Mapping[str, Any]) -> dict[str, Any]:
    shamir.check_numbers(t, n)
    data = readers.octets("coefficients", rand["coefficients"])
    coefficients = shamir.elements_from_bytes("coefficients", data, t - 1)
    shares = shamir.share(readers.octets("secret", secret), coefficients, range(n))
    return {"shares": [shamir.element_bytes(share).hex() for share in shares]}


def _reconstruct(t: Any, users: Any, shares: Any) -> dict[str, Any]:
    texts = [readers.octets("shares", text) for text in shares]
    values = [shamir.element_from_bytes(f"shares[{at}]", data) for at, data in enumerate(texts)]
    return {"secret": shamir.reconstruct(t, users, values).hex()}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"shamir.share": _share, "shamir.reconstruct": _reconstruct}
