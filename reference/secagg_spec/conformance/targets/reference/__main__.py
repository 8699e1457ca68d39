"""Run the adapter of the reference."""

from secagg_spec.conformance.targets.reference.adapter import main

main()
