"""Planted bugs of SecAgg and SecAgg+, and of masks from seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import starmap
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import LABEL, VERSION, derive, fields
from secagg_spec.crypto.prg import expand
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import InconsistentSets, Malformed, ParameterError, ProtocolError, TooFewSurvivors, WeakKey
from secagg_spec.protocols import secagg
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.graph import Graph
from secagg_spec.protocols.secagg import KeyPair, Parameters, Shares
from secagg_spec.protocols.shape import SERVER, Network, Role, run_synchronous

Function = Callable[..., Any]
Change = Callable[[list[Any]], list[Any]]
_SECAGG = "secagg_spec.protocols.secagg"
_GRAPH = "secagg_spec.protocols.graph"
_MASKS = "secagg_spec.crypto.masks"
_TINY = secagg.PRESETS["tiny"]
_WIDE = Parameters(R=8, N=6, D=2, T=1, t=3, k=5, d=3)
_RING = Parameters(R=8, N=6, D=1, T=1, t=2, k=3, d=2)
_ORDER = (3, 0, 5, 1, 4, 2)
_NOBODY: Mapping[str, Sequence[int]] = MappingProxyType({})


# ------------------------------------------------------------------------------------- the rounds of the witnesses


def _network(parameters: Parameters) -> Network:
    updates = np.arange(parameters.N * parameters.d, dtype=np.uint64).reshape(parameters.N, parameters.d) & np.uint64(7)
    order = _ORDER if len(_ORDER) == parameters.N else None
    return secagg.open_round(parameters, updates, order=order, session=b"mutants of a roun"[:16], round=7)


def _sampled(parameters: Parameters) -> Any:
    sources = {user: SeededSource(b"mutants", str(user)) for user in range(parameters.N)}
    return secagg.draw_randomness(parameters, sources)


def _sent(parameters: Parameters = _TINY, gone: Mapping[str, Sequence[int]] = _NOBODY) -> object:
    """Return what is sent in a round, and its sum; or how it ends."""
    network = _network(parameters)
    try:
        run_synchronous(network, gone, _sampled(parameters))
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__
    sent = [encode(message).hex() for event in network.transcript for message in event.sent]
    return sent, network.states[SERVER].aggregate.tolist()


def _taken(
    row: int, party: int, change: Change, parameters: Parameters = _TINY, gone: Mapping[str, Sequence[int]] = _NOBODY
) -> object:
    """Return what a party does in one row of the table, on an inbox that was changed, or how it refuses it."""
    network, sampled = _network(parameters), _sampled(parameters)
    away: set[int] = set()
    for step in secagg.TABLE[:row]:
        away |= set(gone.get(step.phase, ())) if step.role is Role.USER else set()
        for each in [SERVER] if step.role is Role.SERVER else sorted(set(range(parameters.N)) - away):
            network.take(step, each, {name: sampled[each][name] for name in step.randomness})
    step = secagg.TABLE[row]
    values = {name: sampled[party][name] for name in step.randomness}
    try:
        state, outbox = step.run(network.states[party], change(list(network.mail(step, party))), randomness=values)
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__, sorted(getattr(error, "blamed", ()))
    return state.phase, [encode(message).hex() for message in outbox]


def _changed(row: int, party: int = 0, parameters: Parameters = _TINY, **values: Any) -> Callable[[], object]:
    """Return the witness of a step whose first message has other fields: values, or functions of the message."""

    def change(inbox: list[Any]) -> list[Any]:
        made = {name: value(inbox[0]) if callable(value) else value for name, value in values.items()}
        return [replace(inbox[0], **made), *inbox[1:]]

    return lambda: _taken(row, party, change, parameters)


def _outcome(call: Callable[[], Any]) -> object:
    try:
        return repr(call())
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _parameters(**changes: int) -> Callable[[], object]:
    return lambda: _outcome(lambda: replace(_TINY, **changes))


def _lowered(state: Any, t: int) -> Any:
    """Return a state with another threshold, which the text may not allow; keys stay bound to the right one."""
    parameters = copy(state.round.parameters)
    assert parameters.digest
    parameters.__dict__["t"] = t
    agreed = copy(state.round)
    agreed.__dict__["parameters"] = parameters
    return replace(state, round=agreed)


def _tolerant(right: Function, held: Callable[[Any, Any], int]) -> Function:
    """Return a step that is taken with a lower threshold where too few are there for the right one."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except TooFewSurvivors:
            t = max(2, held(state, inbox))
            cut = {name: value[: t - 1] if "coefficients" in name else value for name, value in randomness.items()}
            after, outbox = right(_lowered(state, t), inbox, randomness=cut)
            return replace(after, round=state.round), outbox

    return wrong


# ------------------------------------------------------------------------------------------ parameters, the graph


def _without(parameter: str, allowed: Callable[[Parameters], bool]) -> Callable[[Function], Function]:
    """Return what leaves out the refusal of one parameter, for some parameters."""

    def build(right: Function) -> Function:
        def wrong(self: Parameters) -> None:
            try:
                right(self)
            except ParameterError as error:
                if error.parameter != parameter or not allowed(self):
                    raise

        return wrong

    return build


