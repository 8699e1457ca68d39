"""Checks of masked segments: what a user sends, and what the server recovers from it (spec/heterosag.md, 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.cases import heterosag_sessions, strategies
from secagg_spec.conformance.cases.heterosag_masking import arrival, masked, sender, sent
from secagg_spec.conformance.cases.requests import one_of, some
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, fail, octets, same
from secagg_spec.conformance.checks.heterosag_steps import (
    BAD_NUMBERS,
    ELSEWHERE,
    IMPOSSIBLE,
    UNPACKED,
    broken_segments,
    broken_update,
)
from secagg_spec.conformance.checks.streams import standard
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.sessions.heterosag_cells import MASK, UNMASK, Masked
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.heterosag.plan import Cell, cells_of
from secagg_spec.protocols.heterosag.round import pack_segments, unpack_segments

_WRONG_ROUND = (str(2**32), "-1")


@check(f"{MASK}/exact", "HSA-14", "HSA-15", "HSA-12", "MSK-01", "MSK-02", applies=standard)
def mask(draw: Any, call: Caller) -> None:
    """Each segment has the user's own mask and those with the users of its cell whose shares arrived, and is packed."""
    chosen = masked(draw)
    user, arrived = sender(draw, chosen)
    got, want = segments_of(call, chosen, user, arrived), chosen.segments(user, arrived)
    only_if(got != want)
    found = unpacked(chosen, user, got)
    same("masked segments", found, unpacked(chosen, user, want))
    fail(f"the packed segments are {got.hex()}, must be {want.hex()}", want.hex())


@check(f"{MASK}/outsiders", "HSA-14", examples=24)
def outsiders(draw: Any, call: Caller) -> None:
    """A key agreed with a user outside the cell does not change a segment; one agreed with a user inside does."""
    chosen = masked(draw)
    user = int(draw(st.integers(0, chosen.parameters.N - 1)))
    others = [peer for peer in range(chosen.parameters.N) if peer != user]
    peer = draw(among(others))
    secrets = {**chosen.secrets, frozenset((user, peer)): bytes(32)}
    call.by_relation |= not standard(call.caps)
    before = unpacked(chosen, user, segments_of(call, chosen, user, others))
    after = unpacked(chosen, user, segments_of(call, replace(chosen, secrets=secrets), user, others))
    for cell in cells_of(chosen.parameters, user):
        if peer not in cell.members:
            same(f"segment {cell.segment}, without user {peer}", cell.of(after), cell.of(before))
        elif tells(cell) and np.array_equal(cell.of(after), cell.of(before)):
            fail(f"segment {cell.segment} has no mask that is shared with user {peer}")


@check(f"{MASK}/bound", "HSA-22", examples=40)
def bound(draw: Any, call: Caller) -> None:
    """The same keys give other masks under another session, round or parameters."""
    chosen = masked(draw)
    p, user = chosen.parameters, int(draw(st.integers(0, chosen.parameters.N - 1)))
    shape = attrgetter("parts", "N", "d")
    others = {name: other for name, other in heterosag_sessions.others(p).items() if shape(other) == shape(p)}
    name = draw(among(("session", "round", *sorted(others))))
    elsewhere: dict[str, dict[str, Any]] = {
        "session": {"session": bytes([chosen.session[0] ^ 1]) + chosen.session[1:]},
        "round": {"number": chosen.number ^ 1},
    }
    moved = replace(chosen, **(elsewhere.get(name) or {"parameters": others[name]}))
    call.by_relation |= not standard(call.caps)
    arrived = [peer for peer in range(p.N) if peer != user]
    first, second = (segments_of(call, each, user, arrived) for each in (chosen, moved))
    bits = sum(cell.length * (cell.ring.modulus - 1).bit_length() for cell in cells_of(p, user))
    if bits >= _SURE and first == second:
        fail(f"the masks are the same under another {name}")


_SURE = 40
"""The number of bits at which two uniform streams almost surely differ."""


