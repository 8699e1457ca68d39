"""Checks of what a server and colluding users learn in a whole round from the messages of one user.

The adapter plays one user with explicit randomness, and everyone else follows the text. For LightSecAgg, the check
probes how the messages depend on the secrets. For SecAgg, it subtracts the streams of the known seeds. Whatever a
server asks a user, in one request or in two, the answers must not let it open a single input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import drawn_rounds, neighbours, strategies
from secagg_spec.conformance.cases.lightsecagg_parties import ROUNDS, Agreed, UserSession, user_scene
from secagg_spec.conformance.cases.neighbour_rounds import unmasking
from secagg_spec.conformance.cases.neighbours import UNMASKING
from secagg_spec.conformance.cases.requests import shares_length, vandermonde
from secagg_spec.conformance.checks import playing
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail
from secagg_spec.conformance.checks.outside_chance import demand_spread, numbered_seeds, own_draws, some_modulus
from secagg_spec.conformance.checks.outside_masks import demand_hidden
from secagg_spec.conformance.checks.outside_probes import (
    ROUND_SWEEP,
    Asking,
    explicit,
    few_users,
    leaked,
    sweep_seed,
    vector,
)
from secagg_spec.conformance.checks.playing import SESSIONS
from secagg_spec.conformance.checks.scripts import ask, sent
from secagg_spec.conformance.checks.secagg_unmasking import entries_of
from secagg_spec.conformance.outside import leaks
from secagg_spec.conformance.outside.probing import everything
from secagg_spec.conformance.outside.views import LightRound
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.codec import Message, encode, vector_from_bytes
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare
from secagg_spec.protocols.secagg.round import MaskedInput, UnmaskShares
from secagg_spec.protocols.steps import Role

_LIGHT, _SECAGG = "lightsecagg.user", "secagg.user"
_WIDE, _LONG = 2**32, 5
"""Modulus and length at which streams of different keys cannot be confused."""
_FEWEST = 4
"""The most users of a three-column round that is probed."""
_of_secagg = partial(check, operations=SESSIONS, applies=playing.plays(_SECAGG), grows=True)


def only(operation: str, messages: Sequence[Message], kind: type[Any], what: str) -> Any:
    """Return the only message of a step."""
    if len(messages) != 1 or not isinstance(messages[0], kind):
        fail(f"{operation}: {what} must be one message of the type {kind.TYPE}")
    return messages[0]


def sized(operation: str, values: UintArray, size: int, q: int, what: str) -> list[int]:
    """Return the elements of a vector in a message."""
    if values.size != size or any(int(value) >= q for value in values):
        fail(f"{operation}: {what} must have {size} elements below {q}")
    return [int(value) for value in values]


def _light(caps: Capabilities) -> bool:
    return vandermonde(caps) and explicit(_LIGHT)(caps) and strategies.possible(few_users(caps, _LIGHT), _LIGHT)


@check(f"privacy/{_LIGHT}", "LSA-02", "MDS-10", "LSA-08", applies=_light, examples=4, grows=True)
def light_user(draw: Any, call: Caller) -> None:
    """From a round with one played user, the server and T users learn the sum and nothing else (by the matrix)."""
    caps = few_users(call.caps, _LIGHT)
    _judge_user(call, user_scene(draw, caps), sweep_seed(draw))


@check(
    f"privacy/{_LIGHT}/edges",
    *("LSA-02", "MDS-10", "LSA-08"),
    applies=lambda caps: _light(caps) and strategies.possible(few_users(caps, _LIGHT, _FEWEST), _LIGHT),
    examples=1,
)
def light_edges(draw: Any, call: Caller) -> None:
    """At the edges (smallest q, N = q - 1, largest T, most coalitions), the server and T users learn only the sum."""
    caps, seed, number = few_users(call.caps, _LIGHT, _FEWEST), sweep_seed(draw), draw(among(ROUNDS))
    for code in strategies.edges(caps, _LIGHT):
        call.transcript.clear()
        agreed = Agreed({**code, "d": 3 * (code["U"] - code["T"])}, bytes(16), number)
        zeros = np.zeros(0, np.uint64)
        scene = UserSession(agreed, code["N"] - 1, zeros, zeros, zeros, {}, tuple(range(code["N"])))
        _judge_user(call, scene, seed, 3 * (code["U"] - code["T"]))


def _judge_user(call: Caller, scene: UserSession, seed: int, most: int = 2) -> None:
    """Fail when the server and T users learn more than the sum of a round with `most` elements."""
    numbers = dict(scene.agreed.numbers)
    numbers["d"] = min(numbers["d"], most)
    inputs = 2 * numbers["d"] + (numbers["T"] + numbers["N"] - 1) * shares_length(numbers, numbers["d"])
    core, spans = partial(_light_sent, call, scene, numbers), [everything(numbers["q"])] * inputs
    asking = Asking(call, _LIGHT, numbers["q"], core, spans, seed)
    found = asking.probed()
    _demand_only_the_sum(LightRound(numbers, scene.party, found, _surviving(scene, numbers)))
    asking.swept(found, ROUND_SWEEP)


def _surviving(scene: UserSession, numbers: Mapping[str, int]) -> tuple[int, ...]:
    """Return the surviving set of the scene, extended to U members, who answer."""
    others = [user for user in range(numbers["N"]) if user not in scene.surviving]
    return tuple(sorted([*scene.surviving, *others[: max(0, numbers["U"] - len(scene.surviving))]]))


def _light_sent(call: Caller, scene: UserSession, numbers: dict[str, int], point: Sequence[int]) -> list[int]:
    """Let the user take its steps at a point. Return its shares, its masked update and its aggregated share."""
    N, T, d, q, L = *(numbers[name] for name in ("N", "T", "d", "q")), shares_length(numbers, numbers["d"])
    others = [user for user in range(N) if user != scene.party]
    update, mask, noise, rest = np.split(vector(point), [d, 2 * d, 2 * d + T * L])
    arriving = dict(zip(others, rest.reshape(N - 1, L), strict=True))
    agreed = replace(scene.agreed, numbers=numbers)
    moved = replace(scene, agreed=agreed, update=update, mask=mask, noise=noise.reshape(T, L), privates=())
    moved = replace(moved, received=arriving, surviving=_surviving(scene, numbers))
    calls = moved.calls()
    entries = ask(call, _LIGHT, moved.params(calls), moved.rand())
    shares, masked, answer = (sent(_LIGHT, e, step.phase) for e, step in zip(entries, calls, strict=True))
    own = only(_LIGHT, masked, MaskedUpdate, "what upload sends").masked
    share = only(_LIGHT, answer, AggregatedShare, "what recover sends").share
    return [
        *_own_shares(shares, others, L, q),
        *sized(_LIGHT, own, d, q, "the masked update"),
        *sized(_LIGHT, share, L, q, "the aggregated share"),
    ]


def _own_shares(messages: Sequence[Message], others: Sequence[int], L: int, q: int) -> list[int]:
    payloads = {message.receiver: message.payload for message in messages if isinstance(message, MaskShare)}
    if sorted(payloads) != list(others):
        fail(f"{_LIGHT}: shares go to {sorted(payloads)}, must go to each of {list(others)}")
    values = []
    for user in others:
        try:
            share = vector_from_bytes(payloads[user])
        except ProtocolError as error:
            fail(f"{_LIGHT}: the share for {user} is not one: {error}")
        values += sized(_LIGHT, share, L, q, f"the share for {user}")
    return values


def _demand_only_the_sum(played: LightRound) -> None:
    """Fail when the server and up to T other users learn more than the sum."""
    numbers, entries = played.numbers, played.entries()

    def leak_to(coalition: tuple[int, ...]) -> leaks.Leak | None:
        view = [entry for entry in entries if entry.holder is leaks.EVERYBODY or entry.holder in coalition]
        return leaks.find(numbers["q"], view, played.secrets, played.allowed(coalition), coalition, server=True)

    leak = leaks.first_leak(leak_to, leaks.coalitions(played.others, numbers["T"], len(entries) ** 2))
    if leak is not None:
        leaked(leak)


@check(f"privacy/{_LIGHT}/elements", "LSA-02", "MDS-10", applies=own_draws(_LIGHT), examples=6, grows=True)
def light_elements(draw: Any, call: Caller) -> None:
    """A user's mask and the shares that T users get of it vary: each element, and each combination of elements."""
    numbers = strategies.session(draw, call.caps, _LIGHT)
    numbers["d"], T = draw(st.integers(1, 6) | st.sampled_from((20, 70))), numbers["T"]
    q = numbers["q"] = some_modulus(draw, call.caps, _LIGHT, numbers["N"])
    d, L = numbers["d"], shares_length(numbers, numbers["d"])
    user = draw(st.integers(0, numbers["N"] - 1))
    others = [other for other in range(numbers["N"]) if other != user]
    users = sorted(strategies.subset(draw, others, T, T))
    nothing = np.zeros(0, np.uint64)
    share = np.zeros(L, np.uint64)
    agreed = Agreed(numbers, bytes(16), 0)
    scene = UserSession(agreed, user, np.zeros(d, np.uint64), nothing, nothing, dict.fromkeys(others, share), ())
    rand, parts, calls = numbered_seeds(draw, call, _LIGHT), draw(st.just(call.cases)), scene.calls()[:2]

    def elements(number: int) -> UintArray:
        entries = ask(call, _LIGHT, scene.params(calls), rand(number))
        shares, masked = (sent(_LIGHT, entry, step.phase) for entry, step in zip(entries, calls, strict=True))
        mask = only(_LIGHT, masked, MaskedUpdate, "what upload sends").masked
        held = np.array(_own_shares(shares, others, L, q)).reshape(len(others), L)
        seen = [held[others.index(user)] for user in users]
        return np.concatenate([np.array(sized(_LIGHT, mask, d, q, "the masked update")), *seen]).astype(np.uint64)

    demand_spread(call, _LIGHT, q, parts, elements, f"the mask and the shares of {leaks.named(users)}")


