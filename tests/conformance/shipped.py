"""The vectors that the kit ships, read once for all tests that ask them."""

from __future__ import annotations

from secagg_spec.conformance.vectors import store

VECTOR_FILES = store.load_all()
VECTORS = {vector.id: vector for file in VECTOR_FILES for vector in file.vectors}