def tells(cell: Cell) -> bool:
    """Return whether two masks of a cell almost surely differ."""
    return cell.length * (cell.ring.modulus - 1).bit_length() >= _SURE


@check("heterosag/own-segments", "HSA-14", "HSA-19", operations=(MASK, UNMASK), examples=24)
def own_segments(draw: Any, call: Caller) -> None:
    """The adapter unmasks its own masked segments to the sums of the cells, whichever users drop out."""
    chosen = masked(draw, spare=draw(st.integers(0, 1)))
    survivors, dropped = arrival(draw, chosen)
    everybody = [*survivors, *dropped]
    call.by_relation |= not standard(call.caps)
    segments = {user: segments_of(call, chosen, user, [u for u in everybody if u != user]) for user in survivors}
    _judge_sums(call, chosen, survivors, chosen.unmask_params(survivors, dropped, segments))


@check(f"{MASK}/update", "HSA-13", examples=30)
def update(draw: Any, call: Caller) -> None:
    """An input with the wrong length or a number not below its cell's K is refused."""
    chosen = masked(draw)
    params = chosen.mask_params(*sender(draw, chosen))
    changed, codes, why = broken_update(draw, params)
    call.refused(MASK, {**params, "update": changed}, codes, why)


@check(f"{MASK}/request", "ADP-38", examples=60)
def mask_request(draw: Any, call: Caller) -> None:
    """Users, keys, seeds and secrets that the text forbids are refused."""
    chosen = masked(draw)
    user = int(draw(st.integers(0, chosen.parameters.N - 1)))
    params = chosen.mask_params(user, [peer for peer in range(chosen.parameters.N) if peer != user])
    N, secrets, key = chosen.parameters.N, params["secrets"], params["self_seed"]
    wrong: dict[str, dict[str, Any]] = {
        "user N": {"user": N},
        "a negative user": {"user": -1},
        "a secret with the user itself": {"secrets": [*secrets[1:], [user, key]]},
        "a secret with user N": {"secrets": [*secrets, [N, key]]},
        "two secrets with one user": {"secrets": [*secrets, secrets[0]]},
        "a short secret": {"secrets": [[secrets[0][0], key[2:]], *secrets[1:]]},
        "a long secret": {"secrets": [[secrets[0][0], key + "00"], *secrets[1:]]},
        "a short self seed": {"self_seed": key[2:]},
        "a long self seed": {"self_seed": key + "00"},
        **_wrong_keys(params),
    }
    call.some_refused(draw, MASK, params, wrong, ELSEWHERE | reject.OUT_OF_RANGE | reject.KEY_LENGTH)


