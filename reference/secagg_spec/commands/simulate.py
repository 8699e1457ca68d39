"""The command ``secagg-spec simulate``: watch a protocol run, step by step."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from secagg_spec.conformance.adapter.values import writable_file
from secagg_spec.simulate import basa, basecagg, heterosag, lightsecagg, multiround, secagg

_PROTOCOLS = {
    "lightsecagg": lightsecagg,
    "secagg": secagg,
    "basecagg": basecagg,
    "basa": basa,
    "heterosag": heterosag,
    "multiround": multiround,
}
_ACTIVE = ("lightsecagg", "secagg", "basecagg")
"""The protocols with an active profile."""
_DEFAULTS = {"users": "8", "length": "6"}
_EXIT_CODES = """exit codes:
  0  every sum and every model was right
  1  no round gave a sum: too few users were left, or a timeout made
     the epoch void
  2  wrong usage, or parameters that the text refuses"""


def add_parser(commands: Any) -> None:
    """Add ``simulate`` to the commands, with one subcommand for each protocol."""
    parser = commands.add_parser(
        "simulate",
        description="Run the reference; show what the parties do and what the server sees; check the sum.",
        epilog=f"secagg-spec simulate PROTOCOL --help shows the options of a protocol\n\n{_EXIT_CODES}",
    )
    protocols = parser.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    for name, protocol in _PROTOCOLS.items():
        described = protocol.__doc__ or ""
        one = protocols.add_parser(
            name,
            help=described.split(": ", 1)[1].rstrip("."),
            epilog=_EXIT_CODES,
        )
        if name in _ACTIVE:
            one.add_argument(
                "--profile",
                choices=["semi-honest", "active"],
                default="semi-honest",
                help="the threat model for the server (semi-honest)",
            )
        _add_common(one, {**_DEFAULTS, **getattr(protocol, "DEFAULTS", {})})
        protocol.add_options(one)
        one.set_defaults(run=main)


def main(given: argparse.Namespace) -> int:
    """Run the command of a protocol and return its exit code."""
    if getattr(given, "write_log", None) is not None:
        writable_file("--write-log", given.write_log, given.log)
    code: int = _PROTOCOLS[given.protocol].main(given)
    return code


def _add_common(parser: Any, defaults: Mapping[str, str]) -> None:
    """Add the options that all protocols share; `defaults` holds the default values for the help texts."""
    users, length = defaults["users"], defaults["length"]
    parser.add_argument("--users", type=int, default=8, metavar="N", help=f"users on the roster ({users})")
    parser.add_argument("--length", type=int, default=6, metavar="d", help=f"elements of an update ({length})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of inputs and random values (0)")
