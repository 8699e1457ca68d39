"""Secure aggregation by program: judge implementations, watch rounds, decide privacy, verify claims."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from secagg_spec import __version__, claims_command, simulate
from secagg_spec.conformance import command as conform
from secagg_spec.conformance import power, replay
from secagg_spec.conformance.wire import UsageError
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.privacy import command as privacy


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(prog="secagg-spec", description=__doc__)
    top.add_argument("--version", action="version", version=f"secagg-spec {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    conform.add_parser(commands)
    privacy.add_parser(commands)
    claims_command.add_parser(commands)
    power.add_parser(commands)
    replay.add_parser(commands)
    simulate.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure is one line on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(given)
    try:
        code: int = options.run(options)
    except (ParameterError, ProtocolError, UsageError) as error:
        print(f"secagg-spec {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return code


if __name__ == "__main__":
    sys.exit(main())
