"""Rounds in which the network is the adversary (spec/conformance.md, section 4; docs/explanation/adversary.md)."""

from secagg_spec.conformance.adversary.engine import ACTS, Act, Engine, Found, described, opened
from secagg_spec.conformance.adversary.paces import PACES
from secagg_spec.conformance.adversary.rules import RULES, Stage, acts

__all__ = ["ACTS", "PACES", "RULES", "Act", "Engine", "Found", "Stage", "acts", "described", "opened"]
