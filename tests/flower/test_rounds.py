"""Rounds carried by an engine give the reference's sum, or end as the text says, for all who drop out or misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from math import ceil, prod
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.errors import DuplicateUser, LengthMismatch, Malformed, OutOfRange, ParameterError
from secagg_spec.flower import server, weights
from secagg_spec.flower.plan import Packet
from tests.flower.parties import MOST, SETTINGS, SHAPES, Change, Engine, Node, expected
from tests.quick import part

NAMES = st.sampled_from(sorted(SETTINGS))


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    """Engines in which each node may be lost from a phase on."""
    engine = Engine(draw(NAMES), draw(st.integers(5, 8)), seed=draw(st.integers(0, 2**16)))
    nobody: dict[str, list[int]] = {phase: [] for phase in engine.phases}
    for at in draw(st.lists(st.integers(0, engine.N - 1), max_size=4, unique=True)):
        nobody[draw(st.sampled_from(engine.phases))].append(at)
    engine.lost = nobody
    return engine


class Stream:
    """A source that gives the same bytes, however many are taken at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = BytesIO(data)

    def take(self, count: int) -> bytes:
        """Take the next bytes."""
        return self.data.read(count)


def check(engine: Engine, result: server.Result | None, dropouts: dict[str, list[int]]) -> None:
    """The result is that of the reference for the inputs that were trained, and the mean is that of the arrays."""
    begun = engine.begun
    if begun is None:
        assert result is None
        N, sampled = len(engine.nodes) - len(dropouts["join"]), len(engine.nodes)
        numbers = engine.settings.numbers(N, sampled, 2)
        assert max(numbers.get("t", 0), numbers.get("U", 0), numbers["T"] + 2) > N
        return
    plan, places = begun
    reference = expected(engine, dropouts)
    assert (result is None) == (reference is None)
    if result is None or reference is None:
        assert "TooFewSurvivors" in engine.lines[-1]
        return
    nodes = [engine.nodes[number] for number in result.contributors]
    assert result.contributors == tuple(places[user] for user in reference.contributors)
    assert result.total.tolist() == reference.aggregate.tolist()
    total = np.sum([node.inputs[-1].astype(object) for node in nodes], axis=0) % plan.ring.modulus
    assert result.total.tolist() == total.tolist()
    assert result.weight == sum(node.weight for node in nodes)
    bound = len(nodes) * plan.most / (plan.level * result.weight)
    for at, mean in enumerate(result.arrays):
        exact = sum(node.weight * node.arrays[at].astype(np.float64) for node in nodes) / result.weight
        assert mean.shape == exact.shape
        assert np.all(np.abs(mean - exact) <= bound + 1e-12)


@pytest.mark.requirement("FLW-10", "FLW-13", "FLW-16")
@given(engines())
def test_a_round_gives_what_the_reference_gives(engine: Engine) -> None:
    check(engine, engine.run(), {phase: list(lost) for phase, lost in engine.lost.items()})
    assert not [node.refused for node in engine.nodes.values() if node.refused]


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_next_round_is_a_session_of_its_own(name: str) -> None:
    engine = Engine(name, 6, {"join": [], engine_phase(name): [5]})
    first = engine.run(1)
    engine.dead.clear()
    engine.lost = {}
    second = engine.run(2)
    assert first is not None
    assert second is not None
    assert len(second.contributors) == 6
    assert first.plan.session != second.plan.session


def engine_phase(name: str) -> str:
    """The phase of a protocol in which the model is masked."""
    return "upload" if name.startswith("light") else "masked_input"


def changed(**entries: Any) -> Change:
    """Set entries of a packet."""
    return lambda packet: {**packet, **entries}


def in_messages(change: Callable[[list[bytes]], Any]) -> Change:
    """Change the messages of a packet, if it has any."""
    return lambda packet: {**packet, "messages": change(list(packet.get("messages", [bytes(40)])))}


