"""Keys and sealing: what opens, what does not, and that each field of the binding matters."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.crypto import keys
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import (
    OVERHEAD,
    Context,
    Lane,
    SealedChannel,
    SealedStampedChannel,
    binding,
    sealed_links,
)
from secagg_spec.errors import DecryptionFailed, LengthMismatch, ParameterError, Replay, UnknownUser, WeakKey
from secagg_spec.protocols.lightsecagg import round as lightsecagg

PRIVATE = [bytes([user + 1]) * 32 for user in range(4)]
ROSTER = Roster(tuple(keys.public_key(private) for private in PRIVATE))
CONTEXT = Context("lightsecagg", keys.hash_parameters({"q": 7, "N": 4}), b"sixteen bytes id", 3, 257)
TINY = lightsecagg.PRESETS["tiny"]
LOW_ORDER = [bytes(32), (1).to_bytes(32, "little"), (2**255 - 19).to_bytes(32, "little")]


def channel(user: int, context: Context = CONTEXT, roster: Roster = ROSTER) -> SealedChannel:
    """Return a user's channel."""
    return SealedChannel(context, PRIVATE[user], roster)


@pytest.mark.requirement("SEA-01")
@given(st.binary(max_size=200), st.permutations(range(4)))
def test_what_one_user_seals_the_other_opens(plaintext: bytes, users: list[int]) -> None:
    sender, receiver = users[:2]
    payload = channel(sender).close(sender, receiver, plaintext)
    assert len(payload) == len(plaintext) + OVERHEAD
    assert channel(receiver).open(sender, receiver, payload) == plaintext


@pytest.mark.requirement("KEY-02")
def test_the_hash_of_the_parameters_is_the_one_that_the_text_works_out() -> None:
    """The example of section 9 is put together here from bytes, without the reference."""
    text = (resources.root("spec") / "conventions.md").read_text(encoding="utf-8")
    example = text.partition("*Example.* LightSecAgg has the parameters")[2].partition("\n\n")[0]
    parts = ["q", "7", "N", "5", "D", "1", "U", "3", "T", "1", "d", "3"]
    listed = b"".join(bytes([len(part), 0, 0, 0]) + part.encode("ascii") for part in parts)
    assert f"field list is {len(listed)} bytes long" in example
    assert listed.startswith(bytes.fromhex("01000000 71 01000000 37"))
    assert "`01000000 71 01000000 37`" in example
    assert hashlib.sha256(listed).hexdigest() == re.findall(r"`([0-9a-f]{64})`", example)[0]
    assert hashlib.sha256(listed).digest() == lightsecagg.sealing_context(TINY, bytes(16), 0).parameters
    pairs = list(zip(parts[::2], map(int, parts[1::2]), strict=True))
    assert hashlib.sha256(listed).digest() == keys.hash_parameters(pairs)


@pytest.mark.requirement("KEY-02", "KEY-07", "SEA-01", "SEA-08")
def test_a_payload_is_the_one_of_the_text_step_by_step() -> None:
    payload = channel(0).close(0, 2, b"a share")
    numbers = [b"q", b"7", b"N", b"4"]
    digest = hashes.Hash(hashes.SHA256())
    digest.update(b"".join(len(part).to_bytes(4, "little") + part for part in numbers))
    before = [b"secagg-spec", b"\1\0\0\0", b"lightsecagg", digest.finalize(), b"\3\0\0\0"]
    behind = [b"\0\0\0\0", b"\2\0\0\0", ROSTER.keys[0], ROSTER.keys[2]]
    bound = [
        b"".join(len(value).to_bytes(4, "little") + value for value in [*before, purpose, *behind])
        for purpose in (b"seal", b"seal-nonce")
    ]
    pseudo_random_key = _hmac(CONTEXT.session, keys.agree(PRIVATE[0], ROSTER.keys[2]))
    seal_key, nonce_key = (_hmac(pseudo_random_key, each + b"\1") for each in bound)
    associated = bound[0] + (257).to_bytes(2, "little")
    nonce = _hmac(nonce_key, associated + b"a share")[:12]
    assert payload == nonce + ChaCha20Poly1305(seal_key).encrypt(nonce, b"a share", associated)


def _hmac(key: bytes, data: bytes) -> bytes:
    code = hmac.HMAC(key, hashes.SHA256())
    code.update(data)
    return code.finalize()


