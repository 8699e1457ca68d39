"""The implementation of BASA in JavaScript: its parties, step by step, and epochs of all of them.

It was written from the text alone, and nothing of the reference is asked here: expected values are made by hand, by the
arithmetic of Python, or by relations between the answers themselves.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.conformance.node import NODE, Answer, Node, entries_of, reals, running, vector

SESSION = bytes(range(16)).hex()
TINY: dict[str, Any] = {
    "R": "16", "N": 6, "T": 1, "d": 2, "K": 3, "S": 1, "c_l": "1", "c_g": "2", "tau_max": 1,
    "kind": "polynomial", "numerator": 1, "denominator": 1, "start": "0", "timeouts": "settle",
}  # fmt: skip
VOID: dict[str, Any] = {**TINY, "S": 0, "timeouts": "void"}
EPOCH_KEYS, REQUEST, OFFER, ASSIGNMENT, KEY_REQUEST, KEY, UPLOAD, SETTLEMENT, STATE, CLOSE, RELEASE, ABANDONMENT = (
    range(1025, 1037)
)
FREE, ACCEPTED, SKIPPED, VOIDED = range(4)
SIGNED: dict[str, Any] = {
    "protocol": "basa", "session": SESSION, "round": "7",
    "parameters": [[name, str(value)] for name, value in {**TINY, "kind": 1, "timeouts": 0, "encryption": 0}.items()],
}  # fmt: skip
handles = count()

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


# ----------------------------------------------------------------------------------------------------------------------
# What is asked


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """The other implementation, running."""
    with running() as other:
        yield other


def drawn(label: str, pieces: int = 1) -> str:
    """Bytes that look random and are the same in every run, 32 for each piece."""
    return b"".join(hashlib.sha256(f"{label} {i}".encode()).digest() for i in range(pieces)).hex()


def pieces_of(text: str, size: int) -> list[str]:
    return [text[i : i + 2 * size] for i in range(0, len(text), 2 * size)]


def exchange_key(private: str) -> str:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(private)).public_key().public_bytes_raw().hex()


def signing_key(party: object) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(drawn(f"signing {party}")))


def verification_key(party: object) -> str:
    return signing_key(party).public_key().public_bytes_raw().hex()


class Party:
    """A session of one party."""

    def __init__(self, node: Node, role: str, numbers: Answer, round_: int, setup: Answer, rand: Answer) -> None:
        self.node, self.handle = node, f"{role} {next(handles)}"
        params = {"handle": self.handle, "protocol": "basa", "role": role, "numbers": numbers, "session": SESSION}
        node.result("session.new", {**params, "round": str(round_), "setup": setup}, rand)

    def _ask(self, phase: str, inbox: Sequence[str]) -> Answer:
        return self.node.ask("session.step", {"handle": self.handle, "phase": phase, "inbox": list(inbox)})

    def step(self, phase: str, *inbox: str) -> list[str]:
        """Return what the party sends in a step that must work."""
        answer = self._ask(phase, inbox)
        assert "result" in answer, answer
        outbox: list[str] = answer["result"]["outbox"]
        return outbox

    def recover(self, *inbox: str) -> list[int]:
        return entries_of(self._ask("recover", inbox)["result"]["aggregate"])

    def refusal(self, phase: str, *inbox: str) -> tuple[str, set[object]]:
        """Return the code and the parties that are blamed, of a step that must be refused."""
        answer = self._ask(phase, inbox)
        assert "reject" in answer, answer
        return answer["reject"]["code"], set(answer["reject"]["blamed"])


class Epoch:
    """A server, an authority and users, in epoch 7, and what went between them."""

    def __init__(self, node: Node, numbers: Answer = TINY) -> None:
        self.node, self.numbers = node, numbers
        self.positions = numbers["K"] + numbers["S"]
        self.verification = [verification_key(user) for user in range(numbers["N"])]
        own = self.positions if numbers["timeouts"] == "settle" else 0
        self.pair, self.own = drawn("pair", self.positions), drawn("own", own)
        keys = {"pair_keys": [self.pair, drawn("2", self.positions)], "self_keys": [self.own, drawn("3", own)][:own]}
        setup = {"signing": drawn("signing authority"), "verification": self.verification}
        self.authority = Party(node, "authority", numbers, 7, setup, keys)
        setup = {"authority": verification_key("authority"), "verification": self.verification}
        self.server = Party(node, "server", numbers, 6, setup, {})
        [self.keys] = self.authority.step("open")
        self.server.step("open", self.keys)

    def user(self, number: int, update: Sequence[int] = (1, 15), stamp: int = 7) -> Party:
        """Return a user with one update."""
        setup = {
            "user": number, "signing": drawn(f"signing {number}"), "verification": self.verification,
            "authority": verification_key("authority"), "updates": [vector(update)], "stamps": vector([stamp]),
        }  # fmt: skip
        rand = {"seeds": [drawn(f"seeds {number}", self.positions)], "box_keys": [drawn(f"box {number}")]}
        return Party(self.node, "user", self.numbers, 0, setup, {**rand, "roundings": reals([0.5])})

    def offer(self, user: Party) -> str:
        """Have a user offered the position, and return the offer."""
        offered, assigned = sorted(self.server.step("offer", *user.step("request")))  # by their types
        assert self.authority.step("assign", assigned) == []
        return offered

    def key(self, user: Party) -> str:
        """Have a user offered the position, and return the key that it is given."""
        [given] = self.authority.step("issue", *user.step("fetch", self.offer(user)))
        return given

    def settle(self, phase: str, *inbox: str) -> None:
        self.server.step("settle", *self.authority.step("settle", *self.server.step(phase, *inbox)))

    def upload(self, user: Party) -> str:
        """Have a user's upload accepted, and return it."""
        [sent] = user.step("upload", self.key(user))
        self.settle("take", sent)
        return sent

    def close(self) -> list[int]:
        return self.server.recover(*self.authority.step("close", *self.server.step("close")))


