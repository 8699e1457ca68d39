"""All checks, by the part of the text that they decide."""

from secagg_spec.conformance.checks import adapter, arithmetic, code, lightsecagg, quantizer
from secagg_spec.conformance.checks.base import REGISTRY, Check

__all__ = ["REGISTRY", "Check", "adapter", "arithmetic", "code", "lightsecagg", "quantizer"]