@pytest.mark.requirement("KEY-02", "SEA-02")
@pytest.mark.parametrize(
    "other",
    [
        replace(CONTEXT, protocol="basecagg"),
        replace(CONTEXT, parameters=keys.hash_parameters({"q": 7, "N": 5})),
        replace(CONTEXT, session=b"another id here!"),
        replace(CONTEXT, round=4),
        replace(CONTEXT, message_type=258),
    ],
)
def test_a_payload_of_another_context_does_not_open(other: Context) -> None:
    payload = channel(0).close(0, 1, b"a share")
    with pytest.raises(DecryptionFailed) as failed:
        channel(1, other).open(0, 1, payload)
    assert failed.value.blamed == {0, 2**32 - 1}


@pytest.mark.requirement("SEA-02")
def test_a_payload_opens_for_its_receiver_and_from_its_sender_only() -> None:
    payload = channel(0).close(0, 1, b"a share")
    for user, sender, receiver in [(2, 0, 2), (1, 2, 1), (0, 1, 0)]:
        with pytest.raises(DecryptionFailed):
            channel(user).open(sender, receiver, payload)


@pytest.mark.requirement("SEA-05", "ERR-02")
@pytest.mark.parametrize(("user", "sender", "receiver"), [(2, 0, 1), (0, 0, 1), (0, 1, 2)])
def test_a_receiver_that_is_not_the_user_of_the_channel_blames_nobody(user: int, sender: int, receiver: int) -> None:
    payload = channel(0).close(0, 1, b"a share")
    with pytest.raises(ParameterError, match=rf"^receiver = {receiver}: must be {user}, the user of this channel$"):
        channel(user).open(sender, receiver, payload)
    with pytest.raises(ParameterError, match=rf"^receiver = {receiver}: must be {user}, the user of this channel$"):
        SealedStampedChannel(CONTEXT, PRIVATE[user], ROSTER).open(CONTEXT.round, sender, receiver, payload)


@pytest.mark.requirement("SEA-02")
@given(st.data())
def test_an_altered_or_cut_payload_does_not_open(data: st.DataObject) -> None:
    payload = channel(0).close(0, 1, b"a share of a mask")
    if data.draw(st.booleans()):
        changed = payload[: data.draw(st.integers(0, len(payload) - 1))]
    else:
        at, bit = data.draw(st.integers(0, len(payload) - 1)), data.draw(st.integers(0, 7))
        changed = payload[:at] + bytes([payload[at] ^ 1 << bit]) + payload[at + 1 :]
    with pytest.raises(DecryptionFailed):
        channel(1).open(0, 1, changed)


@pytest.mark.requirement("SEA-08")
@given(st.binary(min_size=1, max_size=80), st.binary(min_size=1, max_size=80))
def test_two_plaintexts_under_one_key_share_no_nonce_and_no_stream(one: bytes, other: bytes) -> None:
    first, second = (channel(0).close(0, 1, plaintext) for plaintext in (one, other))
    assert (first[:12] == second[:12]) == (one == other)
    assert (first == second) == (one == other)
    assert [channel(1).open(0, 1, payload) for payload in (first, second)] == [one, other]


@pytest.mark.requirement("SEA-08")
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_the_difference_of_two_payloads_is_not_that_of_their_plaintexts(one: bytes, other: bytes) -> None:
    first, second = (channel(0).close(0, 1, plaintext)[12:-16] for plaintext in (one, other))
    assert (_xor(first, second) == _xor(one, other)) == (one == other)


@pytest.mark.requirement("SEA-08", "SEA-03")
def test_a_user_that_was_restored_and_seals_anew_shows_nothing_but_equality() -> None:
    """Its channel begins again under the same keys, and has forgotten that it sealed."""
    payloads = [channel(0).close(0, 1, plaintext) for plaintext in (b"0" * 32, b"1" * 32, b"0" * 32)]
    assert payloads[0] == payloads[2]
    assert _xor(payloads[0][12:], payloads[1][12:])[:32] != b"\1" * 32
    assert payloads[0][-16:] != payloads[1][-16:]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


