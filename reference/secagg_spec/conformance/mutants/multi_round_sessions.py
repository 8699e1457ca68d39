"""Planted bugs of the parties of Multi-RoundSecAgg over a whole round or several, which its tests find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.errors import InconsistentSets, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import lightsecagg, multi_round, secagg
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.multi_round import Parameters, Round
from secagg_spec.protocols.shape import SERVER, Network, Role
from secagg_spec.selection import batches

Function = Callable[..., Any]
_HERE = "secagg_spec.protocols.multi_round"
_TESTS = "tests/protocols/test_multi_round.py::"
_SELECTION = batches.Parameters(N=12, K=8, T=4)
_SECAGG = Parameters(_SELECTION, secagg.Parameters(R=97, N=8, D=5, T=1, t=3, k=7, d=2))
_LIGHTSECAGG = Parameters(_SELECTION, lightsecagg.Parameters(q=97, N=8, D=5, U=3, T=1, d=2))
_CHOSEN = tuple(range(8))


def _until(p: Parameters, rows: int, absent: Sequence[int] = ()) -> Network:
    """Return a round of which some rows were taken; some users send no input."""
    updates = draw_elements(SeededSource(b"mutants", "updates"), Ring(97), (8, 2))
    sampled = multi_round.draw_randomness(p, {user: SeededSource(b"mutants", str(user)) for user in range(8)})
    network = multi_round.open_round(p, _CHOSEN, updates, round=9, session=bytes(16))
    for step in network.table[:rows]:
        for party in (SERVER,) if step.role is Role.SERVER else range(8):
            away = step.role is Role.USER and step.phase == p.base.adds and party in absent
            if not away:
                network.take(step, party, {name: sampled[party][name] for name in step.randomness})
    return network


def _ends(call: Callable[[], object]) -> object:
    """Return what a call gives, or how it fails."""
    try:
        return call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _row(p: Parameters) -> int:
    """Return the row in which the server adds."""
    return [(step.phase, step.role) for step in p.base.table].index((p.base.adds, Role.SERVER))


def _asked(absent: Sequence[int]) -> object:
    """Return what the server asks for when some inputs are missing."""
    network = _until(_SECAGG, _row(_SECAGG), absent)
    return _ends(lambda: [encode(m) for m in network.take(network.table[_row(_SECAGG)], SERVER).sent])


def _told(p: Parameters) -> Callable[[], object]:
    """Return a function that tells a user the survivors {0, 1, 2}, and says how that ends."""

    def witness() -> object:
        network = _until(p, _row(p) + 1)
        [request] = network.mail(network.table[_row(p) + 1], 0)
        changed: dict[str, Any] = {p.base.named: (0, 1, 2)}
        if isinstance(request, secagg.UnmaskRequest):
            changed["dropped"] = (3, 4, 5, 6, 7)
        network.waiting[0] = [replace(request, **changed)]
        return _ends(lambda: len(network.take(network.table[_row(p) + 1], 0).sent))

    return witness


def _again(chosen: tuple[int, ...], number: int = 10) -> object:
    """Return the session id of another round of user 0."""
    state = _until(_SECAGG, 0).states[0]
    return _ends(lambda: multi_round.user_again(state, number, chosen, state.base.update).round.id)


def _failed(p: Parameters) -> multi_round.ServerState:
    """Return the server of a round that announced its survivors and got no answer."""
    state = _until(p, _row(p) + 1).states[SERVER]
    assert isinstance(state, multi_round.ServerState)
    return state


def _sparse() -> object:
    return _ends(lambda: repr(Parameters(_SELECTION, secagg.Parameters(R=97, N=8, D=5, T=1, t=3, k=4, d=2))))


mutant(
    "session-over-any-graph",
    "MRA-17",
    "privacy: on a sparse graph a batch may be asked to unmask what its own users do not hide",
    f"{_HERE}:Parameters.__post_init__",
    _sparse,
    _TESTS + "test_a_round_that_does_not_fit_is_named",
    kind="privacy",
    source="clause left out",
)(lambda right: lambda self: None)
mutant(
    "inputs-of-broken-batches-are-added",
    "MRA-18",
    "robustness: users refuse the survivors, and the round is lost with the inputs of whole batches",
    f"{_HERE}:leave_out",
    lambda: _asked((1,)),
    _TESTS + "test_every_set_of_users_that_drops_out_before_its_input",
    kind="refusal",
    source="clause left out",
)(lambda right: lambda base, state, inbox: inbox)
mutant(
    "inputs-that-are-left-out-are-not-looked-at",
    "MRA-18",
    "robustness: a message from elsewhere makes a batch look whole, or hides that one is",
    f"{_HERE}:_accept",
    lambda: _moved(_until(_SECAGG, _row(_SECAGG), (1,))),
    _TESTS + "test_an_input_that_is_wrong_is_refused_though_its_batch_is_left_out",
    kind="acceptance",
    source="clause left out",
)(lambda right: lambda state, inbox, kind, senders, receiver: None)
mutant(
    "rounds-with-the-id-of-their-session",
    "MRA-19",
    "privacy: what was sealed for one choice of users opens in another",
    f"{_HERE}:Round.id",
    lambda: Round(_SECAGG, bytes(16), 9, _CHOSEN).id,
    _TESTS + "test_every_message_of_a_round_has_its_session_id",
    kind="privacy",
    source="field not bound: the choice",
)(lambda right: property(lambda self: self.session))


def _moved(network: Network) -> object:
    """Return how the server takes an input from another session."""
    step = network.table[_row(_SECAGG)]
    first, *rest = network.mail(step, SERVER)
    network.waiting[SERVER] = [replace(first, session=bytes(16)), *rest]
    return _ends(lambda: len(network.take(step, SERVER).sent))


@mutant(
    "only-the-first-choice-is-looked-at",
    "MRA-20",
    "privacy: in later rounds a user is anywhere that the server puts it, with shares under another user's number",
    f"{_HERE}:user_again",
    lambda: _again(tuple(range(4, 12))),
    _TESTS + "test_a_user_that_refuses_a_choice_is_as_it_was",
    kind="privacy",
    source="clause in part",
)
def _unseen(right: Function) -> Function:
    def user_again(state: Any, number: int, chosen: Sequence[int], update: Any, channel: Any = None) -> Any:
        try:
            return right(state, number, chosen, update, channel)
        except InconsistentSets:
            return replace(state, round=replace(state.round, number=number))

    return user_again


mutant(
    "anything-is-released",
    "MRA-21",
    "privacy: the sums over {0, 1, 2, 3} and {0, 1, 2} in two rounds tell the model of user 3",
    f"{_HERE}:look_at_survivors",
    _told(_SECAGG),
    _TESTS + "test_a_server_that_asks_for_a_batch_and_then_for_less_of_it_gets_nothing",
    kind="privacy",
    source="clause left out",
)(lambda right: lambda base, state, inbox: None)


@mutant(
    "requests-of-one-protocol-are-looked-at",
    "MRA-21",
    "privacy: the message with the survivors has another name in LightSecAgg, and is answered whatever it says",
    f"{_HERE}:look_at_survivors",
    _told(_LIGHTSECAGG),
    _TESTS + "test_a_user_releases_nothing_for_survivors_that_are_no_batches",
    kind="privacy",
    source="clause in part",
)
def _one_protocol(right: Function) -> Function:
    def look_at_survivors(base: Any, state: Any, inbox: Any) -> None:
        if base.name == "secagg":
            right(base, state, inbox)

    return look_at_survivors


mutant(
    "round-of-a-session-again",
    "MRA-22",
    "privacy: a user answers twice in one round, under the same session id",
    f"{_HERE}:_later",
    lambda: _again(_CHOSEN, 9),
    _TESTS + "test_a_party_goes_on_with_the_same_numbers_to_later_rounds_only",
    kind="privacy",
    source="clause left out",
)(lambda right: lambda last, number: number)


@mutant(
    "session-grows-by-a-batch",
    "MRA-22",
    "privacy: a user takes choices with users that its session does not have",
    f"{_HERE}:user_again",
    lambda: _again(_CHOSEN),
    _TESTS + "test_a_party_goes_on_with_the_same_numbers_to_later_rounds_only",
    kind="privacy",
    source="clause left out",
)
def _grows(right: Function) -> Function:
    def user_again(state: Any, *arguments: Any) -> Any:
        parameters = state.round.parameters
        larger = replace(parameters.selection, N=parameters.selection.N + parameters.selection.T)
        other = replace(parameters, selection=larger)
        return right(replace(state, round=replace(state.round, parameters=other)), *arguments)

    return user_again


@mutant(
    "round-needs-every-input",
    "MRA-23",
    "robustness: one user that drops out loses the round for all batches",
    f"{_HERE}:leave_out",
    lambda: _asked((1,)),
    _TESTS + "test_every_set_of_users_that_drops_out_before_its_input",
    kind="refusal",
    source="clause too strict",
)
def _every_input(right: Function) -> Function:
    def leave_out(base: Any, state: Any, inbox: Any) -> Any:
        kept = right(base, state, inbox)
        if len(kept) < len(state.round.chosen):
            raise TooFewSurvivors(f"{len(kept)} users are left, and all are needed")
        return kept

    return leave_out


mutant(
    "a-failed-round-is-logged-empty",
    "MRA-27",
    "privacy: an audit says that nobody is recoverable, though the answers of a failed round tell parts of its sum",
    f"{_HERE}:ServerState.survivors",
    lambda: _failed(_LIGHTSECAGG).log,
    _TESTS + "test_a_round_that_failed_is_in_the_log_with_its_announced_survivors",
    kind="privacy",
    source="clause left out",
)(lambda right: property(lambda self: () if self.aggregate is None else right.fget(self)))


@mutant(
    "frequencies-without-the-round-that-failed",
    "MRA-28",
    "robustness: a batch whose round failed late stays of the least frequency, and is chosen again at once",
    f"{_HERE}:ServerState.frequencies",
    lambda: list(_failed(_SECAGG).frequencies),
    _TESTS + "test_a_round_that_failed_counts_in_the_frequencies",
    kind="sum",
    source="clause in part",
)
def _with_sums(right: Any) -> Any:
    def frequencies(self: Any) -> Any:
        counts = right.fget(self)
        if self.aggregate is None:
            counts[list(self.survivors)] -= 1
        return counts

    return property(frequencies)


mutant(
    "log-of-the-last-round-alone",
    "MRA-29",
    "privacy: what the rounds before showed is not in the log, and an audit does not see it",
    f"{_HERE}:server_again",
    lambda: multi_round.server_again(_failed(_SECAGG), 10, _CHOSEN).log,
    _TESTS + "test_a_server_that_goes_on_keeps_the_log",
    kind="privacy",
    source="forgotten",
)(lambda right: lambda state, number, chosen: replace(right(state, number, chosen), past=()))
