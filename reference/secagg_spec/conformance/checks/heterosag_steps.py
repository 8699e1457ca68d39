"""Checks of HeteroSAg's parties: what differs from SecAgg's round, and SecAgg's own rules in this round."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.packing import bits_of, packed_bytes
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.cases import heterosag_parties, heterosag_rounds, heterosag_sessions, strategies
from secagg_spec.conformance.cases.heterosag_parties import ROLES, SERVED, USER, numbers
from secagg_spec.conformance.cases.requests import one_of, some
from secagg_spec.conformance.checks import playing, reject, secagg
from secagg_spec.conformance.checks.base import Caller, check, equal
from secagg_spec.conformance.checks.faults import Build, Refusals
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.scripts import Fault, placed
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.sessions.session import Played, moved
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Cell, Parameters, cells_of
from secagg_spec.protocols.heterosag.round import MaskedSegments
from secagg_spec.protocols.steps import SERVER, Role

BAD_NUMBERS = reject.BAD_PARAM | reject.LENGTH | reject.TOO_FEW
UNPACKED = reject.MALFORMED | reject.LENGTH | reject.NONCANONICAL
IMPOSSIBLE = reject.MALFORMED | reject.NONCANONICAL | {"bad_share"}
ELSEWHERE = reject.MALFORMED | reject.BAD_PARAM | reject.LENGTH | reject.TWICE | reject.TOO_FEW | reject.OUTSIDE
"""The codes of the table of spec/adapter.md, section 5: HSA-01 to HSA-06, HSA-16, HSA-20, ADP-38."""


def _shared(build: Build) -> Build:
    """Return a fault of SecAgg's round. A party that remembers requests may refuse the step for that reason too."""

    @wraps(build)
    def built(draw: Any, scene: Played) -> Fault:
        fault = build(draw, scene)
        looks_back = "masked_input" if scene.party == SERVER else "unmasking"
        remembers = bool(scene.inputs.setups[scene.party]["past"])
        only_if(not remembers or fault.call.phase != looks_back)
        return fault

    return built


def _refusals(party: str) -> Refusals:
    """Return what a party refuses: first what it refuses in SecAgg's round too."""

    def scene(draw: Any, caps: Capabilities, *, spare: int = 0) -> Played:
        return heterosag_parties.scene(draw, ROLES[party], spare=spare)

    made = Refusals(party, scene, playing.judge_script, (party,), playing.explicit(party), optional=("spare",))
    made.inherit(secagg.BY_ROLE[ROLES[party]], _shared, spare=1, examples=6)
    return made


_user, _server = map(_refusals, ROLES)


def _asked(scene: Played, survivors: Sequence[int]) -> Any:
    """Return a user's last step with other survivors. All other users whose shares it holds are dropped."""
    [message] = scene.inbox(3)
    dropped = sorted({*message.survivors, *message.dropped} - set(survivors))
    changed = replace(message, survivors=tuple(sorted(survivors)), dropped=tuple(dropped))
    return Call.of("unmasking", (changed,))


def _enough(p: Parameters, survivors: Sequence[int]) -> bool:
    return len(survivors) >= p.enough


def _thinned(draw: Any, p: Parameters, survivors: Sequence[int], keep: int = SERVER) -> list[int]:
    """Leave a drawn subgroup 1 to T + 1 survivors, including `keep` if it is a member."""
    found = [set(users) & set(survivors) for users in p.members]
    drawn = sorted(draw(among([sorted(users) for users in found if users])))
    first = [user for user in drawn if user == keep]
    others = [user for user in strategies.shuffled(draw, drawn) if user != keep]
    kept = [*first, *others][: draw(among((p.T + 1, 1, *range(1, p.T + 1))))]
    left = sorted((set(survivors) - set(drawn)) | set(kept))
    only_if(_enough(p, left))
    return left