@pytest.mark.requirement("SEA-09")
@given(st.binary(max_size=40), st.binary(min_size=12, max_size=12))
def test_a_payload_under_another_nonce_does_not_open(plaintext: bytes, nonce: bytes) -> None:
    """A sender that has the key can seal under any nonce; all of them but one are refused."""
    right = channel(0).close(0, 1, plaintext)
    bound = binding(CONTEXT, 0, 1, ROSTER.keys[0], ROSTER.keys[1])
    cipher = ChaCha20Poly1305(keys.derive(keys.agree(PRIVATE[0], ROSTER.keys[1]), CONTEXT.session, bound))
    associated = bound + CONTEXT.message_type.to_bytes(2, "little")
    for chosen in (nonce, bytes(12), right[:11] + bytes([right[11] ^ 1])):
        with pytest.raises(DecryptionFailed) as failed:
            channel(1).open(0, 1, chosen + cipher.encrypt(chosen, plaintext, associated))
        assert failed.value.blamed == {0, 2**32 - 1}
    assert channel(1).open(0, 1, right[:12] + cipher.encrypt(right[:12], plaintext, associated)) == plaintext


@pytest.mark.requirement("SEA-08")
@pytest.mark.parametrize("changed", [{"message_type": 258}, {"round": 4}, {"session": b"another id here!"}])
def test_one_plaintext_has_another_nonce_elsewhere(changed: dict[str, Any]) -> None:
    first, second = (channel(0, context).close(0, 1, b"a share") for context in (CONTEXT, replace(CONTEXT, **changed)))
    assert first[:12] != second[:12]


def test_what_is_no_bytes_has_no_hash() -> None:
    with pytest.raises(ParameterError, match=r"^data = 'str': must be bytes$"):
        keys.sha256("x")  # type: ignore[arg-type]


@pytest.mark.requirement("KEY-08", "KEY-09")
def test_the_keys_of_an_attempt_follow_the_parameters() -> None:
    listed = [b"\1\0\0\0", b"a" * 32, b"b" * 32, b"\7\0\0\0", b"c" * 32, b"d" * 32]
    hashed = keys.hash_keys({7: (b"c" * 32, b"d" * 32), 1: (b"a" * 32, b"b" * 32)})
    assert hashed == hashlib.sha256(_fields(listed)).digest()
    bound = hashlib.sha256(_fields([b"q", b"7", b"N", b"4", b"keys", hashed])).digest()
    assert keys.hash_parameters({"q": 7, "N": 4}, hashed) == bound
    assert ROSTER.hash == keys.hash_keys({user: (key,) for user, key in enumerate(ROSTER.keys)})


@pytest.mark.requirement("KEY-03", "ERR-02")
@pytest.mark.parametrize(
    "listed",
    [{0: b"k" * 32}, {0: [b"x"]}, {"0": [b"k" * 32]}, {"a": [], 1: []}, {-1: []}, {0: None}, [[b"k" * 32]], {0: ["k"]}],
)
def test_what_is_no_key_has_no_hash(listed: Any) -> None:
    with pytest.raises(ParameterError, match=r"^(len\()?keys"):
        keys.hash_keys(listed)
    for hashed in (b"x", "x" * 32):
        with pytest.raises(ParameterError, match=r"^(len\()?keys"):
            keys.hash_parameters({"q": 7}, hashed)  # type: ignore[arg-type]


def _fields(values: list[bytes]) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


_KEY_LISTS = st.dictionaries(st.integers(0, 3), st.tuples(st.sampled_from(ROSTER.keys), st.sampled_from(ROSTER.keys)))


@pytest.mark.requirement("KEY-08")
@given(_KEY_LISTS, _KEY_LISTS)
def test_two_lists_of_keys_have_one_hash_only_when_they_are_equal(
    one: dict[int, tuple[bytes, bytes]], other: dict[int, tuple[bytes, bytes]]
) -> None:
    assert (keys.hash_keys(one) == keys.hash_keys(other)) == (one == other)


@pytest.mark.requirement("SEA-04")
@pytest.mark.parametrize("pair", [(0, 0), (0, 4), (4, 0), (0, -1)])
def test_sender_and_receiver_are_two_users_of_the_roster(pair: tuple[int, int]) -> None:
    with pytest.raises(ParameterError):
        channel(0).close(*pair, b"a share")
    with pytest.raises(ParameterError):
        channel(0).open(*pair, bytes(32))


@pytest.mark.requirement("SEA-04")
@pytest.mark.parametrize("pair", [(4, 5), (5, 4)])
def test_the_sender_is_looked_at_before_the_receiver(pair: tuple[int, int]) -> None:
    with pytest.raises(UnknownUser, match=f"^sender, receiver = {pair[0]}: must be a user in "):
        channel(0).close(*pair, b"a share")
    with pytest.raises(UnknownUser, match=f"^sender, receiver = {pair[0]}: must be a user in "):
        channel(0).open(*pair, bytes(32))


