"""Vectors of HeteroSAg's round: one party step by step, masked segments and their sums, and whole rounds over reals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.checks.base import BAD_PARAM, MALFORMED, NONCANONICAL, TOO_FEW
from secagg_spec.conformance.checks.heterosag_steps import BAD_NUMBERS, ELSEWHERE, IMPOSSIBLE, UNPACKED
from secagg_spec.conformance.checks.scripts import OUT_OF_RANGE
from secagg_spec.conformance.sessions.heterosag_cells import MASK, ROUND, UNMASK, Masked
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn_bytes,
    drawn_rounding,
)
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.conformance.vectors.played import Fault, altered, faulty, having, no_party, taken
from secagg_spec.conformance.vectors.secagg import SecretsScene
from secagg_spec.conformance.vectors.shamir import MERSENNE
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters, cells_of
from secagg_spec.protocols.steps import SERVER, Network

PHASES = heterosag.PHASES
_UNIT = Range(-1.0, 1.0)
_SIX = Parameters(6, 1, 1, 3, 5, (3, 3), (1, 1), (600, 60000), _UNIT)
_EIGHT = Parameters(8, 1, 1, 3, 5, (4, 4), (1, 1), (600, 60000), _UNIT)
_TWELVE = Parameters(12, 1, 1, 3, 8, (8, 4), (2, 1), (600, 700), Range(0.0, 1.0), "cyclic")
_WIDE = Parameters(6, 1, 1, 3, 3, (3, 3), (1, 1), (2, 1431655766), _UNIT)
_EVEN = Parameters(8, 1, 1, 3, 4, (4, 4), (1, 1), (3, 5), _UNIT)
_AES = {"prg.stream": "aes-ctr"}
_EVERYBODY, _SECOND = list(range(8)), [4, 5, 6, 7]


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun(
        "heterosag_scripts",
        "HeteroSAg's round: one party step by step, masked segments and their sums, whole rounds over real numbers.",
    )
    _whole(made)
    _user_requests(made)
    _server_requests(made)
    _segments(made)
    _cells(made)
    _impossible(made)
    _not_begun(made)
    _masked(made)
    _not_masked(made)
    _unmasked(made)
    _not_unmasked(made)
    _rounds(made)
    return made


# -------------------------------------------------------------------------------------------------------- one party


@dataclass(frozen=True, eq=False)
class _Scene(SecretsScene):
    """A round. `past` holds the requests that its users answered before."""

    of_user: ClassVar[str] = "heterosag.user"
    of_server: ClassVar[str] = "heterosag.server"
    phases: ClassVar[tuple[str, ...]] = PHASES
    policy: ClassVar[Mapping[str, str]] = MERSENNE

    parameters: Parameters = _SIX
    past: tuple[list[int], ...] = ()

    def opened(self) -> Network:
        network = heterosag.open_round(self.parameters, self.updates(), session=self.session, round=self.round)
        for party in (SERVER, *range(self.parameters.N)):
            past = tuple(map(frozenset, self.given(party)["past"]))
            network.states[party] = replace(network.states[party], past=past)
        return network

    def given(self, party: int) -> dict[str, Any]:
        return {"past": [users for users in self.past if party == SERVER or party in users]}

    def updates(self) -> UintArray:
        return _updates(self.id, self.parameters)


def _played(id: str, p: Parameters, drop: Mapping[str, Sequence[int]] | None = None, past: Any = ()) -> _Scene:
    return _Scene(id, members(p), drop or {}, parameters=p, past=tuple(past))


def _updates(id: str, p: Parameters) -> UintArray:
    """Draw quantised inputs. The first two elements of each are 0 and the largest possible."""
    words = np.frombuffer(drawn_bytes(id, "updates", 8 * p.N * p.d), "<u8").reshape(p.N, p.d)
    updates = np.zeros((p.N, p.d), np.uint64)
    for cell in p.parts:
        rows = sorted(cell.members)
        updates[rows, cell.start : cell.stop] = words[rows, cell.start : cell.stop] % np.uint64(cell.levels)
        if cell.start == 0:
            updates[rows, 0], updates[rows, 1] = 0, cell.levels - 1
    return updates


def _who(party: int) -> str:
    return "server" if party == SERVER else f"user-{party}"


_USER = ("HSA-11", "HSA-12", "HSA-14", "HSA-15", "HSA-22", "MSK-01", "MSK-02")
_SERVED = ("HSA-12", "HSA-19", "HSA-21")
_OF_USERS = ("Segments", "CellModulus", "Packing", "Binding")


def _whole(made: VectorFile) -> None:
    """Add the views of parties in whole rounds, without and with dropouts."""
    served: tuple[str, ...] = ("CellSums", "CellModulus")
    for party in (0, 5, SERVER):
        comment = f"a whole round of two groups as {_who(party).replace('-', ' ')} sees it; nobody drops out"
        clauses, flags = (_SERVED, served) if party == SERVER else (_USER, _OF_USERS)
        scene = _played("script-heterosag", _SIX)
        taken(made, f"{scene.id}-{_who(party)}", scene, party, clauses, flags, comment, operations=True)
    scene = _played("script-heterosag-three", _TWELVE)
    comment = "two groups, one of them with two subgroups, and the matrix cyclic"
    taken(made, f"{scene.id}-user-2", scene, 2, _USER, _OF_USERS, comment)
    for name, drop, party, flag, comment in (
        ("share-user", {"share_keys": [1]}, 0, "Segments", "user 1 does not share its secrets"),
        ("input-server", {"masked_input": [1]}, SERVER, "CellDropout", "user 1 sends no segments"),
        ("subgroup-server", {"masked_input": _SECOND}, SERVER, "LostSubgroup", "a whole subgroup sends no segments"),
        ("subgroup-user", {"masked_input": _SECOND}, 3, "LostSubgroup", "a whole subgroup sends no segments"),
    ):
        scene = _played(f"heterosag-before-{name}", _EIGHT, drop)
        decided = ("HSA-14",) if flag == "Segments" else ("HSA-19", "HSA-21")
        taken(made, scene.id, scene, party, decided, (flag,), comment)
    scene = _played("heterosag-user-second-round", _EIGHT, {"masked_input": _SECOND}, [_EVERYBODY])
    comment = "everybody survived a round before, and now a whole subgroup does not"
    taken(made, scene.id, scene, 0, ("HSA-27", "HSA-21"), ("LostSubgroup",), comment)


def _refused(made: VectorFile, scene: _Scene, party: int, at: int, call: Call, refusal: Refusal, *about: str) -> None:
    clause, flag, comment = about
    faulty(made, scene, party, Fault(at, call, refusal, (clause,), (flag,), comment))


def _user_requests(made: VectorFile) -> None:
    for name, survivors, past, clause, flag, comment in (
        ("one-left", [0, *_SECOND], [], "HSA-18", "FewAsked", "of the first subgroup the user alone survives"),
        ("two-left", [0, 1, *_SECOND], [], "HSA-18", "FewAsked", "of the first subgroup T + 1 users survive"),
        ("one-less", [0, 2, 3, *_SECOND], [_EVERYBODY], "HSA-27", "ManyRounds", "user 1 survived the round before"),
        (
            "two-rounds-ago",
            [0, 1, 2, 3, 4, 6, 7],
            [_EVERYBODY, [0, 1, 2, 3]],
            "HSA-27",
            "ManyRounds",
            "user 5 survived two rounds ago, and in the last round its whole subgroup did not",
        ),
    ):
        scene = _played(f"heterosag-user-request-{name}", _EIGHT, None, past)
        dropped = tuple(user for user in _EVERYBODY if user not in survivors)
        call = altered(scene, 0, 3, 0, having(survivors=tuple(survivors), dropped=dropped))
        _refused(made, scene, 0, 3, call, Refusal(TOO_FEW), clause, flag, comment)
    less = [0, 2, 3, *_SECOND]
    scene = _played("heterosag-user-request-one-more", _EIGHT, {"masked_input": [1]}, [less])
    call = altered(scene, 0, 3, 0, having(survivors=tuple(_EVERYBODY), dropped=()))
    comment = "user 1, who did not survive the round before, survives this one"
    _refused(made, scene, 0, 3, call, Refusal(TOO_FEW), "HSA-27", "ManyRounds", comment)


def _server_requests(made: VectorFile) -> None:
    for name, past, at, comment in (
        ("one-less", [_EVERYBODY], 1, "user 1 survived the round before, and sends no segments now"),
        (
            "two-rounds-ago",
            [_EVERYBODY, [0, 1, 2, 3]],
            5,
            "user 5 survived two rounds ago, and in the last round its whole subgroup did not",
        ),
    ):
        scene = _played(f"heterosag-server-{name}", _EIGHT, None, past)
        call = scene.calls(SERVER)[2]
        left = replace(call, inbox=(*call.inbox[:at], *call.inbox[at + 1 :]))
        _refused(made, scene, SERVER, 2, left, Refusal(TOO_FEW), "HSA-28", "ManyRounds", comment)


def _segments(made: VectorFile) -> None:
    """Add servers that get segments from user 1 that are not in the packed form."""
    changes: dict[str, tuple[Callable[[bytes], bytes], str]] = {
        "longer": (lambda data: data + b"\0", "have a byte more"),
        "shorter": (lambda data: data[:-1], "have a byte less"),
        "left-over": (lambda data: data[:-1] + bytes([data[-1] | 128]), "have a bit that is left over"),
        "large": (_all_ones, "have a first element that is not below its modulus"),
    }
    for name, (change, comment) in changes.items():
        scene = _played(f"heterosag-server-segments-{name}", _SIX)
        right = next(m for m in scene.received[SERVER, PHASES[2]] if m.sender == 1)
        assert isinstance(right, heterosag.MaskedSegments)
        call = altered(scene, SERVER, 2, 1, having(segments=change(right.segments)))
        text = f"the segments of user 1 {comment}"
        _refused(made, scene, SERVER, 2, call, Refusal(UNPACKED, (1,)), "HSA-16", "Unpacked", text)


def _cells(made: VectorFile) -> None:
    for left in (1, 2):
        scene = _played(f"heterosag-server-cell-of-{left}", _EIGHT)
        call = scene.calls(SERVER)[2]
        kept = replace(call, inbox=call.inbox[4 - left :])
        text = f"the segments of {left} users of the first subgroup"
        _refused(made, scene, SERVER, 2, kept, Refusal(TOO_FEW), "HSA-17", "FewOfACell", text)


def _impossible(made: VectorFile) -> None:
    """Add servers that get segments from user 0 that make the sum of a cell too large."""
    p = _EIGHT
    for name, segment, most in (("alone", 1, False), ("together", 0, True)):
        scene = _played(f"heterosag-server-sum-{name}", p, {"masked_input": [1]})
        calls = scene.calls(SERVER)
        message = scene.received[SERVER, PHASES[2]][0]
        assert isinstance(message, heterosag.MaskedSegments)
        own = cells_of(p, 0)
        cell = own[segment]
        survivors = tuple(sorted(cell.members - {1}))
        total = int(sum(scene.updates()[list(survivors), cell.start]))
        wanted = cell.ring.modulus - 1 if most else len(survivors) * (cell.levels - 1) + 1
        masked = heterosag.unpack_segments(own, message.segments).copy()
        masked[cell.start] = (int(masked[cell.start]) + wanted - total) % cell.ring.modulus
        calls[2] = altered(scene, SERVER, 2, 0, having(segments=heterosag.pack_segments(own, masked)))
        made.script(
            scene.id,
            scene.of_server,
            scene.params(SERVER, calls),
            {},
            refused={3: Refusal(IMPOSSIBLE, survivors)},
            clauses=["HSA-20", "ADP-21"],
            flags=["ImpossibleSum"],
            comment=f"{len(survivors)} users of {cell.levels} levels have the sum {wanted} in segment {segment}",
            policy=scene.policy,
        )


def _not_begun(made: VectorFile) -> None:
    """Add scripts that are refused as a whole."""
    scene = _played("heterosag-user-update-level", _SIX)
    update = np.append(scene.updates()[0][:-1], np.uint64(600))
    params = {**scene.params(0, []), "update": pack(update)}
    no_party(made, scene, 0, params, NONCANONICAL, "HSA-13", "InputLevels", "the update holds the K of its cell")
    scene = _played("heterosag-server-small-subgroup", _SIX)
    params = {**scene.params(SERVER, []), "sizes": [2, 4]}
    comment = "the first subgroup has T + 1 users"
    no_party(made, scene, SERVER, params, BAD_NUMBERS, "HSA-01", "SmallSubgroup", comment)


# --------------------------------------------------------------------------------------------------- masked segments


def _chosen(id: str, p: Parameters) -> Masked:
    """Draw inputs, keys and secrets."""
    keys = tuple(drawn_bytes(id, f"key of user {user}", 32) for user in range(p.N))
    seeds = tuple(drawn_bytes(id, f"self seed of user {user}", 32) for user in range(p.N))
    pairs = combinations(range(p.N), 2)
    secrets = {frozenset(pair): drawn_bytes(id, f"secret of {pair[0]} and {pair[1]}", 32) for pair in pairs}
    number = int.from_bytes(drawn_bytes(id, "round", 4), "little")
    return Masked(p, drawn_bytes(id, "session", 16), number, keys, seeds, secrets, _updates(id, p))


def _masked(made: VectorFile) -> None:
    for id, p, user, arrived, comment in (
        ("heterosag-mask", _SIX, 1, [0, 2, 3, 4, 5], "the shares of everybody arrived"),
        ("heterosag-mask-few", _EIGHT, 5, [7, 0, 4], "the shares of three users arrived, in no order"),
        ("heterosag-mask-nobody", _SIX, 4, [], "nobody's shares arrived: the self masks alone"),
        ("heterosag-mask-cyclic", _TWELVE, 9, [u for u in range(12) if u != 9], "three subgroups, matrix cyclic"),
        ("heterosag-mask-wide", _WIDE, 5, [0, 1, 2, 3, 4], "a modulus of 2**32, and one of few bits"),
    ):
        params = _chosen(id, p).mask_params(user, arrived)
        flags = _OF_USERS if id != "heterosag-mask-nobody" else ("Packing",)
        made.valid(id, MASK, params, clauses=_USER, flags=flags, comment=comment, policy=_AES)


def _not_masked(made: VectorFile) -> None:
    changes: tuple[tuple[str, Callable[[dict[str, Any]], dict[str, Any]], Collection[str], str, str, str], ...] = (
        ("level", lambda p: {"update": _last(p["update"], 600)}, NONCANONICAL, "HSA-13", "InputLevels", "a 600 is K"),
        ("secret-twice", lambda p: {"secrets": [*p["secrets"], p["secrets"][0]]}, ELSEWHERE, "ADP-38", "Given",
         "two secrets with user 0"),
        ("long-seed", lambda p: {"self_seed": p["self_seed"] + "00"}, ELSEWHERE, "ADP-38", "Given",
         "a self seed of 33 bytes"),
        ("short-key", lambda p: {"keys": [p["keys"][0][2:], *p["keys"][1:]]}, ELSEWHERE, "ADP-38", "Given",
         "a key of 31 bytes"),
    )  # fmt: skip
    for name, change, codes, clause, flag, comment in changes:
        id = f"heterosag-mask-{name}"
        params = _chosen(id, _SIX).mask_params(1, [0, 2, 3, 4, 5])
        _invalid(made, id, MASK, {**params, **change(params)}, codes, clause, flag, comment)


def _last(text: str, value: int) -> str:
    return text[:-8] + value.to_bytes(4, "little").hex()


def _invalid(
    made: VectorFile,
    id: str,
    op: str,
    params: Mapping[str, Any],
    codes: Collection[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    made.invalid(id, op, params, codes=codes, clauses=[clause], flags=[flag], comment=comment, policy=_AES)


def _opened(id: str, p: Parameters, dropped: Sequence[int]) -> dict[str, Any]:
    """Return the params of `heterosag.unmask` after a round in which the users `dropped` dropped out."""
    chosen = _chosen(id, p)
    survivors = [user for user in range(p.N) if user not in dropped]
    segments = {user: chosen.segments(user, range(p.N)) for user in survivors}
    return chosen.unmask_params(survivors, dropped, segments)


def _unmasked(made: VectorFile) -> None:
    for id, p, dropped, flags, comment in (
        ("heterosag-unmask", _SIX, [], ("CellSums", "CellModulus", "Binding"), "everybody survives"),
        ("heterosag-unmask-dropped", _EIGHT, [1, 6], ("CellDropout",), "users 1 and 6 drop out"),
        ("heterosag-unmask-subgroup", _EIGHT, [0, 1, 2, 3], ("LostSubgroup",), "a whole subgroup drops out"),
        ("heterosag-unmask-cyclic", _TWELVE, [0], ("CellSums", "CellDropout"), "three subgroups, matrix cyclic"),
        ("heterosag-unmask-wide", _WIDE, [], ("CellModulus",), "a modulus of 2**32, and one of few bits"),
    ):
        clauses = ["HSA-12", "HSA-19", "HSA-21", "HSA-22", "MSK-01", "MSK-02"]
        made.valid(id, UNMASK, _opened(id, p, dropped), clauses=clauses, flags=flags, comment=comment, policy=_AES)


def _not_unmasked(made: VectorFile) -> None:
    """Add requests that are refused. Unless the segments are wrong, user 1 has dropped out."""
    changes: tuple[tuple[str, Callable[[dict[str, Any]], dict[str, Any]], Collection[str], str, str, str], ...] = (
        ("longer", lambda p: _one(p, lambda s: s + "00"), UNPACKED, "HSA-16", "Unpacked", "a byte more"),
        ("left-over", lambda p: _one(p, _top_bit), UNPACKED, "HSA-16", "Unpacked", "a bit that is left over"),
        ("large", lambda p: _one(p, _ones), UNPACKED, "HSA-16", "Unpacked", "an element that is not below its modulus"),
        ("missing-secret", lambda p: {"secrets": [*p["secrets"][:3], *p["secrets"][4:]]}, ELSEWHERE,
         "ADP-38", "Given", "a secret is missing"),
        ("disorder", _reversed, ELSEWHERE, "ADP-38", "Given", "the survivors do not ascend"),
        ("long-seed", lambda p: {"self_seeds": [p["self_seeds"][0] + "00", *p["self_seeds"][1:]]},
         ELSEWHERE | OUT_OF_RANGE, "ADP-38", "Given", "a self seed of 33 bytes"),
    )  # fmt: skip
    for name, change, codes, clause, flag, comment in changes:
        id = f"heterosag-unmask-{name}"
        params = _opened(id, _SIX, []) if flag == "Unpacked" else _opened(id, _EIGHT, [1])
        _invalid(made, id, UNMASK, {**params, **change(params)}, codes, clause, flag, comment)
    for left in (1, 2):
        id, comment = f"heterosag-unmask-cell-of-{left}", f"{left} users of the first subgroup survive"
        params = _opened(id, _EIGHT, list(range(left, 4)))
        _invalid(made, id, UNMASK, params, TOO_FEW, "HSA-17", "FewOfACell", comment)
    id, comment = "heterosag-unmask-sum", "the segments of the first user were exchanged for zeros"
    params = _too_large(id)
    _invalid(made, id, UNMASK, params, IMPOSSIBLE, "HSA-20", "ImpossibleSum", comment)


def _one(params: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return {"segments": [change(params["segments"][0]), *params["segments"][1:]]}


def _top_bit(text: str) -> str:
    data = bytes.fromhex(text)
    return (data[:4] + bytes([data[4] | 128]) + data[5:]).hex()


def _ones(text: str) -> str:
    return _all_ones(bytes.fromhex(text)).hex()


def _all_ones(data: bytes) -> bytes:
    """Return packed segments in which the 12 bits of the first element are ones."""
    return bytes([255, data[1] | 15]) + data[2:]


def _reversed(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the survivors in descending order, with everything that belongs to each of them."""
    return {name: params[name][::-1] for name in ("survivors", "segments", "self_seeds")}


