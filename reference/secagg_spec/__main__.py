"""Runs the command: ``python -m secagg_spec``."""

from secagg_spec.cli import main

raise SystemExit(main())
