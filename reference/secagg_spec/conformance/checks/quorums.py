"""What parties of the active profiles refuse of signatures and of quorums, whatever is signed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.cases.wrong_signatures import cut, spoiled
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.faults import Refusals
from secagg_spec.conformance.checks.scripts import Fault, disordered, placed
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.session import Session, moved
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.steps import SERVER

_THE_SERVER = frozenset({SERVER})
Clauses = tuple[str, ...]


Named = tuple[bytes, str]
"""A wrong signature, and what is wrong with it."""


def forged(
    draw: Any, sign: Callable[..., bytes], others: Mapping[str, Callable[[], bytes]], contexts: Mapping[str, Any]
) -> Named:
    """Draw a signature that is not the right one, `sign()`: spoiled, one of others, or the right one in a context."""
    how = draw(among(("bytes", *others, *sorted(contexts))))
    if how == "bytes":
        return spoiled(draw, sign()), how
    return others[how]() if how in others else sign(contexts[how]), how


@dataclass(frozen=True)
class Quorum:
    """A quorum that arrives at a user.

    Parameters
    ----------
    at : int
        The number of the step in which it arrives.
    message : Message
        The message, with its ``signers`` and ``signatures``.
    enough : int
        How many signers a quorum needs.
    outside : sequence of int
        The users that have nothing to sign; N stands for a user outside the roster.
    right, other : function
        Return the signature of a user on what the receiver signed, and on another set.
    wrong : function
        Draws a signature that is not a user's, and what is wrong with it.
    """

    at: int
    message: Any
    enough: int
    outside: Sequence[int]
    right: Callable[[int], bytes]
    other: Callable[[int], bytes]
    wrong: Callable[[Any, int], tuple[bytes, str]]

    def fault(
        self,
        session: Session,
        signers: Sequence[int],
        codes: frozenset[str],
        why: str,
        blamed: frozenset[int] | None = _THE_SERVER,
        signatures: Sequence[bytes] | None = None,
    ) -> Fault:
        """Return the step with other signers, by default with their right signatures."""
        made = [self.right(user) for user in signers] if signatures is None else signatures
        changed = replace(self.message, signers=tuple(signers), signatures=b"".join(made))
        return Fault(self.at, moved(session.calls()[self.at], 0, changed), codes, why, blamed)


def refuse_quorums(
    refusals: Refusals,
    drawn: Callable[[Any, Any], Quorum],
    *,
    few: Clauses,
    signers: Clauses,
    order: Clauses,
    signature: Clauses,
    **given: Any,
) -> None:
    """Register what a user refuses of a quorum.

    Parameters
    ----------
    refusals : Refusals
        What the user refuses.
    drawn : function
        Draws a quorum that arrives in a session.
    few, signers, order, signature : tuple of str
        The clauses on too few signers, on signers twice or outside, on their order, and on wrong signatures.
    given
        The options of a session in which somebody has nothing to sign.
    """

    @refusals.refuses("few-signers", *few)
    def few_signers(draw: Any, session: Session) -> Fault:
        """A quorum of too few signers is refused."""
        quorum = drawn(draw, session)
        fewer = quorum.enough - 1 if draw(st.booleans()) else draw(st.integers(0, quorum.enough - 1))
        kept = sorted(strategies.subset(draw, quorum.message.signers, fewer, fewer))
        return quorum.fault(session, kept, reject.TOO_FEW, f"{fewer} users signed", None)

    @refusals.refuses("signer-twice", *signers, "ADP-21")
    def signer_twice(draw: Any, session: Session) -> Fault:
        """A quorum that names a signer twice is refused; if the others are enough, the server is blamed."""
        quorum, why = drawn(draw, session), "a signer is named twice"
        users = quorum.message.signers
        if draw(st.booleans()):
            return quorum.fault(session, sorted((*users, draw(among(users)))), reject.TWICE, why)
        kept = users[: draw(st.integers(1, quorum.enough - 1))]
        listed = [*(kept[0] for _ in range(quorum.enough - len(kept))), *kept]
        return quorum.fault(session, listed, reject.TWICE | reject.TOO_FEW, why, None)

    @refusals.refuses("outside-signer", *signers, "ADP-21", **given)
    def outside_signer(draw: Any, session: Session) -> Fault:
        """A quorum that names a signer that has nothing to sign is refused, and the server is blamed."""
        quorum = drawn(draw, session)
        added = draw(among(quorum.outside))
        users = quorum.message.signers[1:] if draw(st.booleans()) else quorum.message.signers
        codes = reject.OUTSIDE | reject.BAD_SIGNATURE if added == session.size else reject.OUTSIDE
        return quorum.fault(session, sorted((*users, added)), codes, f"user {added} signed")

    @refusals.refuses("signer-order", *order, "ADP-21")
    def signer_order(draw: Any, session: Session) -> Fault:
        """A quorum whose signers are not in ascending order is refused, and the server is blamed."""
        quorum = drawn(draw, session)
        users = disordered(draw, quorum.message.signers)
        return quorum.fault(session, users, reject.MALFORMED, f"the signers are {list(users)}")

    @refusals.refuses("wrong-signature", *signature, "ADP-21")
    def wrong_signature(draw: Any, session: Session) -> Fault:
        """A quorum with an invalid signature is refused, and the server is blamed."""
        quorum = drawn(draw, session)
        users = quorum.message.signers
        place = draw(st.integers(0, len(users) - 1))
        made = [quorum.right(user) for user in users]
        made[place], how = quorum.wrong(draw, users[place])
        why = f"the signature of user {users[place]} is not valid ({how})"
        return quorum.fault(session, users, reject.BAD_SIGNATURE, why, signatures=made)

    @refusals.refuses("quorum-on-another-set", *signature, "ADP-21")
    def another_set(draw: Any, session: Session) -> Fault:
        """A quorum of valid signatures on another set is refused, and the server is blamed."""
        quorum = drawn(draw, session)
        users = quorum.message.signers
        made = [quorum.other(user) for user in users]
        return quorum.fault(session, users, reject.BAD_SIGNATURE, "the signatures are on another set", signatures=made)

    @refusals.refuses("quorum-length", "MSG-02", "SIG-02")
    def quorum_length(draw: Any, session: Session) -> Fault:
        """A quorum is refused unless it has 64 bytes for each signer."""
        quorum = drawn(draw, session)
        users = quorum.message.signers
        *made, last = (quorum.right(user) for user in users)
        made.append(one_of(draw, (last[:-1], b"", last + b"\0", last * 2)))
        why = "the signatures have another length"
        return quorum.fault(session, users, reject.NOT_64_EACH, why, None, made)


@dataclass(frozen=True)
class Arrival:
    """Signed messages that arrive at the server.

    `at` is the number of the step, `messages` are those that arrive, `enough` are needed, and `wrong` draws a signature
    that is not the one of a message, and what is wrong with it.
    """

    at: int
    messages: Sequence[Any]
    enough: int
    wrong: Callable[[Any, Any], tuple[bytes, str]]


Arriving = Callable[[Any, Any], Arrival]


def refuse_signatures(refusals: Refusals, drawn: Arriving, name: str, *clauses: str) -> None:
    """Register that the server refuses a message with a wrong signature; `name` is the fault's."""

    @refusals.refuses(name, *clauses, "SIG-02", "ADP-21")
    def wrong(draw: Any, session: Session) -> Fault:
        """A signature that is invalid or not 64 bytes long is refused, and its sender is blamed."""
        arrival = drawn(draw, session)
        place, message = placed(draw, arrival.messages)
        signature, how = arrival.wrong(draw, message)
        if draw(st.integers(0, 3)) == 3:
            signature, how = cut(draw, message.signature), "length"
        call = moved(session.calls()[arrival.at], place, replace(message, signature=signature))
        codes = reject.NOT_64_EACH if how == "length" else reject.BAD_SIGNATURE
        why = f"the signature of user {message.sender} is not valid ({how})"
        return Fault(arrival.at, call, codes, why, frozenset({message.sender}))


def refuse_few_signatures(refusals: Refusals, drawn: Arriving, *clauses: str) -> None:
    """Register that the server refuses too few signatures."""

    @refusals.refuses("few-signatures", *clauses)
    def few(draw: Any, session: Session) -> Fault:
        """With too few signatures the step is refused; with enough it works."""
        arrival = drawn(draw, session)
        fewer = arrival.enough - 1 if draw(st.booleans()) else draw(st.integers(0, arrival.enough - 1))
        phase = session.calls()[arrival.at].phase
        return Fault(arrival.at, Call.of(phase, arrival.messages[:fewer]), reject.TOO_FEW, f"{fewer} users signed")