def _too_large(id: str) -> dict[str, Any]:
    """Return params in which the first element of a single subgroup's sum is too large by one."""
    p, params = _EIGHT, _opened(id, _EIGHT, [1])
    own, data = cells_of(p, 0), bytes.fromhex(params["segments"][0])
    cell = own[1]
    total = int(sum(_chosen(id, p).updates[[0, 2, 3], cell.start]))
    masked = heterosag.unpack_segments(own, data).copy()
    masked[cell.start] = (int(masked[cell.start]) + 3 * (cell.levels - 1) + 1 - total) % cell.ring.modulus
    return {**params, "segments": [heterosag.pack_segments(own, masked).hex(), *params["segments"][1:]]}


# ------------------------------------------------------------------------------------------------------ whole rounds


def _reals(id: str, p: Parameters) -> tuple[RealArray, RealArray]:
    """Draw inputs inside the range, and their draws."""
    width = p.range.high - p.range.low
    inside = p.range.low + width * (np.frombuffer(drawn_bytes(id, "x", p.N * p.d), np.uint8) / 256)
    return inside.reshape(p.N, p.d), drawn_rounding(id, p.N * p.d).reshape(p.N, p.d)


def _round(id: str, p: Parameters, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    x, rounding = _reals(id, p)
    drop: dict[str, list[int]] = {phase: [] for phase in PHASES}
    given = {"clip": False, "x": [pack_reals(row) for row in x], "method": "mean", "trim": 0, "drop": drop}
    return {**members(p), **given, **changed}, {"rounding": [pack_reals(row) for row in rounding]}


def _without(**phases: list[int]) -> dict[str, Any]:
    return {"drop": {**{phase: [] for phase in PHASES}, **phases}}


def _rounds(made: VectorFile) -> None:
    """Add rounds whose aggregate is exact: steps and numbers of survivors are powers of two."""
    for name, changed, comment in (
        ("everybody", {}, "nobody drops out"),
        ("subgroup", _without(masked_input=_SECOND), "a whole subgroup drops out"),
    ):
        id = f"heterosag-round-{name}"
        params, rand = _round(id, _EVEN, **changed)
        flags = ["LostSubgroup"] if changed else ["CellSums", "CellModulus"]
        made.valid(id, ROUND, params, rand, clauses=["HSA-12", "HSA-19", "HSA-21"], flags=flags, comment=comment)
    params, rand = _round("heterosag-round-trim", _EIGHT, trim=1)
    comment = "a mean with something to trim"
    codes = BAD_PARAM | MALFORMED
    made.invalid(
        "heterosag-round-trim", ROUND, params, rand, codes=codes, clauses=["ADP-39"], flags=["Trim"], comment=comment
    )