def test_a_channel_seals_for_no_other_sender_of_its_roster() -> None:
    own = channel(0)
    with pytest.raises(ParameterError, match=r"^sender = 1: must be 0, the user of this channel$"):
        own.close(1, 2, b"a share")
    assert channel(2).open(0, 2, own.close(0, 2, b"a share")) == b"a share"


@pytest.mark.parametrize("number", [-1, 2**16, None, True])
def test_a_message_type_has_sixteen_bits(number: Any) -> None:
    with pytest.raises(ParameterError, match=r"^message_type = .*: must be an integer in \[0, 65535\]$"):
        replace(CONTEXT, message_type=number)


@pytest.mark.requirement("SEA-03")
def test_a_channel_seals_once_for_each_receiver() -> None:
    sealing = channel(0)
    sealing.close(0, 1, b"first")
    sealing.close(0, 2, b"another receiver")
    with pytest.raises(Replay, match="user 1"):
        sealing.close(0, 1, b"second")


@pytest.mark.requirement("SEA-03")
def test_a_stamped_channel_seals_once_for_each_receiver_under_a_stamp_and_never_under_an_older_one() -> None:
    sealing, other = (SealedStampedChannel(CONTEXT, PRIVATE[user], ROSTER) for user in (0, 1))
    payloads = {stamp: sealing.close(stamp, 0, 1, b"a share") for stamp in (4, 7)}
    for stamp, receiver in ((7, 1), (6, 1), (6, 2), (4, 3)):
        with pytest.raises(Replay):
            sealing.close(stamp, 0, receiver, b"again")
    for stamp, payload in payloads.items():
        assert other.open(stamp, 0, 1, payload) == b"a share"
    payload = sealing.close(7, 0, 2, b"another receiver")
    assert channel(2, replace(CONTEXT, round=7)).open(0, 2, payload) == b"another receiver"
    with pytest.raises(DecryptionFailed):
        other.open(4, 0, 1, payloads[7])


@pytest.mark.requirement("SEA-03", "SEA-04")
def test_a_stamp_that_is_refused_does_not_become_the_newest() -> None:
    sealing, other = (SealedStampedChannel(CONTEXT, PRIVATE[user], ROSTER) for user in (0, 1))
    with pytest.raises(ParameterError):
        sealing.close(9, 0, 0, b"for itself")
    assert other.open(3, 0, 1, sealing.close(3, 0, 1, b"a share")) == b"a share"


P = 2**255 - 19


def x25519(scalar: bytes, point: bytes) -> bytes:
    """The function X25519 of RFC 7748, section 5, by its Montgomery ladder, in Python integers."""
    k = int.from_bytes(scalar, "little") & ~7 & (2**255 - 1) | 2**254
    u = int.from_bytes(point, "little") % 2**255 % P
    x2, z2, x3, z3 = 1, 0, u, 1
    for at in reversed(range(255)):
        if k >> at & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % P, c * b % P, a * a % P, b * b % P
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, (aa - bb) * (aa + 121665 * (aa - bb)) % P
        if k >> at & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


@pytest.mark.requirement("KEY-10")
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_public_keys_and_secrets_are_those_of_x25519(private: bytes, other: bytes) -> None:
    base = (9).to_bytes(32, "little")
    assert keys.public_key(private) == x25519(private, base)
    public = x25519(other, base)
    assert keys.agree(private, public) == x25519(private, public) == x25519(other, keys.public_key(private))


@pytest.mark.requirement("KEY-10")
@pytest.mark.parametrize("number", [P + 9, 2**255 - 1, 2**255 + 9, 2**255 + P - 2])
def test_a_public_key_is_read_as_rfc_7748_reads_it(number: int) -> None:
    """The top bit is ignored, and a coordinate from 2**255 - 19 on is reduced."""
    point = number.to_bytes(32, "little")
    assert keys.agree(PRIVATE[0], point) == x25519(PRIVATE[0], point)


@pytest.mark.requirement("KEY-01")
@pytest.mark.parametrize("point", LOW_ORDER)
def test_points_of_low_order_are_refused(point: bytes) -> None:
    with pytest.raises(WeakKey):
        keys.agree(PRIVATE[0], point)
    roster = Roster((ROSTER.keys[0], point))
    sealing = SealedChannel(CONTEXT, PRIVATE[0], roster)
    with pytest.raises(WeakKey):
        sealing.close(0, 1, b"a share")


