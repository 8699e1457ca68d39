"""The signatures of a session of SecAgg's active profile, right ones and others (spec/secagg.md, section 10)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from secagg_spec.conformance.cases.lightsecagg_active_parties import signature_of
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import signed_fields
from secagg_spec.protocols.agreement import PURPOSE, Proposal
from secagg_spec.protocols.secagg import active
from secagg_spec.protocols.secagg.round import KeyPair

PROTOCOL = "secagg-active"


@dataclass(frozen=True)
class Signing:
    """The signatures of a session, by the users' private signing keys."""

    inputs: SessionInputs

    @cached_property
    def round(self) -> active.AttemptRound:
        """What all parties agree on, for the reference."""
        numbers = {name: int(value) for name, value in self.inputs.numbers.items()}
        return active.agreed(active.Parameters(**numbers), self.inputs.session, self.inputs.round)

    def private(self, user: int) -> bytes:
        """Return the private signing key of a user, or of the last one for a user outside the roster."""
        return bytes.fromhex(self.inputs.setups[min(user, len(self.inputs.users) - 1)]["signing"])

    def of_keys(self, user: int, pair: KeyPair, context: Context | None = None) -> bytes:
        """Return a user's signature on its keys, optionally in another context (SAG-51)."""
        content = (pair.sealing, pair.masking)
        data = signed_fields(context or self.round.context(active.SignedKeys), active.KEYS_PURPOSE, user, content)
        return signature_of(self.private(user), data)

    def of_set(
        self, keys: Mapping[int, KeyPair], user: int, members: tuple[int, ...], context: Context | None = None
    ) -> bytes:
        """Return a user's signature on a surviving set among users with these keys (SAG-56, SAG-67)."""
        bound = context or self.round.attempt(keys, active.SignedSurvivors)
        data = signed_fields(bound, PURPOSE, user, Proposal(members).content())
        return signature_of(self.private(user), data)


def signed(inputs: SessionInputs, message: Any) -> Any:
    """Return a message of keys with their owners' signatures on them; any other message as it is."""
    if isinstance(message, active.SignedKeys):
        pair = KeyPair(message.sealing, message.masking)
        return replace(message, signature=Signing(inputs).of_keys(message.sender, pair))
    if not isinstance(message, active.SignedNeighbourKeys):
        return message
    sealing, masking = (_cut(data) for data in (message.sealing, message.masking))
    pairs = [(user, KeyPair(sealing[at], masking[at])) for at, user in enumerate(message.users)]
    return replace(message, signatures=b"".join(Signing(inputs).of_keys(user, pair) for user, pair in pairs))


def _cut(data: bytes) -> list[bytes]:
    return [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]