mutant(
    "one-honest-user-suffices",
    "SAG-01",
    "privacy: with N - D = T + 1 the sum may be that of a single honest user",
    f"{_SECAGG}:Parameters.__post_init__",
    _parameters(D=3, t=2),
    kind="privacy",
    source="paper: secagg, t against T and D",
)(_without("N - D", lambda p: p.N - p.D == p.T + 1))
mutant(
    "threshold-of-the-colluders",
    "SAG-02",
    "privacy: with t = T + 1 a single honest holder gives both secrets of a user away",
    f"{_SECAGG}:Parameters.__post_init__",
    _parameters(t=2),
    kind="privacy",
    source="off by one",
)(_without("t", lambda p: p.k == p.N - 1 and p.t == p.T + 1))
mutant(
    "threshold-above-those-who-stay",
    "SAG-02",
    "failure: a round that loses no more users than it may can never end",
    f"{_SECAGG}:Parameters.__post_init__",
    _parameters(t=5),
    kind="acceptance",
    source="clause in part",
)(_without("t", lambda p: p.t > p.T + 1))


@mutant(
    "half-an-edge",
    "SAG-01",
    "failure: a degree is accepted of which there is no graph",
    f"{_GRAPH}:check_degree",
    lambda: _outcome(lambda: replace(_TINY, k=3, t=3)),
    kind="acceptance",
    source="clause in part",
)
def _half_an_edge(right: Function) -> Function:
    return lambda N, k: k if type(k) is int and 2 <= k < N - 1 else right(N, k)


@mutant(
    "graph-ignores-the-order",
    "SAG-03",
    "privacy: the circle is that of the roster, so that whoever chooses user numbers chooses neighbours",
    f"{_GRAPH}:Graph.neighbours",
    lambda: sorted(Graph(_ORDER, 3).neighbours(0)),
    kind="privacy",
    source="other rule: the order of the roster",
)
def _no_order(right: Function) -> Function:
    return lambda self, user: right(Graph(tuple(range(len(self.order))), self.k), user)