FAULTS: dict[str, Change] = {
    "lost": lambda packet: None,
    "another version": changed(version=1),
    "no version": lambda packet: {name: value for name, value in packet.items() if name != "version"},
    "another phase": changed(phase="elsewhere"),
    "refused": changed(refused="out_of_range"),
    "cut": in_messages(lambda sent: [*sent[:-1], sent[-1][:-1]]),
    "longer": in_messages(lambda sent: [*sent[:-1], sent[-1] + b"\x00"]),
    "empty": in_messages(lambda sent: [b"", *sent]),
    "text": in_messages(lambda sent: ["text"]),
    "no list": in_messages(lambda sent: 7),
    "another type": in_messages(lambda sent: [b"\xff\xff" + sent[0][2:]]),
    "twice": in_messages(lambda sent: sent + sent),
    "another session": in_messages(lambda sent: [each[:2] + bytes(16) + each[18:] for each in sent]),
    "another round": in_messages(lambda sent: [each[:18] + b"\xff\xff\xff\xff" + each[22:] for each in sent]),
    "another name": in_messages(lambda sent: [each[:22] + bytes([each[22] ^ 1]) + each[23:] for each in sent]),
}

OF_MESSAGES = [*FAULTS][[*FAULTS].index("cut") :]
EVERYWHERE = ("lost", "cut", "twice", "another name")
"""The faults that are tried in each phase; the others are in one."""


@pytest.mark.requirement("FLW-03", "FLW-13", "FLW-14", "FLW-15", "MSG-03", "MSG-04")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", part(3, sorted(SETTINGS)))
def test_a_bad_reply_is_a_user_that_dropped_out(name: str, fault: str) -> None:
    for phase in Engine(name, 6).phases if fault in EVERYWHERE else (engine_phase(name),):
        if phase == "join" and fault in OF_MESSAGES:
            continue
        engine = Engine(name, 6, replied={(phase, 3): FAULTS[fault]})
        result = engine.run()
        assert result is not None
        check(engine, result, {phase: [3]})
        assert next(line for line in engine.lines if "node 121" in line).startswith(f"{phase}: 1 of 6 dropped out")
        assert len(engine.lines) <= len(engine.phases)


@pytest.mark.requirement("FLW-14")
def test_a_reply_in_the_name_of_another_user_harms_the_sender_alone() -> None:
    engine = Engine("secagg", 6, replied={("masked_input", 3): FAULTS["another name"]})
    check(engine, engine.run(), {"masked_input": [3]})
    assert engine.lines == ["masked_input: 1 of 6 dropped out: node 121 (a message in another user's name)"]


@pytest.mark.requirement("FLW-15")
def test_a_right_sender_keeps_its_place_beside_many_bad_ones() -> None:
    bad = {("masked_input", at): FAULTS[fault] for at, fault in enumerate(("cut", "another session", "twice"))}
    engine = Engine("secagg", 6, replied=bad)
    check(engine, engine.run(), {"masked_input": [0, 1, 2]})
    assert engine.lines == [
        line for line in engine.lines if line.startswith("masked_input: 3 of 6 dropped out: node 100")
    ]


def flipped(packet: Packet) -> Packet:
    """Change the last byte of a share."""
    *others, last = packet["messages"]
    return {**packet, "messages": [*others, last[:-1] + bytes([last[-1] ^ 1])]}


@pytest.mark.requirement("FLW-15", "FLW-16", "LSA-15")
def test_a_wrong_share_ends_the_round_where_nobody_sees_whose_it_is() -> None:
    engine = Engine("lightsecagg", 6, replied={("recover", 2): flipped})
    assert engine.run() is None
    assert engine.lines == [line for line in engine.lines if line.startswith("round 1 ends without a sum: BadShare")]


