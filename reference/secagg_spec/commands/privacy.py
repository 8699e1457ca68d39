"""The command ``secagg-spec privacy``: what the server and a coalition of users learn beyond the permitted output."""

from __future__ import annotations

from typing import Any

from secagg_spec.commands import privacy_basa, privacy_basecagg, privacy_heterosag, privacy_lightsecagg, privacy_secagg

_EPILOG = """exit codes:
  0  no coalition of up to T users that was decided learns more than it may
  1  some such coalition does, or a sum that it may learn is a single input
  2  wrong usage"""
_PROTOCOLS = {
    "lightsecagg": privacy_lightsecagg.add_arguments,
    "secagg": privacy_secagg.add_arguments,
    "basecagg": privacy_basecagg.add_arguments,
    "basa": privacy_basa.add_arguments,
    "heterosag": privacy_heterosag.add_arguments,
}


def add_parser(commands: Any) -> None:
    """Add ``privacy`` to the commands."""
    parser = commands.add_parser(
        "privacy",
        description="Decide exactly, on the matrices of the code that runs, what the server and each coalition of "
        "users learn beyond the sum and their own data. Small presets are decided exhaustively; for larger ones name a "
        "coalition, or let the command choose some. Each protocol has its own options: see PROTOCOL --help.",
        epilog=_EPILOG,
    )
    protocols = parser.add_subparsers(dest="protocol", required=True, metavar="PROTOCOL")
    for name, add_arguments in _PROTOCOLS.items():
        add_arguments(
            protocols.add_parser(
                name,
                help=f"what can be learned in a round of {name}",
                epilog=_EPILOG,
            )
        )
