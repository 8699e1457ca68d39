"""Planted bugs around the operations of the reference: what makes an adapter that is asked, or answers, otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.sdk.secagg_adapter import Adapter

Function = Callable[..., Any]
BUILD = "secagg_spec.conformance.targets.reference:build"
"""The target of such a bug."""


def changing(*operations: str) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Function]:
    """Return what makes a reference that changes what it is asked for some operations."""
    return lambda change: wrapping(*operations)(lambda asked, given: asked(**change(given)))


def wrapping(*operations: str) -> Callable[[Callable[[Function, dict[str, Any]], Any]], Function]:
    """Return what makes a reference that answers some operations by a function of the right answer and the request."""

    def build(answered: Callable[[Function, dict[str, Any]], Any]) -> Function:
        def wrong(right: Function) -> Function:
            def built() -> Adapter:
                adapter: Adapter = right()
                for name in operations:
                    asked = adapter._handlers[name]
                    adapter.operation(name)(lambda asked=asked, **given: answered(asked, given))
                return adapter

            return built

        return wrong

    return build