@pytest.mark.requirement("FLW-12")
@given(NAMES, st.sampled_from((0, 2**31 - 1)))
def test_a_sum_of_weights_that_none_is_gives_no_mean(name: str, weight: int) -> None:
    engine = Engine(name, 6)
    for node in engine.nodes.values():
        node.weight = 1
    first = next(iter(engine.nodes.values()))
    honest = first.produce

    def produce(plan: Any) -> Any:
        update = honest(plan).copy()
        update[-1] = weight if weight else plan.ring.modulus - 1
        return update

    first.produce = produce  # type: ignore[method-assign]
    assert engine.run() is None
    assert "the sum of 6 weights in [1, 50]" in engine.lines[-1]


BAD: dict[str, Callable[[Node], object]] = {
    "nan": lambda node: node.arrays[0].__setitem__((1, 2), np.nan),
    "infinite": lambda node: node.arrays[2].__setitem__(0, -np.inf),
    "too large": lambda node: node.arrays[2].__setitem__(1, np.float32(1.23e9)),
    "a little too large": lambda node: node.arrays[2].__setitem__(1, np.nextafter(np.float32(-8), np.float32(-9))),
    "one array more": lambda node: node.arrays.append(node.arrays[0]),
    "another shape": lambda node: node.arrays.__setitem__(0, node.arrays[0].T),
    "complex": lambda node: node.arrays.__setitem__(2, node.arrays[2].astype(np.complex64)),
    "a masked array": lambda node: node.arrays.__setitem__(0, np.ma.masked_array(node.arrays[0], True)),
    "numbers of 16 bytes": lambda node: node.arrays.__setitem__(0, node.arrays[0].astype(np.longdouble)),
    "a list": lambda node: node.arrays.__setitem__(0, node.arrays[0].tolist()),
    "no arrays at all": lambda node: setattr(node, "arrays", None),
    "no examples": lambda node: setattr(node, "weight", 0),
    "too many examples": lambda node: setattr(node, "weight", MOST + 1),
    "half an example": lambda node: setattr(node, "weight", 0.5),
}


@pytest.mark.requirement("FLW-08", "FLW-11", "QNT-01", "QNT-04")
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_client_refuses_an_input_that_it_cannot_send(name: str, bad: str) -> None:
    engine = Engine(name, 6)
    node = engine.nodes[107]
    BAD[bad](node)
    replies: list[Packet] = []

    def keep(packet: Packet) -> Packet:
        replies.append(packet)
        return packet

    engine.replied = {(engine_phase(name), 1): keep}
    result = engine.run()
    assert result is not None
    assert 107 not in result.contributors
    assert len(node.refused) == 1
    assert isinstance(node.refused[0], ParameterError)
    assert set(replies[0]) == {"version", "refused"}
    assert replies[0]["refused"] in ("out_of_range", "length_mismatch", "bad_param")


@pytest.mark.requirement("FLW-11")
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_number_of_the_largest_magnitude_is_not_refused(name: str) -> None:
    engine = Engine(name, 6)
    for node in engine.nodes.values():
        node.arrays[2][1], node.arrays[2][2] = 8.0, -8.0
    result = engine.run()
    assert result is not None
    assert len(result.contributors) == 6


@pytest.mark.requirement("FLW-28", "QNT-04")
@pytest.mark.parametrize("largest", [(8, 1), (1, 3), (2**27, 1)])
def test_a_plan_at_whose_level_its_largest_number_could_wrap_is_none(largest: tuple[int, int]) -> None:
    engine = Engine("secagg", 6)
    engine.run()
    assert engine.begun is not None
    plan, room = engine.begun[0], (2**32 - 1) // 2 // 6
    fits = room * largest[1] // largest[0]
    plan = replace(plan, level=fits, largest=largest)
    arrays = [np.full(shape, largest[0] / largest[1]) for shape in SHAPES]
    numbers = weights.encode(plan, arrays, MOST, SystemSource())[:-1]
    assert all(int(number) <= room for number in numbers)
    with pytest.raises(ParameterError, match=f"level = {fits + 1}: must be at most {fits}, so that no number"):
        replace(plan, level=fits + 1)


