"""What the crypto keeps is known, and can be forgotten."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from secagg_spec import arithmetic, crypto
from secagg_spec.crypto import kept, keys


def test_all_that_is_kept_can_be_forgotten_or_is_a_table() -> None:
    names = [f"{one.__name__}.{at.name}" for one in (arithmetic, crypto) for at in pkgutil.iter_modules(one.__path__)]
    modules = [import_module(name) for name in names]
    caches = {id(value) for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")}
    assert caches == {id(one) for one in (*kept.SHARED, *kept.OWN, *kept.TABLES)}


def test_nothing_that_was_computed_is_found_again() -> None:
    keys.agree(bytes(31) + b"\x01", keys.public_key(bytes(31) + b"\x02"))
    assert keys._agreed.cache_info().currsize > 0
    kept.forget()
    assert [one.cache_info().currsize for one in (*kept.SHARED, *kept.OWN)] == [0] * len((*kept.SHARED, *kept.OWN))
