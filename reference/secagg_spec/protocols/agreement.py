"""Agreement on one set before anything is released: users sign the set they receive, and count signatures.

A server that announces different surviving sets to different users learns more than one sum. So a user signs the set
that it receives, once in a round, and continues only with the signatures of W distinct users on that same set. If
2W > N + T and at most T users sign twice, two different sets cannot both have W signatures: proofs/quorum.py.

A `Proposal` is the subject of the agreement: the set, and the fields that a protocol adds to it, such as weights.
A `Ballot` is the context of the signatures: protocol, parameters, session, round, roster, W, purpose.

Source: spec/lightsecagg.md, section 9 (LSA-19, LSA-21, LSA-24 to LSA-29, LSA-33); spec/basecagg.md, section 11;
spec/conventions.md, section 10.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, sign, signed_fields, verify
from secagg_spec.errors import InconsistentSets, Malformed, TooFewSurvivors
from secagg_spec.protocols.steps import SERVER, check_ascending

PURPOSE = "surviving-set"


def least_signers(N: int, T: int) -> int:
    """Return the smallest W with 2W > N + T: no two sets can both get so many signatures; for checked arguments."""
    return (N + T) // 2 + 1


def check_threshold(W: int, N: int, D: int, T: int) -> int:
    """Return W if no two sets can both get W signatures and N - D users are enough to give them (LSA-19).

    Raises
    ------
    ParameterError
        Not ``2W > N + T``, or not ``W <= N - D``.
    """
    N, D, T = validate.integer("N", N, 1), validate.integer("D", D, 0), validate.integer("T", T, 0)
    least, most = least_signers(N, T), N - D
    allowed = f"an integer of at least {least}, so that 2*W > N + T = {N + T}, and at most N - D = {most}"
    return validate.integer("W", W, least, most, allowed)


@dataclass(frozen=True)
class Ballot(validate.Plain):
    """The context of signatures: what they are bound to, the users' verification keys, W, and the purpose.

    The message type in `context` is the type of the message that carries a signature.
    """

    context: Context
    roster: Roster
    enough: int
    purpose: str = PURPOSE

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("enough", self.enough, 1)


@dataclass(frozen=True)
class Proposal(validate.Plain):
    """What users agree on: a set of users, and fields that a protocol adds to it.

    `members` are distinct, and their order has no meaning. `voters` are the users that may sign; the default is the
    members.
    """

    members: tuple[int, ...]
    further: tuple[bytes, ...] = ()
    voters: Collection[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.user_numbers("members", self.members)
        if self.voters is not None:
            validate.collection("voters", self.voters, "users")

    def content(self) -> tuple[bytes, ...]:
        """Return the fields of content: the members in ascending order, each as u32, then the further ones."""
        return (words(sorted(self.members)), *self.further)


def words(values: Sequence[int]) -> bytes:
    """Return integers as the bytes of a field, each as u32."""
    numbers = validate.sequence("values", values, "integers")
    return b"".join(validate.integer("values", value, 0, validate.MAX_COUNT).to_bytes(4, "little") for value in numbers)


def sign_proposal(ballot: Ballot, private: bytes, user: int, proposal: Proposal) -> bytes:
    """Return the signature of a user on a proposal, 64 bytes (LSA-21).

    Raises
    ------
    UnknownUser
        The user is not on the roster.
    LengthMismatch
        The private key is not 32 bytes long.
    """
    validate.users("user", (user,), len(ballot.roster.keys))
    return sign(private, signed_fields(ballot.context, ballot.purpose, user, proposal.content()))


def check_signature(ballot: Ballot, user: int, proposal: Proposal, signature: bytes, blamed: int) -> None:
    """Refuse a signature that is not the given user's signature on a proposal.

    Raises
    ------
    BadSignature
        The signature is not valid; `blamed` is the party that sent or relayed it (LSA-24, LSA-28).
    UnknownUser
        The user is not on the roster.
    """
    validate.users("user", (user,), len(ballot.roster.keys))
    data = signed_fields(ballot.context, ballot.purpose, user, proposal.content())
    verify(ballot.roster.keys[user], data, signature, (blamed,))


def check_quorum(ballot: Ballot, proposal: Proposal, signers: Sequence[int], signatures: bytes) -> None:
    """Refuse a quorum that does not show W signatures of distinct voters on a proposal (LSA-26, BSA-43).

    Parameters
    ----------
    ballot : Ballot
    proposal : Proposal
        The proposal that the checking user signed itself.
    signers : sequence of int
        The users that signed, according to the server, in ascending order.
    signatures : bytes
        Their signatures one after another, 64 bytes each.

    Raises
    ------
    InconsistentSets
        A signer is named twice, or is not a voter (LSA-27, BSA-44).
    Malformed
        The signers are not in ascending order (LSA-33, BSA-50, SAG-75), or there are not 64 bytes for each of them.
    TooFewSurvivors
        Fewer than W signers (LSA-29, BSA-44).
    BadSignature
        A signature is not valid for the proposal (LSA-28, BSA-44).
    """
    signers = _distinct_members(proposal, validate.user_numbers("signers", signers))
    check_ascending("the signers of the quorum", signers, (SERVER,))
    size = len(validate.octets("signatures", signatures))
    if size != SIGNATURE_BYTES * len(signers):
        raise Malformed(f"{size} bytes of signatures for {len(signers)} signers", (SERVER,))
    if len(signers) < ballot.enough:
        raise TooFewSurvivors(f"{len(signers)} users signed the set and W = {ballot.enough} are needed")
    for at, user in enumerate(signers):
        signature = signatures[SIGNATURE_BYTES * at : SIGNATURE_BYTES * (at + 1)]
        check_signature(ballot, user, proposal, signature, SERVER)


def _distinct_members(proposal: Proposal, signers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(signers)) != len(signers):
        raise InconsistentSets(f"the quorum {list(signers)} names a signer twice", (SERVER,))
    voters = proposal.members if proposal.voters is None else proposal.voters
    outside = [user for user in signers if user not in voters]
    if outside:
        raise InconsistentSets(f"the quorum names {outside}, who have nothing to sign", (SERVER,))
    return signers


guard(__name__)
