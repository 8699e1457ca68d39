"""Run the adapter of the reference."""

from secagg_spec.terminal import load

load("secagg_spec.conformance.targets.reference.adapter").main()
