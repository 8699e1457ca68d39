"""These tests need Flower: `make engine` runs them in an environment that has it; elsewhere they are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("flwr") else ["test_*.py"]