@pytest.mark.parametrize(
    "change",
    [{"order": (0, 1, 2, 3, 4, 5)}, {"numbers": {1: 2}}, {"shapes": ((2**32,),)}, {"shapes": ((1,) * 65,)}],
)
def test_a_plan_holds_what_its_page_says(change: dict[str, Any]) -> None:
    engine = Engine("lightsecagg", 6)
    engine.run()
    assert engine.begun is not None
    with pytest.raises(ParameterError, match=r"order|name|shapes"):
        replace(engine.begun[0], **change)


@pytest.mark.parametrize("order", [(0, 0, 0, 0, 0, 0), (0, 1, 2, 3, 4, -1), (0, 1, 2, 3, 4, 0.5)])
def test_an_order_names_each_user_once(order: Any) -> None:
    engine = Engine("secagg", 6)
    engine.run()
    assert engine.begun is not None
    with pytest.raises(ParameterError, match=r"^order = "):
        replace(engine.begun[0], order=order)


@pytest.mark.requirement("FLW-28")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
def test_a_level_that_does_not_fit_ends_the_round_and_leaves_nobody_out(name: str) -> None:
    engine = Engine(name, 6)
    settings = replace(SETTINGS[name], level=2**28)
    assert server.run(settings, list(engine.nodes), [np.zeros(3)], 1, engine.exchange, engine.lines.append) is None
    [line] = engine.lines
    assert "level = 268435456: must be at most" in line
    assert not any("plan" in packet for _, _, packet in engine.packets)


@pytest.mark.parametrize("change", [lambda x: x[:-1], lambda x: [], lambda x: x.astype(float), lambda x: x + 2**32])
def test_a_sum_that_is_none_is_refused(change: Callable[[Any], Any]) -> None:
    engine = Engine("secagg", 6)
    result = engine.run()
    assert result is not None
    weights.decode(result.plan, result.total, 6)
    with pytest.raises(ParameterError, match="total"):
        weights.decode(result.plan, change(result.total), 6)


@pytest.mark.requirement("FLW-10", "FLW-11", "FLW-12")
@given(NAMES, st.integers(1, 30), st.one_of(st.none(), st.tuples(st.integers(0, 13), st.sampled_from([np.nan, 9.5]))))
def test_a_model_in_parts_gives_the_input_and_the_mean_of_the_whole(name: str, size: int, bad: Any) -> None:
    engine = Engine(name, 6)
    engine.run()
    assert engine.begun is not None
    plan = engine.begun[0]
    flat = np.random.default_rng(size).normal(size=sum(map(prod, plan.shapes)))
    if bad is not None:
        flat[bad[0] % flat.size] = bad[1]
    ends = np.cumsum([prod(shape) for shape in plan.shapes])[:-1]
    arrays = [part.reshape(shape) for part, shape in zip(np.split(flat, ends), plan.shapes, strict=True)]

    def said() -> Any:
        try:
            elements = weights.encode(plan, arrays, 3, Stream(bytes(range(256))))
        except OutOfRange as error:
            return str(error)
        mean, weight = weights.decode(plan, elements, 1)
        return elements.tolist(), weight, [array.tolist() for array in mean]

    whole = said()
    with patch.object(weights, "_PART", size):
        assert said() == whole


@pytest.mark.requirement("FLW-10")
def test_a_model_keeps_its_types() -> None:
    engine = Engine("secagg", 6)
    for node in engine.nodes.values():
        node.arrays = [np.full((2, 3), 7, dtype=np.int64), np.float64(0.5) * np.ones(()), np.zeros(4, np.float16)]
    result = engine.run()
    assert result is not None
    given = next(iter(engine.nodes.values())).arrays
    like = weights.like(result.arrays, [array.dtype for array in given])
    assert [array.dtype for array in like] == [array.dtype for array in given]
    assert like[0].tolist() == given[0].tolist()
    with pytest.raises(LengthMismatch, match=r"^len\(types\) = 0: must be 3, one for each array$"):
        weights.like(result.arrays, [])