@_user.refuses("few-of-a-cell", "HSA-18")
def _few_of_a_cell(draw: Any, scene: Played) -> Fault:
    """A request is refused if it leaves one to T + 1 survivors in a cell, however many survive in total."""
    [message] = scene.inbox(3)
    left = _thinned(draw, numbers(scene), message.survivors, scene.party)
    return Fault(3, _asked(scene, left), reject.TOO_FEW, f"of the survivors {left} a cell has too few")


def _one_less(draw: Any, scene: Played, survivors: Sequence[int]) -> list[int]:
    """Remove one survivor so that the rest and earlier requests isolate a few users."""
    p, past = numbers(scene), scene.inputs.setups[scene.party]["past"]
    spared = [users for users in (set(m) & set(survivors) for m in p.members) if len(users) > p.T + 2]
    candidates = [sorted(set(survivors) - {user}) for users in spared for user in sorted(users) if user != scene.party]
    wrong = [left for left in candidates if _enough(p, left) and not heterosag_rounds.allowed(p, past, left)]
    hidden = [left for left in wrong if heterosag_rounds.allowed(p, past[-1:], left)]
    only_if(wrong)
    return one_of(draw, hidden or wrong)


@_user.refuses("another-round", "HSA-27", spare=1)
def _another_round(draw: Any, scene: Played) -> Fault:
    """A request is refused if it and an earlier request isolate fewer than T + 2 users of a cell."""
    left = _one_less(draw, scene, scene.inbox(3)[0].survivors)
    past = scene.inputs.setups[scene.party]["past"]
    return Fault(3, _asked(scene, left), reject.TOO_FEW, f"{left} survive, and {past} survived before")


def _segments(draw: Any, scene: Played) -> tuple[int, MaskedSegments]:
    """Draw masked segments that arrive. Return their place and the message."""
    return placed(draw, scene.inbox(2))


@_server.refuses("packed-form", "HSA-16", "HSA-15", "ADP-21")
def _packed_form(draw: Any, scene: Played) -> Fault:
    """Segments are refused if their length is wrong, a number is not below its modulus, or a leftover bit is set."""
    place, message = _segments(draw, scene)
    forms = broken_segments(draw, cells_of(numbers(scene), message.sender), message.segments)
    name = draw(among(sorted(forms)))
    wrong = moved(scene.calls()[2], place, replace(message, segments=forms[name]))
    return Fault(2, wrong, UNPACKED, f"the masked segments have {name}", frozenset({message.sender}))


def broken_segments(draw: Any, cells: Sequence[Cell], data: bytes) -> dict[str, bytes]:
    """Draw bytes that are not in the packed form, by what is wrong with them."""
    found = {"a byte less": data[:-1], "a byte more": data + b"\0", "no byte": b""}
    starts = np.cumsum([0, *(packed_bytes(cell.length, cell.ring.modulus) for cell in cells)]).tolist()
    for cell, start, stop in zip(cells, starts[:-1], starts[1:], strict=True):
        R, at = cell.ring.modulus, draw(st.integers(0, cell.length - 1))
        width = bits_of(R)
        if 1 << width != R:
            ones = ((1 << width) - 1) << (at * width)
            found[f"all bits of an element of segment {cell.segment}"] = _with_bits(data, start, stop, ones)
        if width * cell.length % 8:
            bit = 1 << (8 * (stop - start) - 1)
            found[f"the last bit of segment {cell.segment}"] = _with_bits(data, start, stop, bit)
    return found


def _with_bits(data: bytes, start: int, stop: int, bits: int) -> bytes:
    value = int.from_bytes(data[start:stop], "little") | bits
    return data[:start] + value.to_bytes(stop - start, "little") + data[stop:]


@_server.refuses("few-of-a-cell", "HSA-17")
def _few_sent(draw: Any, scene: Played) -> Fault:
    """The server sends no request if inputs came from one to T + 1 users of a cell, however many came in total."""
    inbox = scene.inbox(2)
    left = _thinned(draw, numbers(scene), [message.sender for message in inbox])
    kept = Call.of("masked_input", [message for message in inbox if message.sender in left])
    return Fault(2, kept, reject.TOO_FEW, f"of the users {left} a cell has too few")