def _wrong_keys(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    keys, session = params["keys"], params["session"]
    return {
        "one key less": {"keys": keys[:-1]},
        "one key more": {"keys": [*keys, keys[0]]},
        "a short key": {"keys": [keys[0][2:], *keys[1:]]},
        "a long key": {"keys": [*keys[:-1], keys[-1] + "00"]},
        "a session id of 15 bytes": {"session": session[2:]},
        "a session id of 17 bytes": {"session": session + "00"},
        **{f"the round {number}": {"round": number} for number in _WRONG_ROUND},
    }


@check(f"{MASK}/parameters", *(f"HSA-0{n}" for n in range(1, 6)), examples=30)
def mask_parameters(draw: Any, call: Caller) -> None:
    """Parameters that the text forbids are refused."""
    chosen = masked(draw)
    wrong = heterosag_sessions.wrong_numbers(chosen.parameters)
    for name in some(draw, wrong):
        call.refused(MASK, chosen.mask_params(*sender(draw, chosen), **wrong[name]), BAD_NUMBERS, f"there is {name}")


@check(f"{MASK}/no-construction", "HSA-06", examples=5)
def mask_construction(draw: Any, call: Caller) -> None:
    """The matrix perfect is refused for a number of subgroups for which the text has no construction."""
    chosen, wrong = masked(draw), heterosag_sessions.without_construction(draw)
    key = chosen.seeds[0].hex()
    given = {"keys": [key] * wrong["N"], "secrets": [], "update": "00000000" * wrong["d"]}
    params = {**chosen.mask_params(0, []), **wrong, **given}
    call.refused(MASK, params, BAD_NUMBERS, f"there is no perfect matrix of {wrong['subgroups']} subgroups")


@check(f"{UNMASK}/exact", "HSA-19", "HSA-12", applies=standard, examples=60)
def unmask(draw: Any, call: Caller) -> None:
    """The results are the sums of the cells with survivors, whichever users dropped out after sharing secrets."""
    chosen = masked(draw, spare=draw(st.integers(0, 1)))
    survivors, dropped = arrival(draw, chosen)
    segments = sent(chosen, survivors, dropped)
    shuffled = chosen.unmask_params(survivors, dropped, segments)
    order = strategies.shuffled(draw, range(len(shuffled["secrets"])))
    shuffled["secrets"] = [shuffled["secrets"][at] for at in order]
    _judge_sums(call, chosen, survivors, shuffled)


@check(f"{UNMASK}/packed-form", "HSA-16", examples=40)
def packed_form(draw: Any, call: Caller) -> None:
    """Segments are refused if their length is wrong, a number is not below its modulus, or a leftover bit is set."""
    chosen = masked(draw)
    survivors, dropped = arrival(draw, chosen)
    segments = sent(chosen, survivors, dropped)
    user = draw(among(survivors))
    forms = broken_segments(draw, cells_of(chosen.parameters, user), segments[user])
    name = draw(among(sorted(forms)))
    params = chosen.unmask_params(survivors, dropped, {**segments, user: forms[name]})
    call.refused(UNMASK, params, UNPACKED, f"the segments of user {user} have {name}")


@check(f"{UNMASK}/few-of-a-cell", "HSA-17", examples=24)
def few_of_a_cell(draw: Any, call: Caller) -> None:
    """Survivors are refused if some cell has between one and T + 1 of them."""
    chosen = masked(draw)
    p, subgroup = chosen.parameters, draw(among(chosen.parameters.members))
    kept = subgroup[: draw(among((p.T + 1, 1, *range(1, p.T + 1))))]
    survivors = [user for user in range(p.N) if user in kept or user not in subgroup]
    dropped = [user for user in subgroup if user not in kept]
    params = chosen.unmask_params(survivors, dropped, sent(chosen, survivors, dropped))
    call.refused(UNMASK, params, reject.TOO_FEW, f"of the survivors {survivors} a cell has {len(kept)}")


@check(f"{UNMASK}/impossible-sum", "HSA-20", applies=standard, examples=30)
def impossible_sum(draw: Any, call: Caller) -> None:
    """A sum that is impossible for the number of users in its cell is refused."""
    chosen = masked(draw, spare=1)
    p, dropped = chosen.parameters, draw(among(chosen.parameters.members))[:1]
    survivors = [user for user in range(p.N) if user not in dropped]
    segments = sent(chosen, survivors, dropped)
    cell = one_of(draw, [cell for cell in p.parts if set(dropped) & cell.members])
    user = draw(among(sorted(cell.members - set(dropped))))
    at = draw(st.integers(0, cell.length - 1))
    present = len(cell.members) - 1
    most = present * (cell.levels - 1)
    total = sum(int(cell.of(chosen.updates[u])[at]) for u in cell.members - set(dropped))
    own = cells_of(p, user)
    numbers = unpack_segments(own, segments[user]).copy()
    wanted = draw(among((most + 1, cell.ring.modulus - 1)))
    numbers[cell.start + at] = (int(numbers[cell.start + at]) + wanted - total) % cell.ring.modulus
    params = chosen.unmask_params(survivors, dropped, {**segments, user: pack_segments(own, numbers)})
    call.refused(UNMASK, params, IMPOSSIBLE, f"{present} users of {cell.levels} levels have the sum {wanted}")


@check(f"{UNMASK}/request", "ADP-38", examples=60)
def unmask_request(draw: Any, call: Caller) -> None:
    """Survivors, keys, seeds and secrets that the text forbids are refused."""
    chosen = masked(draw, spare=1)
    dropped = draw(among(chosen.parameters.members))[:1]
    survivors = [user for user in range(chosen.parameters.N) if user not in dropped]
    params = chosen.unmask_params(survivors, dropped, sent(chosen, survivors, dropped))
    wrong = {**_wrong_lists(params, dropped[0]), **_wrong_secrets(params, dropped[0]), **_wrong_keys(params)}
    call.some_refused(draw, UNMASK, params, wrong, ELSEWHERE | reject.OUT_OF_RANGE | reject.KEY_LENGTH)


def _wrong_lists(params: Mapping[str, Any], dropped: int) -> dict[str, dict[str, Any]]:
    """Return survivors, segments and seeds that do not fit together, by name."""
    users, N = params["survivors"], params["N"]
    segments, seeds = params["segments"], params["self_seeds"]
    return {
        "disorder": {"survivors": [*users[1:], users[0]]},
        "a survivor twice": {"survivors": [users[0], *users[:-1]]},
        "the survivor N": {"survivors": [*users[:-1], N]},
        "a negative survivor": {"survivors": [-1, *users[1:]]},
        "no segments of the last one": {"segments": segments[:-1]},
        "segments of one more": {"segments": [*segments, segments[0]]},
        "no seed of the last one": {"self_seeds": seeds[:-1]},
        "a seed of one more": {"self_seeds": [*seeds, seeds[0]]},
        "a short seed": {"self_seeds": [seeds[0][2:], *seeds[1:]]},
        "a long seed": {"self_seeds": [*seeds[:-1], seeds[-1] + "00"]},
    }


def _wrong_secrets(params: Mapping[str, Any], dropped: int) -> dict[str, dict[str, Any]]:
    """Return secrets that are not exactly one for each dropped user with each survivor, by name."""
    secrets, users, N = params["secrets"], params["survivors"], params["N"]
    first = secrets[0]
    return {
        "a secret too few": {"secrets": secrets[1:]},
        "a secret twice": {"secrets": [*secrets, first]},
        "a secret of a dropped user with itself": {"secrets": [*secrets, [dropped, dropped, first[2]]]},
        "a secret of a survivor": {"secrets": [*secrets, [users[0], users[1], first[2]]]},
        "a secret with user N": {"secrets": [*secrets, [dropped, N, first[2]]]},
        "a secret of user N": {"secrets": [*secrets, *([N, user, first[2]] for user in users)]},
        "a short secret": {"secrets": [[*first[:2], first[2][2:]], *secrets[1:]]},
        "a long secret": {"secrets": [[*first[:2], first[2] + "00"], *secrets[1:]]},
    }


def segments_of(call: Caller, chosen: Masked, user: int, arrived: Sequence[int]) -> bytes:
    """Return the masked segments of a user as the adapter packs them."""
    return octets(f"{MASK}: segments", call.result(MASK, chosen.mask_params(user, arrived)).get("segments"))


def unpacked(chosen: Masked, user: int, data: bytes) -> UintArray:
    """Return the d elements of packed segments. Fail if they are in another form."""
    try:
        return unpack_segments(cells_of(chosen.parameters, user), data)
    except ParameterError as error:
        fail(f"the segments of user {user} are not in the packed form: {error}")


def _judge_sums(call: Caller, chosen: Masked, survivors: Sequence[int], params: Mapping[str, Any]) -> None:
    judge_sums(call, UNMASK, call.result(UNMASK, params).get("sums"), chosen.sums(survivors))


def judge_sums(call: Caller, op: str, got: Any, want: Sequence[UintArray]) -> None:
    """Fail unless the sums of a result are these: one vector for each cell with survivors."""
    if not isinstance(got, list) or len(got) != len(want):
        fail(f"{op}: sums must be a list of {len(want)} vectors, one for each cell with survivors")
    for at, (text, right) in enumerate(zip(got, want, strict=True)):
        same(f"sums[{at}]", call.read(op, text, f"sums[{at}]", right.size, 2**32), right)
