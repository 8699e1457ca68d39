"""The requirements on an adapter's party in a round in which the network is the adversary."""

from collections.abc import Sequence

from secagg_spec.conformance.adapter.codes import ALL_CODES, reject_code
from secagg_spec.conformance.adapter.wire import Answer, pack
from secagg_spec.conformance.sessions import broken
from secagg_spec.conformance.sessions.adversary_round import Round, Taken
from secagg_spec.conformance.sessions.inputs import called
from secagg_spec.conformance.sessions.mixed import Difference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import codec
from secagg_spec.protocols.secagg.round import UnmaskShares
from secagg_spec.protocols.steps import SERVER

STRUCTURE = frozenset(
    {
        *("malformed", "wrong_phase", "replay", "duplicate_id", "unknown_peer", "inconsistent_sets"),
        *("length_mismatch", "noncanonical", "out_of_range", "bad_param", "below_threshold"),
    }
)
"""The codes for messages that do not belong to a step, are malformed, or are too few."""
MASKED = ("upload", "masked_input")
"""The phases in which the server learns who contributes."""
_UNMASK_SHARES = UnmaskShares.TYPE.to_bytes(2, "little")


def fitting(engine: Round, event: Taken) -> frozenset[str]:
    """Return the codes with which a step may be refused (spec/adapter.md, section 5): the codes of all rules it breaks.

    `engine` contains the reference's party that refused the step. If the network made more than one of its messages,
    the code of any of them is allowed.
    """
    assert event.error is not None
    suspects = [at for at, letter in enumerate(event.letters) if letter.made]
    if len(suspects) > 1:
        return ALL_CODES
    inputs = engine.inputs
    header = broken.expected(inputs.named(event.party), inputs.opening(event.party))
    call, before = Call(event.phase, tuple(letter.data for letter in event.letters)), event.before
    errors = [event.error, *broken.refusals(engine.parties[event.party], call, header, suspects, before)]
    return frozenset({"other"}).union(header.codes(call.inbox), *map(_of, errors))


def _of(error: ParameterError | ProtocolError) -> frozenset[str]:
    code = reject_code(error)
    return STRUCTURE if code in STRUCTURE else frozenset({code, "below_threshold", "inconsistent_sets"})


def check_refused(answer: Answer, event: Taken, codes: frozenset[str]) -> None:
    """Judge the answer to a step that must be refused with one of these codes."""
    if answer.kind != "reject":
        what = f"taken, and it must be refused: {event.error}"
        raise Difference("accepted_invalid", event.party, event.phase, what)
    if answer.code not in codes:
        what = f"refused as {answer.code}; {event.error}: {' or '.join(sorted(codes))}"
        raise Difference("wrong_reason", event.party, event.phase, what)


def check_agreed(engine: Round, event: Taken, right: Taken) -> None:
    """Blame the adapter's parties if a reference party refuses their messages, or wrongly accepts them."""
    if (event.error is None) != (right.error is None):
        senders = {message.sender for letter in event.letters if (message := letter.message) is not None}
        blamed = min(senders & set(engine.remotes) or set(engine.remotes))
        what = f"{called(event.party)} {'refuses' if event.error else 'takes'} what it was sent: {event.error}"
        raise Difference("wrong_value", blamed, event.phase, what)


def check_end(engine: Round, events: Sequence[Taken]) -> None:
    """Check that the final steps give the correct sum, and that no user revealed both secrets of another user."""
    for event in events:
        if event.aggregate is not None and engine.inputs.protocol != "basecagg" and not tainted(engine):
            _check_sum(engine, event)
        both = revealed_twice(engine, event.party)
        if both:
            what = f"shares of both secrets of user {min(both)} were sent"
            raise Difference("wrong_value", event.party, event.phase, what)


def _check_sum(engine: Round, event: Taken) -> None:
    wanted = pack(engine.inputs.total(contributors(engine)))
    if event.aggregate != wanted:
        what = f"the sum over the contributors: got {event.aggregate}, must be {wanted}"
        raise Difference("wrong_value", event.party, event.phase, what)


def tainted(engine: Round) -> bool:
    """Return whether a party took a message that nobody sent to it; then the sum may be arbitrary."""
    return any(letter.changed for event in engine.log if event.error is None for letter in event.letters)


def contributors(engine: Round) -> list[int]:
    """Return the users whose masked updates the server took."""
    senders: set[int] = set()
    for event in engine.taken(SERVER):
        if event.phase in MASKED:
            senders = {parse(letter.data).sender for letter in event.letters}
    return sorted(senders)


def revealed_twice(engine: Round, party: int) -> set[int]:
    """Return the users of whom a party, since its start, sent shares of both the self seed and of the masking key."""
    sent = (data for event in engine.taken(party) for data in event.sent)
    answers = [codec.decode(UnmaskShares, data) for data in sent if data[:2] == _UNMASK_SHARES]
    seeds = {user for message in answers for user in message.survivors}
    return seeds & {user for message in answers for user in message.dropped}
