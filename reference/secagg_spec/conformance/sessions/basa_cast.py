"""Every message of BASA, made by the kit, which holds the keys of all parties of a session (spec/basa.md).

A script can therefore receive anything that an honest or dishonest party might send: other boxes with correct hashes,
other hashes with a valid signature, or keys of another epoch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.targets.reference.basa import read_parameters
from secagg_spec.crypto import signatures
from secagg_spec.crypto.boxes import PER_POSITION
from secagg_spec.crypto.keys import Roster, public_key, sha256
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.steps import AUTHORITY, SERVER

KEY = 32
BOX = PER_POSITION.box_bytes


@dataclass(frozen=True, eq=False)
class Cast:
    """All parties of a session."""

    inputs: SessionInputs

    @cached_property
    def session(self) -> messages.Session:
        """The session data that all parties know."""
        setup = self.inputs.setups[SERVER]
        roster = Roster(tuple(bytes.fromhex(key) for key in setup["verification"]))
        authority = bytes.fromhex(setup["authority"])
        parameters = read_parameters(**self.inputs.numbers)
        return messages.Session(parameters, self.inputs.session, PER_POSITION, roster, authority)

    @property
    def parameters(self) -> Parameters:
        """The numbers of the session."""
        return self.session.parameters

    @property
    def positions(self) -> int:
        """The number of positions P."""
        return self.parameters.positions

    # keys

    def secrets(self, epoch: int) -> list[bytes]:
        """Return the secret keys of an epoch: the pair keys of all positions, then the self keys, if there are any."""
        rand, at = self.inputs.rand(AUTHORITY), epoch - self.inputs.round_of(AUTHORITY)
        lists = (rand["pair_keys"], rand["self_keys"]) if self.parameters.settle else (rand["pair_keys"],)
        return [key for entries in lists for key in messages.split("keys", bytes.fromhex(entries[at]), KEY)]

    def pair_key(self, epoch: int, position: int) -> bytes:
        """Return the pair key of a position."""
        return self.secrets(epoch)[position]

    def published(self, epoch: int) -> bytes:
        """Return the public keys of an epoch."""
        return b"".join(public_key(key) for key in self.secrets(epoch))

    def _signed(self, epoch: int, keys: bytes) -> bytes:
        signing = bytes.fromhex(self.inputs.setups[AUTHORITY]["signing"])
        return signatures.sign(signing, self.session.keys_signed(epoch, keys))

    def signature(self, user: int, epoch: int, upload: tuple[int, int, int], hashes: bytes) -> bytes:
        """Return a user's signature over the position, the stamp, the weight and the hashes of an upload."""
        signing = bytes.fromhex(self.inputs.setups[user]["signing"])
        return signatures.sign(signing, self.session.boxes_signed(epoch, user, upload, hashes))

    # messages

    def epoch_keys(self, epoch: int, keys: bytes | None = None, signed: int | None = None) -> messages.EpochKeys:
        """Return the key message of an epoch, optionally with other keys or signed for another epoch."""
        shown = self.published(epoch) if keys is None else keys
        signature = self._signed(epoch if signed is None else signed, shown)
        return messages.EpochKeys(self.session.id, epoch, AUTHORITY, SERVER, shown, signature)

    def request(self, user: int, stamp: int) -> messages.PositionRequest:
        """Return the request of a user."""
        return messages.PositionRequest(self.session.id, stamp, user, SERVER)

    def offer(
        self, user: int, epoch: int, position: int, uploads: Sequence[messages.PositionUpload]
    ) -> messages.PositionOffer:
        """Return the offer of a position, with the boxes of the earlier uploads."""
        keys = self.epoch_keys(epoch)
        boxes = b"".join(self.box(upload, position) for upload in uploads)
        return messages.PositionOffer(self.session.id, epoch, SERVER, user, position, keys.keys, keys.signature, boxes)

    def assignment(self, user: int, epoch: int, position: int) -> messages.Assignment:
        """Return the assignment of a position."""
        return messages.Assignment(self.session.id, epoch, SERVER, AUTHORITY, position, user)

    def key_request(self, user: int, epoch: int, position: int) -> messages.KeyRequest:
        """Return the request for a key."""
        return messages.KeyRequest(self.session.id, epoch, user, AUTHORITY, position)

    def upload(
        self, user: int, epoch: int, position: int, stamp: int, weight: int, masked: UintArray, seed: int = 1
    ) -> messages.PositionUpload:
        """Return an upload whose seeds derive from a number and are all different."""
        boxes = b"".join(self.boxes(user, epoch, position, seed))
        blank = messages.PositionUpload(
            self.session.id, epoch, user, SERVER, position, stamp, weight, masked, boxes, b""
        )
        return self.signed(blank)

    def boxes(self, user: int, epoch: int, position: int, seed: int = 1) -> list[bytes]:
        """Return valid boxes of a user at a position, in order."""
        targets = self.session.targets(position)
        return [self.sealed(user, epoch, position, target, bytes([seed, target] * 16)) for target in targets]

    def sealed(
        self, user: int, epoch: int, position: int, target: int, seed: bytes, *, bound: int | None = None
    ) -> bytes:
        """Return the box of a seed, bound to its epoch or to another one; its private key derives from the seed."""
        address = self.session.address(epoch if bound is None else bound, user, position, target)
        return PER_POSITION.seal(address, self.published(epoch), seed, sha256(seed))

    def box(self, upload: messages.PositionUpload, target: int) -> bytes:
        """Return the box of an upload for a later position, or for its own position."""
        at = self.session.targets(upload.position).index(target)
        return upload.boxes[BOX * at : BOX * (at + 1)]

    def opened(self, upload: messages.PositionUpload, target: int) -> bytes:
        """Return the seed in a box of an upload; refuse a box that does not open."""
        address = self.session.address(upload.round, upload.sender, upload.position, target)
        own = self.positions if target == upload.position else 0
        key = self.secrets(upload.round)[own + target]
        return PER_POSITION.open(address, self.published(upload.round), key, self.box(upload, target))

    def hashes(self, boxes: bytes) -> bytes:
        """Return the concatenated hashes of some boxes."""
        return b"".join(sha256(box) for box in messages.split("boxes", boxes, BOX))

    def signed(self, upload: messages.PositionUpload, **changes: Any) -> messages.PositionUpload:
        """Return an upload with some fields changed, signed again by its user."""
        changed = replace(upload, **changes)
        upload_of = (changed.position, changed.stamp, changed.weight)
        signature = self.signature(changed.sender, changed.round, upload_of, self.hashes(changed.boxes))
        return replace(changed, signature=signature)

    def with_box(self, upload: messages.PositionUpload, target: int, box: bytes) -> messages.PositionUpload:
        """Return an upload with another box, signed by its user: the hash is correct, whatever the box contains."""
        at = self.session.targets(upload.position).index(target)
        boxes = upload.boxes[: BOX * at] + box + upload.boxes[BOX * (at + 1) :]
        return self.signed(upload, boxes=boxes)

    def settled(self, upload: messages.PositionUpload) -> messages.Settlement:
        """Return the message that tells the authority that an upload was accepted."""
        message = self.expired(upload.round, upload.position)
        signed = {"stamp": upload.stamp, "weight": upload.weight, "signature": upload.signature}
        return replace(message, accepted=1, hashes=self.hashes(upload.boxes), **signed)  # type: ignore[arg-type]

    def expired(self, epoch: int, position: int) -> messages.Settlement:
        """Return the message that tells the authority that an offer expired."""
        return messages.Settlement(self.session.id, epoch, SERVER, AUTHORITY, position, 0, 0, 0, b"", b"")

    def state(self, epoch: int, position: int, state: int) -> messages.PositionState:
        """Return the authority's message about the state of a position."""
        return messages.PositionState(self.session.id, epoch, AUTHORITY, SERVER, position, state)

    def close_request(self, epoch: int) -> messages.CloseRequest:
        """Return the request to end an epoch."""
        return messages.CloseRequest(self.session.id, epoch, SERVER, AUTHORITY)

    def release(self, epoch: int, accepted: Iterable[int]) -> messages.Release:
        """Return the keys that the authority releases in the profile *settle*, given the accepted positions."""
        chosen, keys = set(accepted), self.secrets(epoch)
        own = self.positions if self.parameters.settle else 0
        picked = [keys[position + own * (position in chosen)] for position in range(self.positions)] if own else []
        return messages.Release(self.session.id, epoch, AUTHORITY, SERVER, b"".join(picked))

    def abandonment(self, epoch: int) -> messages.Abandonment:
        """Return the message that abandons an epoch."""
        return messages.Abandonment(self.session.id, epoch, SERVER, AUTHORITY)
