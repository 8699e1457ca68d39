"""All checks, by the part of the text that they decide: each module registers its own."""

from importlib import import_module
from pkgutil import iter_modules

from secagg_spec.conformance.checks.base import REGISTRY, Check

__all__ = ["REGISTRY", "Check"]

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
for _derived in ("ends", "repairs"):
    import_module(f"{__name__}.{_derived}").register()