@pytest.mark.requirement("KEY-01")
@pytest.mark.parametrize("weak", [0, 1, 2])
def test_a_weak_key_refuses_all_but_the_payloads_of_its_owner(weak: int) -> None:
    """Also for a channel that has agreed on keys as its owner before."""
    roster = Roster(tuple(LOW_ORDER[0] if user == weak else ROSTER.keys[user] for user in range(3)))
    others = [user for user in range(3) if user != weak]
    for sender, receiver in (others, others[::-1]):
        sealing = SealedChannel(CONTEXT, PRIVATE[3], roster)
        assert sealing.close(weak, sender, b"a share")
        with pytest.raises(WeakKey):
            sealing.close(sender, receiver, b"a share")


@pytest.mark.requirement("KEY-03")
@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_keys_of_other_lengths_are_refused(key: bytes) -> None:
    for call in (lambda: keys.agree(key, ROSTER.keys[0]), lambda: keys.agree(PRIVATE[0], key), lambda: Roster((key,))):
        with pytest.raises(LengthMismatch, match="32 bytes"):
            call()
    with pytest.raises(LengthMismatch):
        SealedChannel(CONTEXT, key, ROSTER)


@pytest.mark.requirement("KEY-04")
def test_a_roster_with_one_key_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="different from the key of user 0"):
        Roster((ROSTER.keys[0], ROSTER.keys[1], ROSTER.keys[0]))


@given(st.lists(st.binary(max_size=5), max_size=4), st.lists(st.binary(max_size=5), max_size=4))
def test_two_lists_of_fields_never_have_the_same_bytes(first: list[bytes], second: list[bytes]) -> None:
    assert (keys.fields(*first) == keys.fields(*second)) == (first == second)


def test_the_secret_does_not_stand_in_the_text_of_a_channel() -> None:
    assert "private" not in repr(channel(0))


@pytest.mark.requirement("ERR-02", "KEY-09")
@pytest.mark.parametrize(
    "numbers", [None, 5, "x", ["q"], {1: 2}, {b"q": 2}, [("q",)], [("q", 1, 2)], [("\u0663", 1)], {"q": -1}]
)
def test_parameters_that_are_none_have_no_hash(numbers: Any) -> None:
    with pytest.raises(ParameterError):
        keys.hash_parameters(numbers)


@pytest.mark.requirement("ERR-02", "SEA-03")
@pytest.mark.parametrize("stamp", ["a", None, 0.5, 1.0, True, -5, 2**32])
def test_a_stamp_is_an_integer_also_after_the_first_payload(stamp: Any) -> None:
    sealed = SealedStampedChannel(CONTEXT, PRIVATE[0], ROSTER)
    sealed.close(1, 0, 1, b"x")
    with pytest.raises(ParameterError, match=r"^stamp = "):
        sealed.close(stamp, 0, 2, b"x")


@pytest.mark.requirement("ERR-02", "KEY-02")
@pytest.mark.parametrize(
    "changed", [{"protocol": 5}, {"parameters": "abc"}, {"session": None}, {"round": "r"}, {"round": -1}]
)
def test_a_context_is_of_text_bytes_and_integers(changed: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"^{next(iter(changed))} = "):
        replace(CONTEXT, **changed)


@pytest.mark.requirement("ERR-02", "KEY-02")
@pytest.mark.parametrize("name", ["sender", "receiver"])
def test_the_users_of_a_lane_are_integers(name: str) -> None:
    lane = Lane(CONTEXT, 0, 1, ROSTER.keys[0], ROSTER.keys[1])
    with pytest.raises(ParameterError, match=f"^{name} = 'a'"):
        replace(lane, **{name: cast("Any", "a")})


@pytest.mark.requirement("ERR-02", "KEY-02")
def test_what_a_key_is_bound_to_is_bytes() -> None:
    info: Any = "x"
    with pytest.raises(ParameterError, match=r"^info = 'str': must be bytes$"):
        keys.derive(bytes(32), bytes(16), info)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("user", [4, -1, "0"])
def test_a_user_without_a_channel_is_named(user: Any) -> None:
    links = sealed_links(CONTEXT, dict(enumerate(PRIVATE)))
    payload = links.close(0, 1, b"text")
    acts = {"sender": partial(links.close, user, 1, b"text"), "receiver": partial(links.open, 0, user, payload)}
    for name, act in acts.items():
        with pytest.raises(ParameterError, match=rf"^{name} = {user!r}: must be "):
            act()