@pytest.fixture
def epoch(node: Node) -> Epoch:
    return Epoch(node)


# ----------------------------------------------------------------------------------------------------------------------
# Messages


@pytest.mark.requirement("MSG-01", "MSG-02", "ADP-12")
def test_numbers_and_the_authority_stand_in_messages(node: Node) -> None:
    fields = {"position": 3, "accepted": 1, "stamp": 2**32 - 1, "weight": 258, "hashes": "0a", "signature": ""}
    params = {"type": SETTLEMENT, "session": SESSION, "round": "9", "sender": "server", "receiver": "authority"}
    encoded = node.result("message.encode", {**params, "fields": fields})["bytes"]
    header = struct.pack("<H16sIII", SETTLEMENT, bytes.fromhex(SESSION), 9, 2**32 - 1, 2**32 - 2)
    body = struct.pack("<IHIII", 3, 1, 2**32 - 1, 258, 1) + b"\x0a" + struct.pack("<I", 0)
    assert bytes.fromhex(encoded) == header + body
    found = node.result("message.decode", {"type": SETTLEMENT, "bytes": encoded})
    assert {**found, "type": SETTLEMENT} == {**params, "fields": fields}
    for cut in range(60, len(encoded), 2):
        assert node.ask("message.decode", {"type": SETTLEMENT, "bytes": encoded[:cut]})["reject"]["code"] == "malformed"
    for name, value in [("accepted", 2**16), ("position", 2**32), ("weight", -1)]:
        fault = {**params, "fields": {**fields, name: value}}
        assert node.ask("message.encode", fault)["reject"]["code"] == "out_of_range"
    fault = {**params, "type": 1034, "receiver": "authority", "fields": {}}
    node.result("message.encode", fault)
    assert node.ask("message.encode", {**fault, "type": 769})["reject"]["code"] == "malformed"


# ----------------------------------------------------------------------------------------------------------------------
# Epochs of the parties


@pytest.mark.requirement("BAA-08", "BAA-29")
def test_the_authority_publishes_and_signs_the_keys_of_all_positions(node: Node, epoch: Epoch) -> None:
    found = node.decode(EPOCH_KEYS, epoch.keys)
    assert (found["round"], found["sender"], found["receiver"]) == ("7", "authority", "server")
    private = [*pieces_of(epoch.pair, 32), *pieces_of(epoch.own, 32)]
    assert pieces_of(found["keys"], 32) == [exchange_key(key) for key in private]
    fields = [b"secagg-spec", b"\x01\0\0\0", b"basa"]
    texts = [text.encode() for pair in SIGNED["parameters"] for text in pair]
    fields += [hashlib.sha256(listed(texts)).digest(), bytes.fromhex(SESSION), b"\x07\0\0\0", b"epoch-keys"]
    fields += [struct.pack("<I", EPOCH_KEYS), struct.pack("<I", 2**32 - 2), bytes.fromhex(found["keys"])]
    assert signing_key("authority").sign(listed(fields)).hex() == found["signature"]