@mutant(
    "opposite-user-forgotten",
    "SAG-03",
    "failure: with an odd degree the user opposite is no neighbour, so that fewer hold shares",
    f"{_GRAPH}:Graph.neighbours",
    lambda: sorted(Graph(_ORDER, 3).neighbours(0)),
    kind="refusal",
    source="wrong term",
)
def _no_opposite(right: Function) -> Function:
    def wrong(self: Graph, user: int) -> frozenset[int]:
        N, found = len(self.order), right(self, user)
        if self.k == N - 1 or not self.k & 1:
            return found  # type: ignore[no-any-return]
        place = self.order.index(user)
        return frozenset(found) - {self.order[place - N // 2]}

    return wrong


@mutant(
    "order-with-a-user-twice",
    "SAG-04",
    "acceptance: an order that names a user twice, and another one not at all, is taken",
    f"{_GRAPH}:Graph.__post_init__",
    lambda: _outcome(lambda: Graph((0, 1, 2, 0), 2)),
    kind="acceptance",
    source="clause left out",
)
def _order_twice(right: Function) -> Function:
    return lambda self: None


# ------------------------------------------------------------------------------------------------- keys, sharing


@mutant(
    "keys-of-everybody",
    "SAG-05",
    "failure: users are sent the keys of users that are not their neighbours, and refuse them",
    f"{_SECAGG}:_neighbour_keys",
    lambda: _sent(_RING),
    kind="refusal",
    source="clause left out",
)
def _keys_of_everybody(right: Function) -> Function:
    def wrong(state: Any, user: int, keys: Mapping[int, KeyPair]) -> Any:
        message = right(state, user, keys)
        users = tuple(sorted(set(keys) - {user}))
        sealing, masking = (b"".join(getattr(keys[u], name) for u in users) for name in ("sealing", "masking"))
        return replace(message, users=users, sealing=sealing, masking=masking)

    return wrong


@mutant(
    "users-without-enough-neighbours-stay",
    "SAG-05",
    "failure: a user whose neighbours did not advertise is kept, and has to end the round",
    f"{_GRAPH}:Graph.core",
    lambda: Graph(_ORDER, 2).core((3, 0, 5, 4), 3),
    kind="refusal",
    source="clause left out",
)
def _no_core(right: Function) -> Function:
    return lambda self, users, least: tuple(sorted(users))


def _kept_keys(message: Any, keep: Sequence[int]) -> Any:
    """Return a message with the keys at some places only."""
    cut = {name: [getattr(message, name)[32 * at : 32 * at + 32] for at in keep] for name in ("sealing", "masking")}
    users = tuple(message.users[at] for at in keep)
    return replace(message, users=users, **{name: b"".join(keys) for name, keys in cut.items()})


@mutant(
    "keys-of-strangers-are-skipped",
    "SAG-06",
    "acceptance: a server that hands out keys of strangers is not refused",
    f"{_SECAGG}:_peers",
    _changed(2, parameters=_RING, users=lambda m: (0, *m.users), sealing=lambda m: bytes(32) + m.sealing,
             masking=lambda m: b"\1" * 32 + m.masking),
    kind="acceptance", source="silent repair",
)  # fmt: skip
def _skips_strangers(right: Function) -> Function:
    def wrong(state: Any, message: Any, own: KeyPair) -> Any:
        neighbours = state.round.graph.neighbours(state.user)
        kept = [at for at, user in enumerate(message.users) if user in neighbours]
        return right(state, _kept_keys(message, kept), own)

    return wrong


@mutant(
    "last-keys-of-a-user-win",
    "SAG-06",
    "acceptance: a user is named with two pairs of keys, and the second ones are taken",
    f"{_SECAGG}:_peers",
    _changed(2, users=lambda m: (*m.users, m.users[0]), sealing=lambda m: m.sealing + bytes(32),
             masking=lambda m: m.masking + b"\1" * 32),
    kind="acceptance", source="silent repair",
)  # fmt: skip
def _last_keys(right: Function) -> Function:
    def wrong(state: Any, message: Any, own: KeyPair) -> Any:
        places = {user: at for at, user in enumerate(message.users)}
        return right(state, _kept_keys(message, sorted(places.values())), own)

    return wrong


@mutant(
    "equal-keys-are-taken",
    "SAG-07",
    "privacy: the server sends a user's own key back, or one key for two users, and knows whose secrets are equal",
    f"{_SECAGG}:_refuse_equal",
    _changed(2, sealing=lambda m: m.sealing[:32] * 2 + m.sealing[64:]),
    kind="privacy",
    source="clause left out",
)
def _equal_keys(right: Function) -> Function:
    return lambda keys, also, own=None: None if own is not None else right(keys, also)


@mutant(
    "equal-keys-of-another-kind-are-taken",
    "SAG-07",
    "privacy: a key for masking that is somebody's key for sealing is taken",
    f"{_SECAGG}:_refuse_equal",
    _changed(2, masking=lambda m: m.sealing[:32] + m.masking[32:]),
    kind="privacy",
    source="clause in part",
)
def _equal_kinds(right: Function) -> Function:
    def wrong(keys: Mapping[int, KeyPair], also: Collection[int], own: int | None = None) -> None:
        for name in ("sealing", "masking"):
            apart = {user: KeyPair(getattr(pair, name), bytes([user]) * 31) for user, pair in keys.items()}
            right(apart, also, own)

    return wrong


@mutant(
    "masking-key-used-for-sealing",
    "SAG-07",
    "privacy: one key pair does both, so that whoever recovers a masking key opens the shares sealed with it",
    f"{_SECAGG}:user_advertise_keys",
    _sent,
    kind="privacy",
    source="used twice",
)
def _one_key_pair(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (message,) = right(state, inbox, randomness=randomness)
        private = KeyPair(after.private.masking, after.private.masking)
        return replace(after, private=private), (replace(message, sealing=message.masking),)

    return wrong


@mutant(
    "shares-among-too-few",
    "SAG-08",
    "privacy: a user shares its secrets among fewer than t holders, with a threshold that these can meet",
    f"{_SECAGG}:user_share_keys",
    lambda: _taken(2, 0, lambda inbox: [_kept_keys(inbox[0], [0])]),
    kind="privacy",
    source="clause left out",
)
def _few_holders(right: Function) -> Function:
    return _tolerant(right, lambda state, inbox: len(inbox[0].users) + 1)


@mutant(
    "low-order-keys-are-taken",
    "SAG-09",
    "privacy: what is sealed for a key of low order is sealed with a secret that everybody knows",
    f"{_SECAGG}:_secret",
    _changed(2, sealing=lambda m: bytes(32) + m.sealing[32:]),
    kind="privacy",
    source="clause left out",
)
def _low_order(right: Function) -> Function:
    def wrong(private: bytes, peer: int, public: bytes) -> Any:
        try:
            return right(private, peer, public)
        except WeakKey:
            return bytes(32)

    return wrong


@mutant(
    "one-polynomial-for-both-secrets",
    "SAG-10",
    "privacy: the difference of two shares is that of the secrets, so that one secret gives the other",
    f"{_SECAGG}:_deal",
    _sent,
    kind="privacy",
    source="used twice",
)
def _one_polynomial(right: Function) -> Function:
    return lambda state, holders, seed, for_key, for_seed: right(state, holders, seed, for_key, for_key)


@mutant(
    "polynomial-of-a-lower-degree",
    "SAG-10",
    "privacy: t - 1 holders recover what t are needed for",
    f"{_SECAGG}:_deal",
    _sent,
    kind="privacy",
    source="off by one",
)
def _lower_degree(right: Function) -> Function:
    return lambda state, holders, seed, for_key, for_seed: right(
        state, holders, seed, (*for_key[:-1], 0), (*for_seed[:-1], 0)
    )


@mutant(
    "shares-without-the-user-itself",
    "SAG-10",
    "failure: a user keeps no shares of its own secrets, so that one holder fewer may drop out",
    f"{_SECAGG}:user_share_keys",
    lambda: _taken(6, 0, list),
    kind="refusal",
    source="wrong term",
)
def _no_own_share(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, held={after.user: Shares(0, 0)}), outbox

    return wrong


# ------------------------------------------------------------------------------------------------------ relaying


@mutant(
    "commitment-makes-a-sharer",
    "SAG-11",
    "failure: a user that sent shares to some neighbours only counts as a sharer",
    f"{_SECAGG}:_shared_with_all",
    lambda: _taken(3, SERVER, lambda inbox: inbox[1:]),
    kind="acceptance",
    source="clause left out",
)
def _partial_sharer(right: Function) -> Function:
    return lambda state, user, sent: True


@mutant(
    "shares-for-strangers-are-relayed",
    "SAG-31",
    "privacy: a user hands the shares of its secrets to users that the graph does not give it",
    f"{_SECAGG}:_shared_with_all",
    lambda: _taken(3, SERVER, lambda inbox: [*inbox, _for_another(inbox)], _RING),
    kind="privacy",
    source="silent repair",
)
def _relays_to_strangers(right: Function) -> Function:
    def wrong(state: Any, user: int, sent: Mapping[int, Any]) -> Any:
        neighbours = state.round.graph.neighbours(user)
        return right(state, user, {receiver: sent[receiver] for receiver in sent if receiver in neighbours})

    return wrong


def _for_another(inbox: list[Any]) -> Any:
    """Return a share of user 0 for user 1, which is not its neighbour."""
    return next(replace(m, receiver=1) for m in inbox if isinstance(m, secagg.SecretShares) and m.sender == 0)


@mutant(
    "shares-go-to-users-that-are-out",
    "SAG-11",
    "privacy: shares are relayed to users that are no sharers themselves",
    f"{_SECAGG}:server_share_keys",
    lambda: _sent(_WIDE, {"share_keys": [2]}),
    kind="privacy",
    source="clause in part",
)
def _relays_all(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, _ = right(state, inbox, randomness=randomness)
        shares = [message for message in inbox if isinstance(message, secagg.SecretShares)]
        return after, tuple(message for message in shares if message.sender in after.sharers)

    return wrong


# ------------------------------------------------------------------------------------------------- masked inputs


@mutant(
    "sign-of-the-mask",
    "SAG-12",
    "no interoperation: the smaller user subtracts, and the larger adds",
    f"{_SECAGG}:mask_update",
    _sent,
    kind="form",
    source="sign",
)
def _mask_sign(right: Function) -> Function:
    def wrong(ring: Any, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
        return right(ring, -user, update, self_mask, ((-peer, mask) for peer, mask in pairwise))

    return wrong


@mutant(
    "self-mask-left-out",
    "SAG-12",
    "privacy: an input that comes late lies bare once the pairwise masks of its user are removed",
    f"{_SECAGG}:mask_update",
    _sent,
    kind="privacy",
    source="wrong term",
)
def _no_self_mask(right: Function) -> Function:
    return lambda ring, user, update, self_mask, pairwise: right(ring, user, update, np.zeros_like(update), pairwise)


@mutant(
    "masks-of-all-that-advertised",
    "SAG-12",
    "wrong sum: a user adds the masks of neighbours that shared no secrets, and nobody can remove them",
    f"{_SECAGG}:user_masked_input",
    lambda: _sent(_WIDE, {"share_keys": [2]}),
    kind="sum",
    source="other rule: the neighbours that advertised",
)
def _all_masks(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (message,) = right(state, inbox, randomness=randomness)
        ring, d = state.round.parameters.ring, state.round.parameters.d
        pairwise = [(peer, expand(key, ring, d)) for (_, peer), key in state.mask_keys.items()]
        own = expand(state.self_keys[0], ring, d)
        masked = secagg.mask_update(ring, state.user, state.update, own, pairwise)
        return after, (replace(message, masked=masked),)

    return wrong


@mutant(
    "input-for-too-few",
    "SAG-13",
    "privacy: a user sends its input although fewer than t hold shares of the others",
    f"{_SECAGG}:user_masked_input",
    lambda: _taken(4, 0, lambda inbox: inbox[:1]),
    kind="privacy",
    source="clause left out",
)
def _few_shares(right: Function) -> Function:
    return _tolerant(right, lambda state, inbox: len(inbox) + 1)


@mutant(
    "input-is-made-to-fit",
    "SAG-14",
    "wrong sum: an input of another length is cut or repeated, and its numbers are reduced",
    f"{_SECAGG}:user_start",
    lambda: _outcome(lambda: secagg.user_start(_network(_TINY).states[0].round, 0, np.array([9], np.uint64)).update),
    kind="acceptance",
    source="silent repair",
)
def _made_to_fit(right: Function) -> Function:
    def wrong(round: Any, user: int, update: Any) -> Any:
        ring = round.parameters.ring
        fitting = [int(number) % ring.modulus for number in np.resize(update, round.parameters.d)]
        return right(round, user, np.array(fitting, np.uint64))

    return wrong


@mutant(
    "masked-input-of-any-length",
    "SAG-33",
    "wrong sum: the server cuts masked inputs to d elements, and fills them up",
    f"{_SECAGG}:_vector",
    _changed(5, SERVER, masked=lambda m: m.masked[:-1]),
    kind="acceptance",
    source="silent repair",
)
def _any_length(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        d = state.round.parameters.d
        return right(state, replace(message, masked=np.resize(np.asarray(message.masked, np.uint64), d)))

    return wrong


@mutant(
    "second-masked-input",
    "SAG-15",
    "privacy: two inputs of a user under the same masks differ by the difference of what they hide",
    f"{_SECAGG}:user_masked_input",
    lambda: _again(4),
    kind="privacy",
    source="used twice",
)
def _second_input(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if state.phase == "unmasking":
            state = replace(state, phase="masked_input", held={state.user: state.held[state.user]})
        after, outbox = right(state, inbox, randomness=randomness)
        kept = {name: getattr(state, name) for name in ("sealing_secrets", "mask_keys", "self_keys")}
        return replace(after, **kept), outbox

    return wrong


def _again(row: int) -> object:
    """Return what user 0 does when it is asked for a step a second time."""
    network, sampled = _network(_TINY), _sampled(_TINY)
    for step in secagg.TABLE[:row]:
        for party in [SERVER] if step.role is Role.SERVER else range(5):
            network.take(step, party, {name: sampled[party][name] for name in step.randomness})
    step, inbox = secagg.TABLE[row], network.mail(secagg.TABLE[row], 0)
    after, _ = step.run(network.states[0], inbox, randomness={})
    return _outcome(lambda: step.run(after, inbox, randomness={})[1])


# ---------------------------------------------------------------------------------------- the server's request


def _more_senders(right: Function, name: str, wider: Callable[[Any], tuple[int, ...]]) -> Function:
    """Return a step of the server that receives messages of more users than it should."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(replace(state, **{name: wider(state)}), inbox, randomness=randomness)
        return after, outbox

    return wrong


@mutant(
    "input-of-a-user-that-shared-nothing",
    "SAG-16",
    "wrong sum: an input is added whose masks nobody can remove",
    f"{_SECAGG}:server_masked_input",
    lambda: _taken(
        5, SERVER, lambda inbox: [*inbox, replace(inbox[0], sender=2)], _WIDE, {"share_keys": [2]}
    ),
    kind="acceptance", source="clause in part",
)  # fmt: skip
def _any_input(right: Function) -> Function:
    return _more_senders(right, "sharers", lambda state: tuple(sorted(state.keys)))


@mutant(
    "survivors-as-they-came",
    "SAG-17",
    "no interoperation: the survivors are named in descending order",
    f"{_SECAGG}:server_masked_input",
    _sent,
    kind="form",
    source="order",
)
def _unordered(right: Function) -> Function:
    return _asking(right, lambda message: {"survivors": message.survivors[::-1]})


def _asking(right: Function, fields: Callable[[Any], dict[str, Any]]) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return after, tuple(replace(message, **fields(message)) for message in outbox)

    return wrong


@mutant(
    "dropped-users-are-not-named",
    "SAG-17",
    "failure: nobody is asked for the masking keys of users that dropped out",
    f"{_SECAGG}:server_masked_input",
    lambda: _sent(gone={"masked_input": [2]}),
    kind="refusal",
    source="wrong term",
)
def _no_dropped(right: Function) -> Function:
    return _asking(right, lambda message: {"dropped": ()})


@mutant(
    "any-number-of-users-is-enough",
    "SAG-18",
    "privacy: the server goes on to a sum over fewer than T + 2 users",
    f"{_SECAGG}:_enough",
    lambda: _taken(1, SERVER, lambda inbox: inbox[:2]),
    kind="privacy",
    source="paper: secagg, few contributors",
)
def _any_number(right: Function) -> Function:
    return lambda state, users, what: users


@mutant(
    "holders-among-the-survivors-are-not-counted",
    "SAG-18",
    "failure: masks are removed from no sum, since too few hold shares of a user, and nobody says so in time",
    f"{_SECAGG}:_recoverable",
    lambda: _taken(5, SERVER, lambda inbox: [m for m in inbox if m.sender in (3, 4, 1)], _RING),
    kind="acceptance",
    source="clause in part",
)
def _no_count(right: Function) -> Function:
    return lambda state, present, what: None if what == "survive" else right(state, present, what)


# ---------------------------------------------------------------------------------------- a user and the request


def _repaired(right: Function, repair: Callable[[Any, Any], Any]) -> Function:
    """Return a check of a request that is repaired before it is looked at, and answered as it came."""

    def wrong(state: Any, message: Any) -> Any:
        right(state, repair(state, message))
        return message.survivors, message.dropped

    return wrong


def _lists(change: Callable[[tuple[int, ...]], Sequence[int]]) -> Callable[[Any, Any], Any]:
    return lambda state, message: replace(
        message, survivors=tuple(change(message.survivors)), dropped=tuple(change(message.dropped))
    )


@mutant(
    "request-may-name-a-user-twice",
    "SAG-19",
    "acceptance: a request counts a survivor twice",
    f"{_SECAGG}:check_request",
    _changed(6, survivors=(0, 0, 1, 2, 3, 4)),
    kind="acceptance",
    source="silent repair",
)
def _twice(right: Function) -> Function:
    return _repaired(right, _lists(lambda users: tuple(dict.fromkeys(users))))


@mutant(
    "request-may-name-outsiders",
    "SAG-19",
    "acceptance: a request names users that there are not",
    f"{_SECAGG}:check_request",
    _changed(6, survivors=(0, 1, 2, 3, 4, 9)),
    kind="acceptance",
    source="silent repair",
)
def _outsiders(right: Function) -> Function:
    def repair(state: Any, message: Any) -> Any:
        N = state.round.parameters.N
        return _lists(lambda users: [user for user in users if user < N])(state, message)

    return _repaired(right, repair)


@mutant(
    "both-secrets-released",
    "SAG-20",
    "privacy: a user that is named as survivor and as dropped loses both its masks",
    f"{_SECAGG}:check_request",
    _changed(6, dropped=(1,)),
    kind="privacy",
    source="seen in Flower 1.41.0: secagg.unmasking/both-sets",
)
def _both_secrets(right: Function) -> Function:
    return _repaired(
        right,
        lambda state, message: replace(
            message, dropped=tuple(user for user in message.dropped if user not in message.survivors)
        ),
    )


@mutant(
    "answers-although-it-has-dropped",
    "SAG-21",
    "privacy: a user helps to remove the pairwise masks of its own input",
    f"{_SECAGG}:check_request",
    _changed(6, survivors=(1, 2, 3, 4), dropped=(0,)),
    kind="privacy",
    source="seen in Flower 1.41.0: secagg.unmasking/itself",
)
def _left_out(right: Function) -> Function:
    def repair(state: Any, message: Any) -> Any:
        survivors = tuple(sorted({*message.survivors, state.user}))
        return replace(message, survivors=survivors, dropped=tuple(set(message.dropped) - {state.user}))

    return _repaired(right, repair)


@mutant(
    "releases-below-threshold",
    "SAG-22",
    "privacy: a user helps to unmask the sum of fewer than T + 2 users",
    f"{_SECAGG}:check_request",
    _changed(6, survivors=(0, 1), dropped=(2, 3, 4)),
    kind="privacy",
    source="paper: secagg, few contributors",
)
def _below(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        with suppress(TooFewSurvivors):
            right(state, message)
        return message.survivors, message.dropped

    return wrong


@mutant(
    "survivors-that-are-no-holders-count",
    "SAG-22",
    "privacy: a user counts all survivors, not those among its holders",
    f"{_SECAGG}:check_request",
    _changed(6, 0, _RING, survivors=(0, 1, 2), dropped=(3, 4, 5)),
    kind="privacy",
    source="clause in part",
)
def _far_survivors(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        try:
            return right(state, message)
        except TooFewSurvivors:
            if len(message.survivors) < state.round.parameters.enough:
                raise
            return message.survivors, message.dropped

    return wrong


def _silent(part: str) -> Callable[[Function], Function]:
    """Return what leaves out one half of SAG-23: that a holder is not named, or that one is named which is none."""

    def build(right: Function) -> Function:
        def wrong(state: Any, message: Any) -> Any:
            try:
                return right(state, message)
            except InconsistentSets as error:
                named = {*message.survivors, *message.dropped} & state.round.graph.holders(state.user)
                unnamed = bool(set(state.held) - named)
                if "are held" not in str(error) or unnamed != (part == "unnamed"):
                    raise
                return message.survivors, message.dropped

        return wrong

    return build


mutant(
    "users-may-be-left-out",
    "SAG-23",
    "wrong sum: a user is in neither set, and its mask stays in the sum",
    f"{_SECAGG}:check_request",
    _changed(6, survivors=(0, 1, 2, 3)),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.unmasking/unnamed",
)(_silent("unnamed"))
mutant(
    "users-without-shares-may-be-named",
    "SAG-23",
    "acceptance: a request names a neighbour that shared nothing",
    f"{_SECAGG}:check_request",
    lambda: _taken(
        6, 0, lambda inbox: [replace(inbox[0], dropped=(2,))], _WIDE, {"share_keys": [2]}
    ),
    kind="acceptance", source="clause in part",
)(_silent("unheld"))  # fmt: skip


@mutant(
    "shares-exchanged",
    "SAG-24",
    "privacy: the shares of masking keys are given for survivors, and those of self seeds for dropped users",
    f"{_SECAGG}:user_unmasking",
    _sent,
    kind="privacy",
    source="order",
)
def _exchanged(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        held = {user: Shares(shares.seed, shares.key) for user, shares in state.held.items()}
        return right(replace(state, held=held), inbox, randomness=randomness)

    return wrong


@mutant(
    "own-share-is-kept-back",
    "SAG-24",
    "failure: a user gives no share of its own secrets, and its answer is refused",
    f"{_SECAGG}:user_unmasking",
    _sent,
    kind="refusal",
    source="wrong term",
)
def _kept_back(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (answer,) = right(state, inbox, randomness=randomness)
        at = answer.survivors.index(state.user)
        data = answer.seed_shares[: 66 * at] + answer.seed_shares[66 * at + 66 :]
        kept = tuple(user for user in answer.survivors if user != state.user)
        return after, (replace(answer, survivors=kept, seed_shares=data),)

    return wrong


@mutant(
    "second-answer",
    "SAG-25",
    "privacy: a second request gets the other secret of a user",
    f"{_SECAGG}:user_unmasking",
    lambda: _again(6),
    kind="privacy",
    source="used twice",
)
def _second_answer(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        ready = replace(state, phase="unmasking") if state.phase == "done" else state
        after, outbox = right(ready, inbox, randomness=randomness)
        return replace(after, held=state.held), outbox

    return wrong


# ------------------------------------------------------------------------------------------------- the server's end


@mutant(
    "wrong-answers-are-skipped",
    "SAG-26",
    "wrong blame: an answer that does not hold what was asked for is passed over",
    f"{_SECAGG}:_answer",
    _changed(7, SERVER, survivors=lambda m: m.survivors[::-1]),
    kind="acceptance",
    source="silent repair",
)
def _skips_answers(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        try:
            return right(state, message)
        except Malformed:
            return secagg._Answer(message.sender, {}, {})

    return wrong


@mutant(
    "recovers-from-too-few",
    "SAG-27",
    "wrong blame: fewer than t shares are interpolated, and what comes out is called a wrong share",
    f"{_SECAGG}:server_unmasking",
    lambda: _taken(7, SERVER, lambda inbox: inbox[:2]),
    kind="refusal",
    source="clause left out",
)
def _too_few(right: Function) -> Function:
    return _tolerant(right, lambda state, inbox: len(inbox))


def _unchecked(kind: str) -> Callable[[Function], Function]:
    def build(right: Function) -> Function:
        def wrong(state: Any, user: int, answers: Any) -> Any:
            found = {answer.holder: getattr(answer, kind)[user] for answer in answers if user in getattr(answer, kind)}
            return secagg._recover(state, user, found)

        return wrong

    return build


def _other_first_message(row: int, field: str, gone: Mapping[str, Sequence[int]]) -> object:
    """Return how a round ends in which the server received another value from user 1 in one of its steps."""
    network, sampled = _network(_TINY), _sampled(_TINY)
    away: set[int] = set()
    try:
        for number, step in enumerate(secagg.TABLE):
            if number == row:
                box = network.waiting[SERVER]
                [at] = [at for at, m in enumerate(box) if m.sender == 1 and hasattr(m, field)]
                data = getattr(box[at], field)
                box[at] = replace(box[at], **{field: bytes([data[0] ^ 1]) + data[1:]})
            away |= set(gone.get(step.phase, ())) if step.role is Role.USER else set()
            for party in [SERVER] if step.role is Role.SERVER else sorted(set(range(5)) - away):
                network.take(step, party, {name: sampled[party][name] for name in step.randomness})
    except ProtocolError as error:
        return type(error).__name__, sorted(error.blamed)
    return network.states[SERVER].phase


mutant(
    "self-seed-unchecked",
    "SAG-28",
    "wrong sum: a user that shares another seed than the one of its mask makes the sum wrong, and is not blamed",
    f"{_SECAGG}:_self_seed",
    lambda: _other_first_message(3, "commitment", {}),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.recovery/altered-share",
)(_unchecked("seeds"))
mutant(
    "masking-key-unchecked",
    "SAG-28",
    "wrong sum: a user that shares another key than the one of its masks makes the sum wrong, and is not blamed",
    f"{_SECAGG}:_masking_key",
    lambda: _other_first_message(1, "masking", {"masked_input": [1]}),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.recovery/altered-share",
)(_unchecked("keys"))


@mutant(
    "owner-alone-is-blamed",
    "SAG-28",
    "wrong blame: a holder that alters a share has its owner blamed, and nobody else",
    f"{_SECAGG}:_self_seed",
    lambda: _other_first_message(3, "commitment", {}),
    also=("ADP-29",),
    kind="refusal",
    source="wrong reason",
)
def _owner_alone(right: Function) -> Function:
    def wrong(state: Any, user: int, answers: Any) -> Any:
        try:
            return right(state, user, answers)
        except ProtocolError as error:
            raise type(error)(str(error), (user,)) from None

    return wrong


@mutant(
    "sign-of-equation-5",
    "SAG-29",
    "wrong sum: what dropped users would have added is subtracted, as equation (5) of HeteroSAg has it",
    f"{_SECAGG}:unmask",
    lambda: _sent(gone={"masked_input": [2]}),
    kind="sum",
    source="paper: HET-EQ5",
)
def _equation_5(right: Function) -> Function:
    return lambda ring, total, own, left: right(ring, total, own, ((j, i, mask) for i, j, mask in left))


@mutant(
    "self-masks-stay",
    "SAG-29",
    "wrong sum: the survivors' own masks are not removed",
    f"{_SECAGG}:unmask",
    _sent,
    kind="sum",
    source="wrong term",
)
def _masks_stay(right: Function) -> Function:
    return lambda ring, total, own, left: right(ring, total, (), left)


@mutant(
    "all-survivors-must-answer",
    "SAG-30",
    "failure: a round ends when a single survivor does not answer",
    f"{_SECAGG}:server_unmasking",
    lambda: _sent(_WIDE, {"unmasking": [2]}),
    also=("SAG-29",),
    kind="refusal",
    source="clause too strict",
)
def _all_answer(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if state.phase == "unmasking" and len(inbox) < len(state.survivors):
            raise TooFewSurvivors("a survivor did not answer")
        return right(state, inbox, randomness=randomness)

    return wrong


# ------------------------------------------------------------------------------------------------- masks from seeds

_CONTEXT = Context("p", b"h" * 32, b"s" * 16, 9, 515)
_KEYS = {1: b"a" * 32, 2: b"b" * 32}


def _pairwise() -> bytes:
    return masks.pairwise_key(_CONTEXT, b"x" * 32, dict(_KEYS))


def _own() -> tuple[bytes, bytes]:
    return masks.self_key(_CONTEXT, b"x" * 32, 3), masks.commitment(_CONTEXT, b"x" * 32, 3)


def _elsewhere(**changes: Any) -> Callable[[Function], Function]:
    """Return what derives a key as if some part of the context were another one."""
    return lambda right: lambda context, *given: right(replace(context, **changes), *given)


for _name, _part, _value in (("round", "round", 0), ("session", "session", bytes(16)), ("protocol", "protocol", "")):
    mutant(
        f"{_name}-not-in-the-pairwise-mask",
        "MSK-01",
        f"privacy: two users that keep their keys share one mask in every {_name}",
        f"{_MASKS}:pairwise_key",
        _pairwise,
        kind="privacy",
        source=f"field not bound: the {_name}",
    )(_elsewhere(**{_part: _value}))
    mutant(
        f"{_name}-not-in-the-self-mask",
        "MSK-02",
        f"privacy: one seed gives one mask in every {_name}",
        f"{_MASKS}:self_key",
        _own,
        kind="privacy",
        source=f"field not bound: the {_name}",
    )(_elsewhere(**{_part: _value}))
    mutant(
        f"{_name}-not-in-the-commitment",
        "MSK-03",
        f"acceptance: a commitment of one {_name} is good in every other",
        f"{_MASKS}:commitment",
        _own,
        kind="acceptance",
        source=f"field not bound: the {_name}",
    )(_elsewhere(**{_part: _value}))


@mutant(
    "pairwise-mask-without-users",
    "MSK-01",
    "no interoperation: the numbers of the two users are not in the key of their mask",
    f"{_MASKS}:pairwise_key",
    _pairwise,
    kind="form",
    source="field not bound: the users",
)
def _no_users(right: Function) -> Function:
    return lambda context, secret, keys, segment=0: right(
        context, secret, dict(enumerate(starmap(lambda _, key: key, sorted(keys.items())))), segment
    )


@mutant(
    "self-mask-without-user",
    "MSK-02",
    "privacy: users that draw one seed have one mask",
    f"{_MASKS}:self_key",
    _own,
    kind="privacy",
    source="field not bound: the user",
)
def _no_user(right: Function) -> Function:
    return lambda context, seed, user, segment=0: right(context, seed, 0, segment)


@mutant(
    "one-key-for-both-masks",
    "MSK-02",
    "privacy: a self mask has the purpose of a pairwise one, so that one stream may serve twice",
    f"{_MASKS}:self_key",
    _own,
    kind="privacy",
    source="other rule: the purpose of a pairwise mask",
)
def _one_purpose(right: Function) -> Function:
    def wrong(context: Context, seed: bytes, user: int, segment: int = 0) -> bytes:
        bound = (LABEL, VERSION, context.protocol, context.parameters, context.round, "pairwise-mask")
        return derive(seed, context.session, fields(*bound, segment, user))

    return wrong


@mutant(
    "commitment-without-user",
    "MSK-03",
    "acceptance: a user commits to another one's seed by repeating its commitment",
    f"{_MASKS}:commitment",
    _own,
    kind="acceptance",
    source="field not bound: the user",
)
def _anybodys(right: Function) -> Function:
    return lambda context, seed, user: right(context, seed, 0)