@check(f"privacy/{_LIGHT}/once", "LSA-12", "LSA-09", applies=_light, examples=8, grows=True)
def light_once(draw: Any, call: Caller) -> None:
    """A user does not answer two requests whose answers differ by the share of a single user's mask."""
    scene = user_scene(draw, few_users(call.caps, _LIGHT))
    numbers = scene.agreed.numbers
    everybody = tuple(range(numbers["N"]))
    L = shares_length(dict(numbers), numbers["d"])
    others = [user for user in everybody if user != scene.party]
    arriving = {user: [min((7 * user + at + 1) // 2, numbers["q"] - 1) for at in range(L)] for user in others}
    received = {user: vector(share) for user, share in arriving.items()}
    scene = replace(scene, received=received, surviving=everybody)
    left_out = draw(among(others))
    fewer = scene.announced(tuple(user for user in everybody if user != left_out))
    calls = [*scene.calls(), Call("recover", (encode(fewer),))]
    entries = ask(call, _LIGHT, scene.params(calls), scene.rand())
    answers = [_answer(entry) for entry in entries[2:]]
    if answers[0] is None or answers[1] is None or np.array_equal(answers[0], answers[1]):
        return
    what = f"update_{left_out}"
    message = (
        f"{_LIGHT}: user {scene.party} answered for the users {list(everybody)} and then for all but user {left_out}: "
        f"the server alone learns {what}, since the difference of the answers of U = {numbers['U']} users that do so "
        f"are shares of the mask of user {left_out}, here {answers[0].tolist()} less {answers[1].tolist()}"
    )
    raise CheckFailed("leaked", message, leaks.details(what, ["answer 1", "answer 2", f"masked_{left_out}"]))


def _answer(entry: Mapping[str, Any]) -> UintArray | None:
    """Return the aggregated share of a step, or None if the step was refused."""
    if "reject" in entry:
        return None
    messages = sent(_LIGHT, entry, "recover")
    return np.asarray(only(_LIGHT, messages, AggregatedShare, "what recover sends").share) if messages else None


@_of_secagg(f"privacy/{_SECAGG}", "SAG-12", "MSK-01", "MSK-02", examples=12)
def masks(draw: Any, call: Caller) -> None:
    """A masked input has its user's mask and every neighbour's, so that the server and a few users cannot unmask it."""
    scene = _wide(draw)
    entries = playing.asked(call, scene.inputs, scene.party, scene.calls()[:3])
    message = only(_SECAGG, sent(_SECAGG, entries[2], "masked_input"), MaskedInput, "what masked_input sends")
    streams = _streams(scene)
    masked = np.array(sized(_SECAGG, message.masked, _LONG, _WIDE, "the masked input"), dtype=np.uint64)
    given = vector(np.frombuffer(bytes.fromhex(scene.inputs.setups[scene.party]["update"]), "<u4").tolist())
    found = _signs(Ring(_WIDE).subtract(masked, given), streams)
    if found is None:
        what = "is not its input and sums of the masks that it may have"
        fail(f"{_SECAGG}: the masked input of user {scene.party} {what}")
    hiding = [int(name) for name, sign in found.items() if sign and name != "own"]
    demand_hidden(_SECAGG, scene.party, hiding, bool(found["own"]), scene.inputs.numbers["T"])


def _wide(draw: Any) -> Played:
    """Draw a user of a round whose modulus and length distinguish streams."""
    scene = drawn_rounds.scene(draw, Role.USER, sparse=False)
    old = scene.inputs
    given = {"update": pack(vector(range(_LONG)))}
    setups = {party: {**setup, **given} if "update" in setup else setup for party, setup in old.setups.items()}
    inputs = replace(old, numbers={**old.numbers, "R": str(_WIDE), "d": _LONG}, setups=setups)
    return Played(inputs, scene.party, inputs.played(_dropped(scene)))


def _dropped(scene: Played) -> dict[str, list[int]]:
    """Return which users dropped out before which step of a scene's round."""
    dropouts: dict[str, list[int]] = {}
    for phase in ("advertise_keys", "share_keys", "masked_input", "unmasking"):
        active = {event.party for event in scene.network.transcript if event.step.phase == phase}
        before = {user for users in dropouts.values() for user in users}
        dropouts[phase] = [user for user in scene.inputs.users if user not in active and user not in before]
    return dropouts


def _streams(scene: Played) -> dict[str, UintArray]:
    """Return the streams of the masks that a user may put on its input, by the user they are shared with."""
    state, held, ring = scene.state(1), scene.state(2).held, Ring(_WIDE)
    [own] = state.self_keys.values()
    streams = {"own": expand(own, ring, _LONG)}
    pairs = {str(peer): expand(key, ring, _LONG) for (_, peer), key in state.mask_keys.items() if peer in held}
    return streams | pairs


def _signs(mask: UintArray, streams: Mapping[str, UintArray]) -> dict[str, int] | None:
    """Return the coefficients in {-1, 0, 1} with which the streams sum to a mask, or None if there are none."""
    ring, names = Ring(_WIDE), list(streams)
    for signs in product((0, 1, -1), repeat=len(names)):
        total = np.zeros(_LONG, dtype=np.uint64)
        for sign, name in zip(signs, names, strict=True):
            if sign:
                total = (ring.add if sign > 0 else ring.subtract)(total, streams[name])
        if np.array_equal(total, mask):
            return dict(zip(names, signs, strict=True))
    return None


@_of_secagg(f"privacy/{_SECAGG}/once", "SAG-20", "SAG-25", examples=16)
def secagg_once(draw: Any, call: Caller) -> None:
    """Whatever the server asks, a user does not release its shares of both secrets of one user."""
    scene = drawn_rounds.scene(draw, Role.USER, sparse=False, spare=1)
    [request] = scene.inbox(3)
    asked = _two_requests(draw, request.survivors, request.dropped, scene.party)
    requests = [replace(request, survivors=tuple(left), dropped=tuple(gone)) for left, gone in asked]
    steps = [*scene.calls()[:3], *(Call.of("unmasking", (changed,)) for changed in requests)]
    answers = [_owners(entry) for entry in playing.asked(call, scene.inputs, scene.party, steps)[3:]]
    _demand_one_secret(_SECAGG, scene.party, scene.inputs.numbers["t"], asked, answers)


def _two_requests(
    draw: Any, survivors: Sequence[int], dropped: Sequence[int], user: int
) -> list[tuple[list[int], list[int]]]:
    """Draw requests that together ask for both secrets of one user: one request, or two in either order."""
    honest = (sorted(survivors), sorted(dropped))
    victim = draw(among([other for other in survivors if other != user]))
    moved = ([other for other in honest[0] if other != victim], sorted([*dropped, victim]))
    kind = draw(among(("then", "before", "both")))
    if kind == "both":
        return [(honest[0], moved[1])]
    return [honest, moved] if kind == "then" else [moved, honest]


def _owners(entry: Mapping[str, Any]) -> tuple[set[int], set[int]] | None:
    """Return the users whose shares an answer holds."""
    if "reject" in entry:
        return None
    messages = [m for m in sent(_SECAGG, entry, "unmasking") if isinstance(m, UnmaskShares)]
    seeds = {user for message in messages for user in message.survivors}
    return seeds, {user for message in messages for user in message.dropped}


def _demand_one_secret(
    operation: str,
    user: int,
    t: int,
    asked: Sequence[tuple[Sequence[int], Sequence[int]]],
    answers: Sequence[tuple[set[int], set[int]] | None],
) -> None:
    """Fail when the answers together release shares of both secrets of one user."""
    seeds = {owner: at for at, answer in enumerate(answers, 1) if answer for owner in answer[0]}
    keys = {owner: at for at, answer in enumerate(answers, 1) if answer for owner in answer[1]}
    both = sorted(set(seeds) & set(keys))
    if both:
        owner = both[0]
        what = f"update_{owner}"
        message = (
            f"{operation}: user {user} released its share of the self seed of user {owner} (request {seeds[owner]}) "
            f"and that of its masking key (request {keys[owner]}): the server alone learns {what} from t = {t} users "
            "that answer so, by taking the streams of both off its masked input"
        )
        seen = [f"request {seeds[owner]}: seed share of {owner}", f"request {keys[owner]}: key share of {owner}"]
        raise CheckFailed("leaked", message, leaks.details(what, [*seen, f"masked_{owner}"]))


@check(
    f"privacy/{UNMASKING}",
    *("SAG-20", "SAG-25"),
    applies=lambda caps: bool(neighbours.rosters(caps, UNMASKING, 1)),
    examples=16,
    grows=True,
)
def unmasking_once(draw: Any, call: Caller) -> None:
    """Whatever the server asks, a user does not release its shares of both secrets of one user."""
    scene = unmasking(draw, call.caps, 1)
    near = [user for user in scene.survivors if user in scene.holders]
    if near == [scene.user]:
        return
    asked = _two_requests(draw, near, scene.dropped, scene.user)
    far = [user for user in scene.survivors if user not in near]
    asked = [(sorted([*survivors, *far]), dropped) for survivors, dropped in asked]
    requests = [{"survivors": survivors, "dropped": dropped} for survivors, dropped in asked]
    answers = entries_of(call, scene, *requests)
    _demand_one_secret(UNMASKING, scene.user, scene.roster.t, asked, [_named_owners(entry) for entry in answers])


def _named_owners(entry: Mapping[str, Any]) -> tuple[set[int], set[int]] | None:
    if "reject" in entry:
        return None
    lists = [entry.get(name) for name in ("seeds", "keys")]
    if not all(isinstance(users, list) and all(type(user) is int for user in users) for users in lists):
        raise CheckFailed("protocol", f"{UNMASKING}: an answer has lists of users, seeds and keys")
    seeds, keys = lists
    return set(seeds or ()), set(keys or ())
