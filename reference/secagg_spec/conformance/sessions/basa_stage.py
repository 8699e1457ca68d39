"""Sessions of BASA, turn by turn: the user, the server and the authority may be different implementations.

Turns, shadows and the first difference work as in `basecagg_stage`. The sum of an epoch is judged by the uploads that
the authority settled as accepted, with the weights that their users announced. Values that a party draws must be new:
the keys of each epoch and, if the reference plays the authority and can open boxes, all seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import unpack
from secagg_spec.conformance.sessions.basa_cast import KEY, Cast
from secagg_spec.conformance.sessions.basecagg_stage import Stage, Turn, weighted_sum
from secagg_spec.conformance.sessions.mixed import Difference
from secagg_spec.errors import DecryptionFailed, ParameterError
from secagg_spec.protocols.basa.messages import ACCEPTED, EpochKeys, PositionState, PositionUpload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER


@dataclass(eq=False)
class PositionStage(Stage):
    """The parties of a session.

    `uploads` are the weights and updates of the open epoch by position, and `taken` the positions in its buffer. `seen`
    are the public keys and seeds that occurred earlier.
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
            self._judge_sum(entry)

    def _uploaded(self, message: PositionUpload) -> None:
        user = message.sender
        number = sum(e.party == user and e.step.phase == "upload" for e in self.transcript) - 1
        update = unpack(self.inputs.setups[user]["updates"][number]).astype(np.uint64)
        self.uploads[message.position] = message.weight, update

    def _new(self, party: int, phase: str, drawn: Sequence[bytes]) -> None:
        """Check that the keys or seeds drawn are distinct and did not occur earlier (BAA-07, BAA-33)."""
        for at, value in enumerate(drawn):
            if value in self.seen:
                what = f"{'key' if phase == 'open' else 'seed'} {at} was used before"
                raise Difference("wrong_value", party, phase, what)
            self.seen.add(value)

    def _seeds(self, upload: PositionUpload) -> list[bytes]:
        """Return the seeds in an upload's boxes if their keys are known and the server will take the upload."""
        if AUTHORITY in self.remotes:
            return []
        cast = Cast(self.inputs)
        try:
            return [cast.opened(upload, target) for target in cast.session.targets(upload.position)]
        except DecryptionFailed as error:
            raise Difference("wrong_value", upload.sender, "upload", str(error)) from error
        except ParameterError:
            return []

    def _judge_sum(self, entry: Mapping[str, Any]) -> None:
        """Compare the aggregate with the weighted sum of the accepted updates, whoever computed it (BAA-41)."""
        entries = [self.uploads[position] for position in self.taken]
        weights, rows = [weight for weight, _ in entries], [row for _, row in entries]
        self._judge(entry, weighted_sum(int(self.inputs.numbers["R"]), weights, rows))
