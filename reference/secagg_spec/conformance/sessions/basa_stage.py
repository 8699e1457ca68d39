"""Sessions of BASA, turn by turn: a user of one implementation, a server and an authority of two others.

Turns, shadows and the first difference are those of `basecagg_stage`. The sum of an epoch is judged by the uploads that
the authority settled as accepted, with the weights that their users announced. What a party draws itself must be new:
the keys of each epoch, and, where the authority is the reference's, so that boxes can be opened, all seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.sessions.basa_cast import KEY, Cast
from secagg_spec.conformance.sessions.basecagg_stage import Stage, Turn, follow, weighted_sum
from secagg_spec.conformance.sessions.deals import Deal
from secagg_spec.conformance.sessions.mixed import Difference, Player, Remote, opened
from secagg_spec.errors import DecryptionFailed, ParameterError
from secagg_spec.protocols.basa.messages import ACCEPTED, EpochKeys, PositionState, PositionUpload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER


@dataclass(eq=False)
class PositionStage(Stage):
    """The parties of a session.

    `uploads` are the weights and updates of the open epoch by position, `taken` the positions in its buffer; `seen` are
    the public keys and the seeds that came before.
    """

    uploads: dict[int, tuple[int, UintArray]] = field(default_factory=dict)
    taken: list[int] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)

    def _note(self, turn: Turn, outbox: Sequence[Message], entry: Mapping[str, Any]) -> None:
        for message in outbox:
            if isinstance(message, EpochKeys):
                self.uploads, self.taken = {}, []
                self._new(AUTHORITY, "open", [message.keys[at : at + KEY] for at in range(0, len(message.keys), KEY)])
            if isinstance(message, PositionUpload):
                self._uploaded(message)
                self._new(message.sender, "upload", self._seeds(message))
            if isinstance(message, PositionState) and message.state == ACCEPTED:
                self.taken.append(message.position)
        if (turn.party, turn.phase) == (SERVER, "recover"):
            self._judge(entry)

    def _uploaded(self, message: PositionUpload) -> None:
        user = message.sender
        number = sum(e.party == user and e.step.phase == "upload" for e in self.transcript) - 1
        update = unpack(self.deal.setups[user]["updates"][number]).astype(np.uint64)
        self.uploads[message.position] = message.weight, update

    def _new(self, party: int, phase: str, drawn: Sequence[bytes]) -> None:
        """Demand that what was drawn, keys or seeds, is different and was not drawn before (BAA-07, BAA-33)."""
        for at, value in enumerate(drawn):
            if value in self.seen:
                what = f"{'key' if phase == 'open' else 'seed'} {at} was used before"
                raise Difference("wrong_value", party, phase, what)
            self.seen.add(value)

    def _seeds(self, upload: PositionUpload) -> list[bytes]:
        """Return the seeds in the boxes of an upload, as far as their keys are known and the server will take it."""
        if AUTHORITY in self.remotes:
            return []
        cast = Cast(self.deal)
        try:
            return [cast.opened(upload, target) for target in cast.session.targets(upload.position)]
        except DecryptionFailed as error:
            raise Difference("wrong_value", upload.sender, "upload", str(error)) from error
        except ParameterError:
            return []

    def _judge(self, entry: Mapping[str, Any]) -> None:
        """Compare the aggregate with the weighted sum of the accepted updates, whoever computed it (BAA-41)."""
        entries = [self.uploads[position] for position in self.taken]
        weights, rows = [weight for weight, _ in entries], [row for _, row in entries]
        total = weighted_sum(int(self.deal.numbers["R"]), weights, rows)
        if entry.get("aggregate") != pack(total):
            what = f"aggregate: got {entry.get('aggregate')}, must be {pack(total)}"
            raise Difference("wrong_value", SERVER, "recover", what)
        self.aggregates.append(total)


def opened_stage(deal: Deal, remotes: Mapping[int, Remote] | None = None) -> PositionStage:
    """Return the stage of a session before its first turn."""
    return PositionStage(deal, {party: deal.open(party) for party in deal.setups}, remotes or {})


def play(deal: Deal, players: Mapping[int, Player], turns: Sequence[Turn]) -> PositionStage:
    """Go through a session: the parties that `players` names by these adapters, the others by the reference.

    Raises
    ------
    Difference
        The first fault: a step or a sum that is not the right one, a right step that is refused.
    """
    with ExitStack() as stack:
        remotes = {party: stack.enter_context(opened(player, deal, party)) for party, player in players.items()}
        stage = opened_stage(deal, remotes)
        for turn in turns:
            follow(stage, turn)
    return stage