@pytest.mark.parametrize("wrong", [np.dtype(bool), np.dtype(complex), np.dtype(object), "f4", None, np.float32])
def test_types_and_arrays_of_no_real_numbers_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^types\[0\] = .*: must be "):
        weights.like([np.ones(2)], [wrong])
    arrays: Any
    for arrays in ([[1.0]], [np.array([1j])], [np.array([True])], [np.ma.masked_array([1.0])], None):
        with pytest.raises(ParameterError, match=r"^(the type of )?arrays"):
            weights.like(arrays, [np.dtype(np.float32)])


@pytest.mark.parametrize(
    ("number", "kind", "fits"),
    [
        (-3.0, "u1", False),
        (255.4, "u1", True),
        (255.6, "u1", False),
        (2.0**63, "i8", False),
        (-(2.0**63), "i8", True),
        (7e4, "f2", False),
        (6e4, "f2", True),
        (1e300, "f4", False),
        (2.5, ">f4", True),
    ],
)
def test_a_number_that_does_not_fit_its_type_is_refused(number: float, kind: str, fits: bool) -> None:
    arrays, types = [np.zeros(2), np.array([0.0, number])], [np.dtype("f8"), np.dtype(kind)]
    if fits:
        assert weights.like(arrays, types)[1][1] == pytest.approx(round(number) if "f" not in kind else number, 1e-3)
    else:
        with pytest.raises(OutOfRange, match=r"a number of arrays\[1\] = .*: must be one of type"):
            weights.like(arrays, types)


def test_large_integers_fit_another_type_of_integers_exactly() -> None:
    given = np.array([2**63 - 1, 0], dtype=np.int64)
    [found] = weights.like([given], [np.dtype(np.uint64)])
    assert found.dtype == np.uint64
    assert found.tolist() == [2**63 - 1, 0]


@pytest.mark.parametrize("kind", ["m8[s]", "M8[s]", "?", "c16", "O", "V4"])
def test_arrays_of_other_than_real_numbers_are_refused_by_both_sides(kind: str) -> None:
    arrays = [np.zeros(2), np.zeros(3, dtype=kind)]
    with pytest.raises(ParameterError, match=r"the type of arrays\[1\] = .*: must be one of real numbers"):
        weights.shapes_of(arrays)


@pytest.mark.parametrize("N", [0, -1, 5.0, 2**31, True])
def test_a_level_for_no_number_of_users_is_refused_by_name(N: Any) -> None:
    with pytest.raises(ParameterError, match=r"^N = .*: must be an integer in \[1, 2147483647\]"):
        weights.level_for(2**32, N, 1.0)
    assert weights.level_for(2**32, 2**31 - 1, 1.0) == 1


@given(st.integers(3, 1000), st.floats(1e-6, 1e5), st.sampled_from((2**32, 2**32 - 5)))
def test_the_level_is_the_largest_power_of_two_that_fits(N: int, largest: float, modulus: int) -> None:
    level, bound = weights.level_for(modulus, N, largest), (modulus - 1) // 2 // N
    assert ceil(Fraction(largest) * level) <= bound
    assert level == 2**32 or ceil(Fraction(largest) * 2 * level) > bound


@pytest.mark.parametrize("largest", [0, -1.0, float("nan"), float("inf"), np.float32("inf"), 2**31])
def test_a_magnitude_that_does_not_fit_is_refused(largest: Any) -> None:
    with pytest.raises(ParameterError, match=r"largest = .*: must be above 0 and at most 214748364 with 10 users"):
        weights.level_for(2**32, 10, largest)