def listed(fields: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(one)) + one for one in fields)


@pytest.mark.requirement("BAA-20", "BAA-26", "BAA-33", "BAA-34", "BAA-35", "BAA-41")
def test_an_epoch_with_a_skipped_position_ends_with_the_sum(node: Node, epoch: Epoch) -> None:
    first = epoch.upload(epoch.user(4, (1, 15), 7))
    late = epoch.user(1)
    held_back = late.step("upload", epoch.key(late))
    epoch.settle("expire")
    assert epoch.server.refusal("take", *held_back) == ("wrong_phase", set())
    second = epoch.upload(epoch.user(0, (0, 1), 6))  # a staleness of 1: its weight is 1
    third = epoch.upload(epoch.user(5, (15, 1), 7))
    [released] = epoch.authority.step("close", *epoch.server.step("close"))
    assert epoch.server.recover(released) == [(2 * 1 + 2 * 15) % 16, (2 * 15 + 1 + 2 * 1) % 16]
    pair, own = pieces_of(epoch.pair, 32), pieces_of(epoch.own, 32)
    assert node.decode(RELEASE, released)["keys"] == own[0] + pair[1] + own[2] + own[3]

    sent = node.decode(UPLOAD, second)
    seeds = {user: pieces_of(drawn(f"seeds {user}", 4), 32) for user in (4, 0, 5)}
    base = {**TINY, "session": SESSION, "round": "7"}
    mask = {"position": 2, "accepted": [0], "before": [seeds[4][2]], "seeds": drawn("seeds 0", 4), "weight": 1}
    assert sent["masked"] == node.result("basa.mask", {**base, **mask, "update": vector([0, 1])})["masked"]
    use = {
        "sender": 0,
        "from": 2,
        "to": 3,
        "purpose": "pair-box",
        "private": pair[3],
        "box": pieces_of(sent["boxes"], 80)[0],
    }
    assert node.result("basa.open", {**base, **use}) == {"seed": seeds[0][3]}
    use = {**use, "to": 2, "purpose": "self-box", "private": own[2], "box": pieces_of(sent["boxes"], 80)[1]}
    assert node.result("basa.open", {**base, **use}) == {"seed": seeds[0][2]}
    assert [len(node.decode(UPLOAD, one)["boxes"]) // 160 for one in (first, second, third)] == [4, 2, 1]


@pytest.mark.requirement("BAA-13", "BAA-31", "BAA-35")
def test_offers_and_keys_name_the_accepted_positions_before(node: Node, epoch: Epoch) -> None:
    first = node.decode(UPLOAD, epoch.upload(epoch.user(4)))
    skipped = epoch.user(1)
    epoch.key(skipped)
    epoch.settle("expire")
    third = node.decode(UPLOAD, epoch.upload(epoch.user(2)))
    user = epoch.user(3)
    offered = epoch.offer(user)
    boxes = [pieces_of(first["boxes"], 80)[2], pieces_of(third["boxes"], 80)[0]]
    assert node.decode(OFFER, offered)["boxes"] == "".join(boxes)
    assert node.decode(OFFER, offered)["position"] == 3
    [given] = epoch.authority.step("issue", *user.step("fetch", offered))
    found = node.decode(KEY, given)
    assert (entries_of(found["positions"]), entries_of(found["senders"])) == ([0, 2], [4, 2])
    assert found["hashes"] == "".join(hashlib.sha256(bytes.fromhex(box)).hexdigest() for box in boxes)
    assert found["key"] == pieces_of(epoch.pair, 32)[3]
    twice = node.altered(KEY, given, senders=vector([4, 4]))
    assert user.refusal("upload", twice) == ("malformed", {"authority"})


@pytest.mark.requirement("BAA-16", "BAA-36", "BAA-12")
def test_a_position_is_given_again_only_while_its_key_was_not_given_out(node: Node, epoch: Epoch) -> None:
    epoch.offer(epoch.user(1))
    epoch.settle("expire")
    again = epoch.user(1)
    assert node.decode(OFFER, epoch.offer(again))["position"] == 0
    epoch.settle("expire")
    keyed = epoch.user(2)
    epoch.key(keyed)
    epoch.settle("expire")
    assert node.decode(OFFER, epoch.offer(epoch.user(3)))["position"] == 1
    epoch.settle("expire")
    assert epoch.server.refusal("offer", *keyed.step("request")) == ("wrong_phase", set())


@pytest.mark.requirement("BAA-17", "BAA-21", "BAA-41")
def test_in_the_profile_void_a_timeout_ends_the_epoch(node: Node) -> None:
    epoch = Epoch(node, VOID)
    epoch.upload(epoch.user(0))
    epoch.offer(epoch.user(1))
    epoch.settle("expire")  # it had no key: nothing is lost
    epoch.key(epoch.user(1))
    [report] = epoch.server.step("expire")
    [state] = epoch.authority.step("settle", report)
    assert node.decode(STATE, state)["state"] == VOIDED
    epoch.server.step("settle", state)
    assert epoch.authority.refusal("settle", report)[0] == "wrong_phase"
    [keys] = epoch.authority.step("open")
    assert node.decode(EPOCH_KEYS, keys)["round"] == "8"
    epoch.server.step("open", keys)
    for user, update in enumerate([(1, 0), (1, 1), (15, 1)]):
        epoch.upload(epoch.user(user, update, 8))
    [released] = epoch.authority.step("close", *epoch.server.step("close"))
    assert node.decode(RELEASE, released)["keys"] == ""
    assert epoch.server.recover(released) == [2, 4]


@pytest.mark.requirement("BAA-21", "BAA-22", "BAA-50")
def test_an_abandoned_epoch_is_over_for_all(node: Node, epoch: Epoch) -> None:
    epoch.upload(epoch.user(0))
    user = epoch.user(1)
    asked = user.step("fetch", epoch.offer(user))
    assert epoch.authority.step("abandon", *epoch.server.step("abandon")) == []
    assert epoch.authority.refusal("issue", *asked)[0] == "wrong_phase"
    assert epoch.server.refusal("abandon")[0] == "wrong_phase"
    assert epoch.server.refusal("open", epoch.keys) == ("replay", {"authority"})
    epoch.server.step("open", *epoch.authority.step("open"))


# ----------------------------------------------------------------------------------------------------------------------
# What the authority refuses


@pytest.mark.requirement("BAA-09", "BAA-10", "BAA-11", "BAA-12", "BAA-15", "BAA-18", "BAA-19", "BAA-51")
def test_the_authority_gives_one_key_at_a_time_and_each_once(node: Node, epoch: Epoch) -> None:
    authority, first = epoch.authority, epoch.user(0)
    offered, assigned = sorted(epoch.server.step("offer", *first.step("request")))
    assert authority.refusal("assign", node.altered(ASSIGNMENT, assigned, position=1))[0] == "wrong_phase"
    assert authority.refusal("assign", node.altered(ASSIGNMENT, assigned, position=4)) == ("malformed", {"server"})
    assert authority.refusal("assign", node.altered(ASSIGNMENT, assigned, user=6)) == ("malformed", {"server"})
    [asked] = first.step("fetch", offered)
    assert authority.refusal("issue", asked)[0] == "wrong_phase"  # not assigned yet
    authority.step("assign", assigned)
    other = node.altered(ASSIGNMENT, assigned, position=1, user=1)
    assert authority.refusal("assign", other)[0] == "wrong_phase"  # the first is assigned
    header = {"session": SESSION, "round": "7", "sender": "server", "receiver": "authority"}
    close = node.result("message.encode", {"type": CLOSE, **header, "fields": {}})["bytes"]
    assert authority.refusal("close", close)[0] == "wrong_phase"
    assert authority.refusal("issue", node.altered(KEY_REQUEST, asked, sender=1))[0] == "wrong_phase"
    authority.step("issue", asked)
    assert authority.refusal("issue", asked)[0] == "replay"
    assert authority.refusal("assign", assigned)[0] == "wrong_phase"  # one is keyed
    assert authority.refusal("assign", other)[0] == "wrong_phase"
    assert authority.refusal("close", close)[0] == "wrong_phase"
    [report] = epoch.server.step("expire")
    authority.step("settle", report)
    assert authority.refusal("settle", report)[0] == "wrong_phase"
    assert authority.refusal("assign", node.altered(ASSIGNMENT, assigned, position=1)) == ("replay", set())
    assert authority.refusal("close", close)[0] == "below_threshold"


@pytest.mark.requirement("BAA-14", "BAA-16", "BAA-51")
def test_the_authority_settles_what_the_user_signed(node: Node, epoch: Epoch) -> None:
    user = epoch.user(0)
    given = epoch.key(user)
    [report] = epoch.server.step("take", *user.step("upload", given))
    found = node.decode(SETTLEMENT, report)
    faults: dict[str, tuple[dict[str, Any], tuple[str, set[object]]]] = {
        "a stamp": ({"stamp": 6}, ("bad_signature", {"server"})),
        "a weight": ({"weight": 1}, ("bad_signature", {"server"})),
        "a hash": ({"hashes": "00" + found["hashes"][2:]}, ("bad_signature", {"server"})),
        "a hash less": ({"hashes": found["hashes"][64:]}, ("malformed", {"server"})),
        "a short signature": ({"signature": found["signature"][2:]}, ("malformed", {"server"})),
        "another position": ({"position": 1}, ("wrong_phase", set())),
        "neither yes nor no": ({"accepted": 2}, ("malformed", {"server"})),
        "a timeout with an upload": ({"accepted": 0}, ("malformed", {"server"})),
    }
    for name, (changes, expected) in faults.items():
        assert epoch.authority.refusal("settle", node.altered(SETTLEMENT, report, **changes)) == expected, name
    [state] = epoch.authority.step("settle", report)
    assert node.decode(STATE, state)["fields"] == {"position": 0, "state": ACCEPTED}


@pytest.mark.requirement("BAA-19")
def test_an_epoch_is_closed_when_it_is_full_or_nothing_is_left(node: Node, epoch: Epoch) -> None:
    epoch.upload(epoch.user(0))
    epoch.upload(epoch.user(1))
    epoch.upload(epoch.user(2))
    assert epoch.server.refusal("offer", *epoch.user(3).step("request")) == ("wrong_phase", set())
    header = {"session": SESSION, "round": "7", "sender": "server", "receiver": "authority"}
    params = {"type": ASSIGNMENT, **header, "fields": {"position": 3, "user": 3}}
    assert epoch.authority.refusal("assign", node.result("message.encode", params)["bytes"])[0] == "wrong_phase"
    assert epoch.close() == [6, 10]


@pytest.mark.requirement("BAA-19", "BAA-45")
def test_an_epoch_that_is_not_full_ends_with_a_sum_when_no_position_is_left(node: Node) -> None:
    epoch = Epoch(node, {**TINY, "R": "32", "K": 4})
    for user in (0, 1):
        epoch.key(epoch.user(user))
        epoch.settle("expire")
    for user in (2, 3, 4):
        epoch.upload(epoch.user(user, (1, 31)))
    assert epoch.server.refusal("offer", *epoch.user(5).step("request")) == ("wrong_phase", set())
    assert epoch.close() == [6, 26]

    epoch = Epoch(node, {**TINY, "R": "32", "K": 4})
    for user in (2, 3, 4):
        epoch.upload(epoch.user(user, (1, 31)))
    assert epoch.authority.refusal("close", *epoch.server.step("close")) == ("below_threshold", set())


# ----------------------------------------------------------------------------------------------------------------------
# What a user refuses


@pytest.mark.requirement("BAA-28", "BAA-29", "BAA-51")
def test_a_user_refuses_a_wrong_offer(node: Node, epoch: Epoch) -> None:
    epoch.upload(epoch.user(1))
    user = epoch.user(0, stamp=6)
    offered = epoch.offer(user)
    found = node.decode(OFFER, offered)
    server: set[object] = {"server"}
    faults: list[tuple[dict[str, Any], tuple[str, set[object]]]] = [
        ({"keys": "00" + found["keys"][2:]}, ("bad_signature", server)),
        ({"round": "6"}, ("bad_signature", server)),
        ({"keys": found["keys"][64:]}, ("malformed", server)),
        ({"signature": found["signature"][2:]}, ("malformed", server)),
        ({"boxes": found["boxes"][2:]}, ("malformed", server)),
        ({"position": 4}, ("malformed", server)),
        ({"sender": 1}, ("unknown_peer", {1})),
    ]
    for changes, expected in faults:
        assert user.refusal("fetch", node.altered(OFFER, offered, **changes)) == expected, changes
    assert user.refusal("fetch")[0] == "wrong_phase"
    user.step("fetch", offered)
    assert user.refusal("fetch", offered)[0] == "wrong_phase"
    for stamp in (5, 8):
        stranger = epoch.user(2, stamp=stamp)
        stranger.step("request")
        own = node.altered(OFFER, offered, receiver=2)
        assert stranger.refusal("fetch", own) == ("inconsistent_sets", server)


@pytest.mark.requirement("BAA-27", "BAA-30", "BAA-31", "BAA-51")
def test_a_user_refuses_a_wrong_key(node: Node, epoch: Epoch) -> None:
    epoch.upload(epoch.user(1))
    user = epoch.user(0)
    given = epoch.key(user)
    found = node.decode(KEY, given)
    authority: set[object] = {"authority"}
    server: set[object] = {"server"}
    faults: list[tuple[dict[str, Any], tuple[str, set[object]]]] = [
        ({"position": 2}, ("inconsistent_sets", authority)),
        ({"key": pieces_of(epoch.pair, 32)[2]}, ("malformed", authority)),
        ({"key": found["key"][2:]}, ("malformed", authority)),
        ({"hashes": "00" + found["hashes"][2:]}, ("bad_signature", server)),
        ({"hashes": found["hashes"][2:]}, ("malformed", authority)),
        ({"senders": ""}, ("malformed", authority)),
        ({"positions": vector([1])}, ("malformed", authority)),
        ({"senders": vector([6])}, ("malformed", authority)),
        ({"positions": "", "senders": "", "hashes": ""}, ("malformed", server)),
        ({"senders": vector([2])}, ("bad_ciphertext", {2})),
        ({"round": "8"}, ("wrong_phase", set())),
    ]
    for changes, expected in faults:
        assert user.refusal("upload", node.altered(KEY, given, **changes)) == expected, changes
    user.step("upload", given)
    assert user.refusal("upload", given)[0] == "wrong_phase"
    assert user.refusal("request")[0] == "bad_param"  # no update is left


def forged(node: Node, sent: str, spoiled: Sequence[int]) -> str:
    """Return an upload in which some boxes, counted from the first, are nonsense that its user signed."""
    found = node.decode(UPLOAD, sent)
    boxes = pieces_of(found["boxes"], 80)
    for i in spoiled:
        boxes[i] = boxes[i][:-2] + f"{int(boxes[i][-2:], 16) ^ 1:02x}"
    hashes = b"".join(hashlib.sha256(bytes.fromhex(box)).digest() for box in boxes).hex()
    numbers = (found["position"], found["stamp"], found["weight"])
    content = [*(struct.pack("<I", number).hex() for number in numbers), hashes]
    params = {"purpose": "boxes", "type": UPLOAD, "signer": found["sender"], "content": content}
    private = drawn(f"signing {found['sender']}")
    signature = node.result("signature.sign", {**SIGNED, **params, "private": private})["signature"]
    return node.altered(UPLOAD, sent, boxes="".join(boxes), signature=signature)


@pytest.mark.requirement("BAA-32")
def test_a_user_uploads_nothing_where_boxes_do_not_open(node: Node, epoch: Epoch) -> None:
    for cheat, spoiled in ((2, [1]), (4, [0])):  # the boxes to position 2
        user = epoch.user(cheat)
        [sent] = user.step("upload", epoch.key(user))
        epoch.settle("take", forged(node, sent, spoiled))
    honest = epoch.user(0)
    assert honest.refusal("upload", epoch.key(honest)) == ("bad_ciphertext", {2, 4})


@pytest.mark.requirement("BAA-42", "BAA-45")
def test_an_epoch_ends_without_a_sum_where_released_keys_open_nothing(node: Node, epoch: Epoch) -> None:
    for number, spoiled in ((2, [2]), (4, [2]), (0, [])):  # the box to position 3, and a self box
        user = epoch.user(number)
        [sent] = user.step("upload", epoch.key(user))
        epoch.settle("take", forged(node, sent, spoiled))
    [released] = epoch.authority.step("close", *epoch.server.step("close"))
    keys = node.decode(RELEASE, released)["keys"]
    for changes in ({"keys": keys[64:]}, {"keys": ""}, {"keys": keys[:64] + epoch.pair[64:128] + keys[128:]}):
        fault = node.altered(RELEASE, released, **changes)
        assert epoch.server.refusal("recover", fault) == ("malformed", {"authority"})
    assert epoch.server.refusal("recover", released) == ("bad_ciphertext", {2, 4})
    epoch.server.step("abandon")
    epoch.server.step("open", *epoch.authority.step("open"))


# ----------------------------------------------------------------------------------------------------------------------
# Epochs of all parties at once


def upload(user: int, stamp: int = 7) -> Answer:
    return {"event": "upload", "user": user, "stamp": str(stamp)}


def expire(user: int, keyed: bool, stamp: int = 7) -> Answer:
    return {"event": "expire", "user": user, "stamp": str(stamp), "keyed": keyed}


def late(user: int, stamp: int = 7) -> Answer:
    return {"event": "late", "user": user, "stamp": str(stamp)}


END: Answer = {"event": "close"}
UPDATES = [[1, 0], [15, 1], [0, 1], [1, 1]]


def play(node: Node, numbers: Answer, *schedule: Answer, updates: Sequence[Sequence[int]] = UPDATES) -> Answer:
    """Return the answer to some events, from epoch 7 on, where all draws round down."""
    params = {**numbers, "session": SESSION, "round": "7", "updates": [vector(update) for update in updates]}
    rand = {"roundings": reals([0.75] * len(updates))}
    return node.ask("basa.epochs", {**params, "schedule": list(schedule)}, rand)


def seen(round_: int, entries: Sequence[tuple[int, int, int]], total: Sequence[int] | None) -> Answer:
    """Return what an epoch shows, from the position, the user and the weight of each accepted update."""
    positions, users, weights = ([entry[i] for entry in entries] for i in range(3))
    total_ = None if total is None else vector(total)
    return {"round": str(round_), "positions": positions, "users": users, "weights": vector(weights), "sum": total_}


@pytest.mark.requirement("BAA-41", "BAA-45", "BAA-23")
def test_epochs_end_with_the_sum_of_what_was_accepted(node: Node) -> None:
    plain = play(node, TINY, upload(0), upload(3), upload(1), END)
    assert plain["result"] == {"epochs": [seen(7, [(0, 0, 2), (1, 3, 2), (2, 1, 2)], [0, 4])]}
    mixed = play(node, TINY, upload(0), late(5, 6), expire(4, False), upload(1, 6), upload(2), END)
    assert mixed["result"] == {"epochs": [seen(7, [(0, 0, 2), (2, 1, 1), (3, 2, 2)], [4, 3])]}
    assert play(node, TINY)["result"] == {"epochs": [seen(7, [], None)]}


@pytest.mark.requirement("BAA-17", "BAA-45")
def test_epochs_of_the_profile_void_end_by_timeouts(node: Node) -> None:
    schedule = [upload(0), late(1), expire(0, False, 8), expire(0, True, 8), upload(0, 8)]
    expected = [seen(7, [(0, 0, 2)], None), seen(8, [], None), seen(9, [(0, 0, 1)], None)]
    assert play(node, VOID, *schedule)["result"] == {"epochs": expected}


@pytest.mark.requirement("ADP-36", "BAA-19", "BAA-25", "BAA-36", "BAA-49")
@pytest.mark.parametrize(
    ("schedule", "code"),
    [
        ([END], "below_threshold"),
        ([upload(0), upload(1), END], "below_threshold"),
        ([upload(0), upload(1), upload(2), upload(3)], "wrong_phase"),
        ([upload(0), upload(0)], "wrong_phase"),
        ([expire(0, True), upload(0)], "wrong_phase"),
        ([upload(0, 8)], "inconsistent_sets"),
        ([upload(0, 5)], "inconsistent_sets"),
        ([late(0, 5)], "inconsistent_sets"),
        ([upload(6)], "unknown_peer"),
        ([upload(-1)], "unknown_peer"),
        ([{"event": "rest"}], "malformed"),
        ([{"event": "close", "user": 0}], "malformed"),
        ([{**expire(0, True), "keyed": 1}], "malformed"),
        ([{"event": "expire", "user": 0, "stamp": "7"}], "malformed"),
    ],
)
def test_events_that_a_party_refuses_are_the_rejection(node: Node, schedule: Sequence[Answer], code: str) -> None:
    assert play(node, TINY, *schedule)["reject"]["code"] == code


@pytest.mark.slow
@pytest.mark.requirement("BAA-24", "BAA-25", "RND-04", "STL-07")
def test_updates_and_draws_of_epochs_are_held_to_the_text(node: Node) -> None:
    assert play(node, TINY, late(0), updates=[[2, 0]])["reject"]["code"] == "out_of_range"
    assert play(node, TINY, updates=[[16, 0]])["reject"]["code"] == "noncanonical"
    assert play(node, TINY, updates=[[1]])["reject"]["code"] == "length_mismatch"
    assert play(node, TINY, upload(0), updates=[])["reject"]["code"] == "bad_param"


# ----------------------------------------------------------------------------------------------------------------------
# What the server refuses


@pytest.mark.slow
@pytest.mark.requirement("BAA-37", "BAA-38", "BAA-39", "BAA-49", "BAA-51")
def test_the_server_refuses_a_wrong_upload(node: Node, epoch: Epoch) -> None:
    user = epoch.user(0)
    [asked] = user.step("request")
    for stamp in ("5", "8"):
        fault = node.altered(REQUEST, asked, round=stamp)
        assert epoch.server.refusal("offer", fault) == ("inconsistent_sets", {0})
    given = epoch.key(user)
    [sent] = user.step("upload", given)
    found = node.decode(UPLOAD, sent)
    faults: list[tuple[dict[str, Any], tuple[str, set[object]]]] = [
        ({"sender": 1}, ("wrong_phase", set())),
        ({"position": 1}, ("wrong_phase", set())),
        ({"stamp": 6}, ("inconsistent_sets", {0})),
        ({"stamp": 5}, ("inconsistent_sets", {0})),
        ({"stamp": 8}, ("inconsistent_sets", {0})),
        ({"weight": 1}, ("inconsistent_sets", {0})),
        ({"stamp": 6, "weight": 1}, ("bad_signature", {0})),
        ({"boxes": found["boxes"][160:]}, ("malformed", {0})),
        ({"boxes": "00" + found["boxes"][2:]}, ("bad_signature", {0})),
        ({"signature": found["signature"][2:]}, ("malformed", {0})),
        ({"masked": vector([1])}, ("malformed", {0})),
        ({"masked": vector([1, 16])}, ("malformed", {0})),
        ({"round": "6"}, ("wrong_phase", set())),
        ({"receiver": "authority"}, ("malformed", {0})),
    ]
    for changes, expected in faults:
        assert epoch.server.refusal("take", node.altered(UPLOAD, sent, **changes)) == expected, changes
    assert epoch.server.refusal("close")[0] == "wrong_phase"
    epoch.settle("take", sent)


@pytest.mark.slow
@pytest.mark.requirement("BAA-40", "BAA-51")
def test_the_server_does_what_the_authority_settled(node: Node, epoch: Epoch) -> None:
    user = epoch.user(0)
    epoch.key(user)
    [state] = epoch.authority.step("settle", *epoch.server.step("expire"))
    faults: list[dict[str, Any]] = [{"state": 4}, {"state": VOIDED}, {"state": ACCEPTED}]
    for changes in faults:
        fault = node.altered(STATE, state, **changes)
        assert epoch.server.refusal("settle", fault) == ("malformed", {"authority"}), changes
    another = node.altered(STATE, state, position=1)
    assert epoch.server.refusal("settle", another) == ("wrong_phase", set())
    epoch.server.step("settle", state)
    other = epoch.user(1)
    [state] = epoch.authority.step("settle", *epoch.server.step("take", *other.step("upload", epoch.key(other))))
    epoch.server.step("settle", node.altered(STATE, state, state=SKIPPED))
    last = epoch.user(2)
    assert node.decode(OFFER, sorted(epoch.server.step("offer", *last.step("request")))[0])["boxes"] == ""


@pytest.mark.slow
@pytest.mark.requirement("BAA-29", "BAA-50", "BAA-51")
def test_the_server_refuses_keys_that_are_not_those_of_a_new_epoch(node: Node, epoch: Epoch) -> None:
    setup = {"authority": verification_key("authority"), "verification": epoch.verification}
    found = node.decode(EPOCH_KEYS, epoch.keys)
    authority = {"authority"}
    faults = [
        ({"keys": "00" + found["keys"][2:]}, ("bad_signature", authority)),
        ({"round": "8"}, ("bad_signature", authority)),
        ({"keys": found["keys"][64:]}, ("malformed", authority)),
        ({"signature": ""}, ("malformed", authority)),
    ]
    server = Party(node, "server", TINY, 6, setup, {})
    for changes, expected in faults:
        assert server.refusal("open", node.altered(EPOCH_KEYS, epoch.keys, **changes)) == expected, changes
    later = Party(node, "server", TINY, 7, setup, {})
    assert later.refusal("open", epoch.keys) == ("replay", authority)
    server.step("open", epoch.keys)