@_server.refuses("another-round", "HSA-28", spare=1)
def _sent_in_another_round(draw: Any, scene: Played) -> Fault:
    """The server sends no request if the users with inputs and an earlier request isolate a few users of a cell."""
    inbox = scene.inbox(2)
    left = _one_less(draw, scene, [message.sender for message in inbox])
    kept = Call.of("masked_input", [message for message in inbox if message.sender in left])
    past = scene.inputs.setups[scene.party]["past"]
    return Fault(2, kept, reject.TOO_FEW, f"{left} survive, and {past} survived before")


@check(f"{SERVED}/impossible-sum", "HSA-20", "ADP-21", examples=40)
def impossible_sum(draw: Any, caller: Caller) -> None:
    """A sum that is impossible for the number of users is refused, and the survivors of the cell are blamed."""
    scene = heterosag_parties.scene(draw, Role.SERVER, spare=1)
    p, inbox = numbers(scene), scene.inbox(2)
    survivors = {message.sender for message in inbox}
    cells = [cell for cell in p.parts if 0 < len(cell.members & survivors) < len(cell.members)]
    only_if(cells)
    cell = one_of(draw, cells)
    present = sorted(cell.members & survivors)
    place = draw(among([at for at, message in enumerate(inbox) if message.sender in present]))
    calls = scene.calls()
    calls[2] = moved(calls[2], place, _beyond(draw, scene, cell, inbox[place]))
    why = f"{len(present)} users cannot have the sum of segment {cell.segment}"
    playing.judge_script(caller, scene, Fault(3, calls[3], IMPOSSIBLE, why, frozenset(present)), calls=calls[:3])


def _beyond(draw: Any, scene: Played, cell: Cell, message: MaskedSegments) -> MaskedSegments:
    """Return masked segments that put one element of a cell's sum above |U|(K - 1)."""
    own, at = cells_of(numbers(scene), message.sender), draw(st.integers(0, cell.length - 1))
    masked = heterosag.unpack_segments(own, message.segments).copy()
    right = next(found for found in scene.network.states[SERVER].sums if found.cell == cell)
    most, R = len(right.survivors) * (cell.levels - 1), cell.ring.modulus
    wanted = draw(among((most + 1, R - 1)))
    place = cell.start + at
    masked[place] = (int(masked[place]) + wanted - int(right.total[at])) % R
    return replace(message, segments=heterosag.pack_segments(own, masked))


def _openings(party: str) -> None:
    @check(f"{party}/parameters", *(f"HSA-0{n}" for n in range(1, 6)), examples=40)
    def parameters(draw: Any, caller: Caller) -> None:
        """In a script, parameters that the text forbids are refused."""
        params, rand = heterosag_parties.begun(draw, party)
        wrong = heterosag_sessions.wrong_numbers(read_parameters(**_own(params)))
        for name in some(draw, wrong):
            sampled = _rand(caller, party, rand)
            caller.refused(party, {**params, **wrong[name]}, BAD_NUMBERS, f"there is {name}", sampled)

    @check(f"{NEW}/{party}-parameters", *(f"HSA-0{n}" for n in range(1, 6)), operations=SESSIONS,
           applies=playing.plays(party), examples=30)  # fmt: skip
    def session(draw: Any, caller: Caller) -> None:
        """In a session, parameters that the text forbids are refused."""
        inputs, seat = heterosag_rounds.inputs(draw), 0 if party == USER else SERVER
        wrong = heterosag_sessions.wrong_numbers(read_parameters(**inputs.numbers))
        for name in some(draw, wrong):
            params = {"handle": "h", **inputs.opening(seat), "numbers": {**inputs.numbers, **wrong[name]}}
            caller.refused(NEW, params, BAD_NUMBERS, f"there is {name}", inputs.rand(seat))


def _own(params: Mapping[str, Any]) -> dict[str, Any]:
    names = ("N", "D", "T", "t", "d", "sizes", "subgroups", "levels", "range", "matrix")
    return {name: params[name] for name in names}