@pytest.mark.parametrize("largest", ["8", True, None, Fraction(1, 3), [1.0]])
def test_a_magnitude_is_a_number(largest: Any) -> None:
    assert weights.level_for(2**32, 10, np.float32(1.5)) == weights.level_for(2**32, 10, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"largest = .*: must be a number"):
        weights.level_for(2**32, 10, largest)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (("secagg", 0), "threshold"),
        (("secagg", 1.5), "threshold"),
        (("secagg", True), "threshold"),
        (("secagg", 1), "threshold"),
        (("secagg", None), "threshold"),
        (("secagg", 3, -2), "holders"),
        (("secagg", 3, 2), "holders"),
        (("secagg", 3, 1), "holders"),
        (("secagg", 3, 5, None, 0), "most"),
        (("secagg", 3, 5, None, 10, 0), "largest"),
        (("secagg", 3, 5, None, 10, float("nan")), "largest"),
        (("sum", 3), "protocol"),
    ],
)
def test_settings_that_are_none_are_refused(settings: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        server.Settings(*settings)


def test_a_node_is_asked_once() -> None:
    engine = Engine("secagg", 6)
    nodes = [*engine.nodes, next(iter(engine.nodes))]
    with pytest.raises(DuplicateUser, match="nodes"):
        server.run(SETTINGS["secagg"], nodes, [np.zeros(3)], 1, engine.exchange, engine.lines.append)
    assert engine.packets == []


@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
@pytest.mark.parametrize("phase", [0, 1])
@pytest.mark.parametrize("twice", [True, False])
def test_a_reply_that_nobody_waits_for_ends_the_round_with_a_line(name: str, phase: int, twice: bool) -> None:
    engine = Engine(name, 6)
    carry, recorded = engine.exchange, list[Any]()

    def exchange(at: str, packets: dict[int, Packet]) -> Iterator[tuple[int, Any]]:
        for number, reply in carry(at, packets):
            yield number, reply
            if at == engine.phases[phase]:
                yield number if twice else 1, reply

    engine.exchange = exchange  # type: ignore[method-assign, assignment]
    assert engine.run(record=recorded.append) is None
    assert recorded == [()]
    node = min(engine.nodes) if twice else 1
    [line] = engine.lines
    assert f"node = {node}: must be one that was asked in '{engine.phases[phase]}'" in line


@pytest.mark.requirement("FLW-17", "FLW-18")
@pytest.mark.parametrize("error", [OSError("full"), Malformed("full"), ParameterError("log", "full", "written")])
def test_an_error_of_the_record_goes_through(error: Exception) -> None:
    engine, lines = Engine("secagg", 6), list[Any]()

    def record(nodes: Any) -> None:
        lines.append(nodes)
        raise error

    with pytest.raises(type(error), match="full"):
        engine.run(record=record)
    assert len(lines) == 1
    assert engine.packets[-1][0] == "masked_input"


@pytest.mark.parametrize("session", [None, bytes(16), 5, "x", []])
def test_a_reply_of_another_session_does_not_count(session: Any) -> None:
    def change(packet: Packet) -> Packet:
        return {**{name: value for name, value in packet.items() if name != "session"}, "session": session}

    engine = Engine("lightsecagg", 6, replied={("recover", 2): change})
    assert engine.run() is not None
    assert engine.lines == ["recover: 1 of 6 dropped out: node 114 (a reply of another session)"]


@pytest.mark.requirement("FLW-03")
@pytest.mark.parametrize("reply", [5, "packet", [], b"packet"])
def test_a_reply_that_is_no_packet_does_not_count(reply: Any) -> None:
    engine = Engine("secagg", 6, replied={("share_keys", 2): lambda packet: reply})
    result = engine.run()
    assert result is not None
    assert len(result.contributors) == 5


@pytest.mark.requirement("FLW-03")
@pytest.mark.parametrize("version", [2.0, True, "2", None])
def test_a_reply_of_another_version_does_not_count(version: Any) -> None:
    engine = Engine("secagg", 6, replied={("share_keys", 2): lambda packet: {**packet, "version": version}})
    result = engine.run()
    assert result is not None
    assert len(result.contributors) == 5
    assert engine.lines[0].startswith("share_keys: 1 of 6 dropped out")


def test_settings_count_with_integers_of_python() -> None:
    settings = server.Settings("secagg", np.int64(3), np.uint8(5), np.int8(1), np.uint32(100))  # type: ignore[arg-type]
    assert [type(value) for value in (settings.threshold, settings.holders, settings.colluding, settings.most)] == [
        int
    ] * 4
    assert settings.numbers(200, 200, 4) == server.Settings("secagg", 3, 5, 1, 100).numbers(200, 200, 4)


@pytest.mark.requirement("FLW-08")
@pytest.mark.parametrize("code", ["\x1b[31m", "a\nline", "x" * 10**6, 5, None, [], "wrong_phase"])
def test_a_reply_that_refuses_is_shown_by_its_code_alone(code: Any) -> None:
    engine = Engine("secagg", 6, replied={("share_keys", 2): lambda packet: {"version": 2, "refused": code}})
    assert engine.run() is not None
    shown = "wrong_phase" if code == "wrong_phase" else "without a code"
    assert engine.lines == [f"share_keys: 1 of 6 dropped out: node {sorted(engine.nodes)[2]} (refused: {shown})"]


@pytest.mark.requirement("SAG-01")
@pytest.mark.parametrize(
    ("holders", "sampled", "match"), [(7, 6, "at most 6"), (4, 7, r"\(holders - 1\) \* 7 is even: 5"), (4, 6, "")]
)
def test_a_number_of_holders_is_taken_as_it_is_or_refused(holders: int, sampled: int, match: str) -> None:
    settings = server.Settings("secagg", 3, holders)
    if match:
        with pytest.raises(ParameterError, match=match):
            settings.numbers(sampled, sampled, 2)
    else:
        assert settings.numbers(sampled, sampled, 2)["k"] == holders - 1


@pytest.mark.requirement("SAG-01")
@given(st.integers(3, 60), st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.integers(0, 10))
def test_a_part_of_the_users_is_rounded_up_to_one_with_a_graph(N: int, held: float, shared: float, gone: int) -> None:
    numbers = server.Settings("secagg", shared, held).numbers(N, N + gone, 2)
    holders, wanted = numbers["k"] + 1, max(3, ceil(Fraction(str(held)) * (N + gone)))
    assert holders == N or (numbers["k"] * N % 2 == 0 and wanted <= holders <= wanted + 1)
    assert holders == N or numbers["t"] == max(3, ceil(Fraction(str(shared)) * holders))


@given(st.integers(1, 100), st.integers(1, 100))
@example(55, 100)
@example(7, 100)
def test_a_part_in_per_cent_is_that_part(percent: int, N: int) -> None:
    assert server.Settings("lightsecagg", percent / 100).numbers(N, N, 2)["U"] == max(2, -(-percent * N // 100))


@pytest.mark.parametrize(("protocol", "least"), [("secagg", 3), ("lightsecagg", 2)])
def test_a_threshold_that_no_round_has_is_refused_at_once(protocol: str, least: int) -> None:
    server.Settings(protocol, least)
    with pytest.raises(ParameterError, match=f"threshold = {least - 1}: must be an integer >= {least}, or a part"):
        server.Settings(protocol, least - 1)
    with pytest.raises(ParameterError, match="threshold = 6: must be at most 5, the number of holders"):
        server.Settings("secagg", 6, 5)


def test_a_threshold_that_the_profile_forbids_is_said_to_the_operator() -> None:
    settings = server.Settings("secagg-active", 4, most=MOST)
    engine = Engine("secagg-active", 8)
    assert server.run(settings, list(engine.nodes), [np.zeros(3)], 1, engine.exchange, engine.lines.append) is None
    assert "round 1 ends without a sum: ParameterError: t = 4: must be at least 5" in engine.lines[-1]


@pytest.mark.requirement("FLW-16")
def test_a_round_that_was_begun_with_too_few_nodes_ends_with_a_line_and_the_next_one_goes_on() -> None:
    engine = Engine("secagg+", 6)
    arrays = [np.zeros(shape) for shape in SHAPES]
    assert server.run(engine.settings, [100, 107], arrays, 1, engine.exchange, engine.lines.append) is None
    assert engine.lines == [
        "round 1 ends without a sum: ParameterError: holders = 5: must be at most 2, the number of users that are asked"
    ]
    assert engine.run(2) is not None


def _run(**given: Any) -> server.Result | None:
    usual: dict[str, Any] = {
        "nodes": [1, 2, 3],
        "arrays": [np.zeros(2)],
        "round": 0,
        "exchange": lambda *asked: (),
        "report": print,
    }
    return server.run(**{"settings": SETTINGS["secagg"], **usual, **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": None}, "settings = 'NoneType': must be of the class Settings"),
        ({"nodes": [[1], [2]]}, "nodes = 'list': must be an integer, each one if several are given"),
        ({"exchange": None}, "exchange = 'NoneType': must be a function"),
        ({"batches": 5}, "batches = 'int': must be of the class Batches"),
    ],
)
def test_a_round_of_what_is_none_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        _run(**given)


@pytest.mark.parametrize(("given", "said"), [(None, "NoneType"), ([5], "ints"), ([([], None)], "tuples")])
def test_an_exchange_that_gives_no_pairs_ends_the_round(given: Any, said: str) -> None:
    lines: list[str] = []
    assert _run(exchange=lambda *asked: given, report=lines.append) is None
    assert (
        f"exchange = 'one that gives {said}': must be a function that gives pairs of a node and its reply" in lines[-1]
    )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_by_its_array(number: float) -> None:
    engine = Engine("secagg", 6)
    engine.run()
    assert engine.begun is not None
    arrays = [np.zeros(shape) for shape in SHAPES]
    arrays[-1].flat[1] = number
    with pytest.raises(OutOfRange, match=rf"^arrays\[{len(SHAPES) - 1}\]\.flat\[1\] = {number}: must be finite$"):
        weights.encode(engine.begun[0], arrays, 3, SystemSource())


@pytest.mark.parametrize("name", ["N", "sampled", "d"])
@pytest.mark.parametrize("value", [None, -1, 2**32, 1.0])
def test_settings_are_for_numbers_of_users_and_elements(name: str, value: Any) -> None:
    given: dict[str, Any] = {"N": 5, "sampled": 5, "d": 2, name: value}
    with pytest.raises(ParameterError, match=f"^{name} = .*: must be an integer in "):
        SETTINGS["secagg"].numbers(**given)


@pytest.mark.parametrize("number", [-1, 2**32, None])
def test_a_round_has_a_number_before_anybody_is_asked(number: Any) -> None:
    with pytest.raises(ParameterError, match=r"^round = .*: must be an integer in \[0, 4294967295\]$"):
        server.run(SETTINGS["secagg"], range(5), [np.zeros(3)], number, Mock(side_effect=AssertionError), Mock())


@pytest.mark.requirement("RND-03")
def test_a_source_that_runs_out_ends_the_round_before_anybody_is_asked() -> None:
    said: list[str] = []
    exchange, source = Mock(side_effect=AssertionError), Mock(take=Mock(return_value=bytes(15)))
    assert server.run(SETTINGS["lightsecagg"], range(5), [np.zeros(3)], 1, exchange, said.append, source) is None
    assert said == ["round 1 ends without a sum: ParameterError: take(16) of the source = '15 bytes': must be 16 bytes"]
