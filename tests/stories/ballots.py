"""What the worlds of the active profiles share: quorums of all signatures that were ever seen, and keys of attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.agreement import Ballot, Proposal, check_signature, sign_proposal
from secagg_spec.protocols.steps import SERVER
from tests.stories.rounds import private_key


def quorum(
    ballot: Ballot,
    proposal: Proposal,
    voters: Sequence[int],
    seen: Mapping[int, Sequence[bytes]],
    colluders: Collection[int],
) -> dict[int, bytes]:
    """Return, for each voter, a signature that a user takes: the newest of those seen, or a colluder's own."""
    found: dict[int, bytes] = {}
    for voter in sorted(voters):
        if voter in colluders:
            found[voter] = sign_proposal(ballot, private_key("sign", voter, 0), voter, proposal)
        for signature in reversed(seen.get(voter, ())):
            try:
                check_signature(ballot, voter, proposal, signature, SERVER)
            except ProtocolError:
                continue
            found[voter] = signature
            break
    return found