def _rand(caller: Caller, party: str, rand: dict[str, Any]) -> dict[str, Any] | None:
    return caller.randomness(party, rand) if rand else None


@check(f"{USER}/update", "HSA-13", examples=24)
def update(draw: Any, caller: Caller) -> None:
    """An input with the wrong length or a number not below its cell's K is refused."""
    params, rand = heterosag_parties.begun(draw, USER)
    changed, codes, why = broken_update(draw, params)
    caller.refused(USER, {**params, "update": changed}, codes, why, _rand(caller, USER, rand))


def broken_update(draw: Any, params: Mapping[str, Any]) -> tuple[str, frozenset[str], str]:
    """Draw a forbidden input. Return the input, the codes that fit, and why it is forbidden."""
    p = read_parameters(**_own(params))
    right = unpack(params["update"]).astype(np.uint64)
    if draw(st.integers(0, 3)) == 0:
        wrong = one_of(draw, (right[:-1], np.append(right, np.uint64(0)), np.tile(right, 2)))
        return pack(wrong), reject.LENGTH, f"the update has {wrong.size} elements, and d is {p.d}"
    cell = one_of(draw, cells_of(p, params["user"]))
    at = cell.start + draw(st.integers(0, cell.length - 1))
    large = right.copy()
    large[at] = draw(among((cell.levels, cell.ring.modulus - 1, 2**32 - 1)))
    return pack(large), reject.NONCANONICAL, f"update[{at}] is {large[at]}, and K is {cell.levels}"


@check(f"{USER}/past", "ADP-38", examples=24)
def past(draw: Any, caller: Caller) -> None:
    """Earlier requests are refused if they lack the user, are unordered, or have too few users of a cell."""
    params, rand = heterosag_parties.begun(draw, USER)
    p = read_parameters(**_own(params))
    everybody, user = list(range(p.N)), params["user"]
    [own] = [users for users in p.members if user in users]
    wrong: dict[str, list[int]] = {
        "nobody": [],
        "everybody but the user": [other for other in everybody if other != user],
        "a user twice": [*everybody, everybody[-1]],
        "user N": [*everybody, p.N],
        "disorder": [*everybody[1:], 0],
        "T + 1 users of a cell": sorted({*everybody} - {*own} | {user, *own[: p.T]}),
    }
    name = draw(among(sorted(wrong)))
    changed = {**params, "past": [*params["past"], wrong[name]]}
    caller.refused(USER, changed, ELSEWHERE, f"an earlier request names {name}", _rand(caller, USER, rand))


for _party in ROLES:
    _openings(_party)
_COUNTS = (20, 24, 12)
playing.right_steps(_user, _COUNTS, "HSA-11", "HSA-12", "HSA-14", "HSA-15", "HSA-22", "HSA-27", "SAG-10", "SAG-24")
playing.right_steps(_server, _COUNTS, "HSA-16", "HSA-19", "HSA-21", "SAG-05", "SAG-11", "SAG-17")


@check("message.encode/masked-segments", "MSG-01", operations=("message.encode", "message.decode", SERVED), examples=12)
def message(draw: Any, caller: Caller) -> None:
    """Masked segments are encoded as the fields of their message type, and decoded back."""
    scene = heterosag_parties.scene(draw, Role.SERVER)
    _, sent = _segments(draw, scene)
    head = {"session": sent.session.hex(), "round": str(sent.round), "sender": sent.sender, "receiver": "server"}
    fields = {"neighbours": list(sent.neighbours), "segments": sent.segments.hex()}
    written = {"type": MaskedSegments.TYPE, "bytes": encode(sent).hex()}
    encoded = caller.result("message.encode", {"type": MaskedSegments.TYPE, **head, "fields": fields}).get("bytes")
    equal("the bytes are", encoded, written["bytes"])
    equal("the message is", dict(caller.result("message.decode", written)), {**head, "fields": fields})
