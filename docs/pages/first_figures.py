"""First figures: each protocol's round as one function of the reference, at the head of its page of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from docs.pages import excerpts


@dataclass(frozen=True)
class Figure:
    """The function that is shown, what it is of, the run that it equals, and what it leaves out."""

    name: str
    of: str
    run: str
    without: str

    def block(self, page: str) -> list[str]:
        """Return the lines of a block that stands open on a page of the site, and can be closed."""
        return [
            f'???+ example code "{self.of} as one function"',
            "",
            f"    The numbers on its lines are the paper's. It leaves out {self.without}. A test compares it with",
            f"    [`{self.run.rpartition('.')[2]}`][secagg_spec.{self.run}], bit for bit.",
            "",
            *excerpts.definition_lines(self.name, page),
        ]


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "secagg.md": Figure(
            "protocols.secagg:secagg_round",
            "The round",
            "protocols.secagg.round.run_round",
            "the messages, the sealing of shares, the commitments, who is told what, and all checks and refusals",
        ),
        "lightsecagg.md": Figure(
            "protocols.lightsecagg:lightsecagg_round",
            "The round",
            "protocols.lightsecagg.round.run_round",
            "the messages, the channels between users, and all checks and refusals",
        ),
        "fedbuff.md": Figure(
            "protocols.fedbuff:fedbuff_step",
            "A step of the server",
            "protocols.fedbuff.round.step",
            "how the buffer fills, and all checks and refusals",
        ),
        "basecagg.md": Figure(
            "protocols.basecagg:basecagg_buffer",
            "A buffer",
            "protocols.basecagg.runs.run_schedule",
            "the messages, the channels between users, the rounds in which users wait, and all checks and refusals",
        ),
        "basa.md": Figure(
            "protocols.basa:basa_epoch",
            "An epoch",
            "protocols.basa.runs.Run",
            "the messages, the authority with its keys, the boxes in which seeds travel, and all checks and refusals",
        ),
        "heterosag.md": Figure(
            "protocols.heterosag:heterosag_round",
            "The round",
            "protocols.heterosag.round.run_round",
            "the messages, secret sharing, the packing of segments, and all checks and refusals",
        ),
        "multi-round.md": Figure(
            "protocols.multi_round:multi_round_session",
            "A session",
            "protocols.multi_round.runs.run_session",
            "how a round masks its inputs, the messages, and all checks and refusals",
        ),
    }
)
"""The figure of each page of the text that has one."""
