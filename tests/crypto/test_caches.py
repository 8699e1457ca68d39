"""What the crypto keeps is known, and can be forgotten."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from secagg_spec import arithmetic, crypto
from secagg_spec.crypto import caches, keys


def test_all_that_is_kept_can_be_forgotten_or_is_a_table() -> None:
    names = [f"{one.__name__}.{at.name}" for one in (arithmetic, crypto) for at in pkgutil.iter_modules(one.__path__)]
    modules = [import_module(name) for name in names]
    found = {id(value) for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")}
    assert found == {id(one) for one in (*caches.SHARED, *caches.OWN, *caches.TABLES)}


def test_nothing_that_was_computed_is_found_again() -> None:
    keys.agree(bytes(31) + b"\x01", keys.public_key(bytes(31) + b"\x02"))
    assert keys._agreed.cache_info().currsize > 0
    caches.forget()
    assert [one.cache_info().currsize for one in (*caches.SHARED, *caches.OWN)] == [0] * len(
        (*caches.SHARED, *caches.OWN)
    )


def test_what_another_party_computed_is_forgotten_and_what_one_computed_itself_is_not() -> None:
    caches.forget()
    secret = keys.agree(bytes(31) + b"\x01", keys.public_key(bytes(31) + b"\x02"))
    assert keys.derive(secret, bytes(16), b"binding") == keys.derive(secret, bytes(16), b"binding")
    assert sum(one.cache_info().currsize for one in caches.SHARED) > 0
    caches.forget_shared()
    assert sum(one.cache_info().currsize for one in caches.SHARED) == 0
    assert sum(one.cache_info().currsize for one in caches.OWN) > 0
