"""Checks of the generator, of keys and of sealing (spec/conventions.md, sections 8 and 9)."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.generators import granted
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.cases.valid import VALID, channel, key
from secagg_spec.conformance.checks import pairs, reject
from secagg_spec.conformance.checks.base import Caller, Change, Each, Params, check, equal, fail, refuses, same
from secagg_spec.conformance.checks.streams import flipped, standard, stream
from secagg_spec.conformance.sdk.secagg_adapter import element_bytes
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto import keys, prg, sealing
from secagg_spec.crypto.sealing import SealedChannel

_PRIME = 2**32 - 5
_P25519 = 2**255 - 19
_ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_LOW_ORDER = (0, 1, *_ORDER_8, _P25519 - 1, _P25519, _P25519 + 1)
_TELLING = 128
"""Bits of one piece of a stream. Fewer than 2**18 pieces are compared: two are equal with probability below 2**-92."""
SEARCHED = {
    2**31 + 10: (54709942, 5),
    2**31 + 11: (421802192, 0),
    3 * 2**30 - 1: (323023383, 20),
    3 * 2**30: (376974474, 0),
    2**32 - 6: (415958926, 0),
    2**32 - 5: (541302533, 4),
    2**32 - 4: (19033026, 4),
    2**32 - 3: (360620339, 15),
    2**32 - 2: (202793917, 2),
    2**32 - 1: (123627070, 0),
}
"""Words at the rejection limit of a common modulus: the first that is skipped, or the last that is used. A random key
produces a given one once in 2**32 words. For each word: the little-endian integer of a key found by search, and the
position of the word in the key's stream."""
_EXPAND, _CLOSE, _OPEN = "prg.expand", "seal.close", "seal.open"


def low_order(draw: Any) -> bytes:
    """Draw a public key of low order. The top bit is not part of the number."""
    point = draw(among(_LOW_ORDER)) + draw(among((0, 2**255)))
    return int(point).to_bytes(32, "little")


def _wrong_length(draw: Any, data: str) -> str:
    """Draw a key of the wrong length: cut, extended, or empty."""
    return one_of(draw, (data[:-2], data + "00", "", data[:32], data + data))


@check("prg.expand/exact", "PRG-01", "RND-02", applies=standard)
def expand(draw: Any, call: Caller) -> None:
    """The elements of a key are the little-endian words of its key stream, without the rejected words."""
    valid = VALID[_EXPAND](draw, call.caps)
    _expanded(call, valid.params)


def any_stream(draw: Any, call: Caller) -> None:
    """Check the stream of the text; with another generator, check only that a key always gives the same stream."""
    params = VALID[_EXPAND](draw, call.caps).params
    if standard(call.caps):
        _expanded(call, params)
        return
    asked = params["q"], bytes.fromhex(params["key"]), params["n"]
    same("the stream of one key, asked for twice", stream(call, *asked), stream(call, *asked))


_SKIPS = 122500
"""How many elements show that a word is skipped."""


def _has_default(caps: Capabilities) -> bool:
    return standard(caps) and _PRIME in strategies.moduli(caps.range(_EXPAND, "q"), prime=False)


def _gives(caps: Capabilities, n: int) -> bool:
    """Return whether the adapter gives streams of the text of this number of elements."""
    return standard(caps) and n in caps.range(_EXPAND, "n")


@check(
    "prg.expand/rejection",
    "PRG-01",
    "RND-02",
    applies=lambda caps: _has_default(caps) and _gives(caps, _SKIPS),
    examples=1,
)
def rejection(draw: Any, call: Caller) -> None:
    """The word 122497 of the stream of key 0x65d is skipped, because it is not below 2**32 - 5."""
    _expanded(call, {"q": _PRIME, "key": (0x65D).to_bytes(32, "little").hex(), "n": _SKIPS})


def limit(q: int) -> int:
    """Return the first word that is skipped modulo q (RND-02)."""
    return 2**32 // q * q


def searched_key(word: int) -> bytes:
    """Return the key of `SEARCHED` whose stream has the word early."""
    return SEARCHED[word][0].to_bytes(32, "little")


def _edges(caps: Capabilities) -> list[tuple[int, int]]:
    """Return each declared modulus with a searched word at its limit, as pairs."""
    allowed = caps.range(_EXPAND, "q")
    known = {*SEARCHED, 2**31 - 1, 2**32 - 1, 3, *strategies.moduli(allowed, prime=False)}
    words = [(q, word) for q in sorted(known) if q in allowed for word in (limit(q), limit(q) - 1)]
    return [(q, word) for q, word in words if word in SEARCHED and _gives(caps, SEARCHED[word][1] + 4)]


@check("prg.expand/limit", "PRG-01", "RND-02", applies=lambda caps: bool(_edges(caps)), examples=1)
def at_the_limit(draw: Any, call: Caller) -> None:
    """The first word at or above the limit is skipped, and the word before it is used. Searched keys produce both."""
    for q, word in _edges(call.caps):
        key, at = searched_key(word), SEARCHED[word][1]
        _expanded(call, {"q": q, "key": key.hex(), "n": at + 4})


def _expanded(call: Caller, params: dict[str, Any]) -> None:
    want = prg.expand(bytes.fromhex(params["key"]), Ring(params["q"]), params["n"])
    same(_EXPAND, call.vector(_EXPAND, params, "value", params["n"]), want)


@check("prg.expand/prefix", "PRG-03", examples=40, wide=True)
def prefix(draw: Any, call: Caller) -> None:
    """A shorter output is a prefix of a longer output of the same key."""
    params, allowed = (
        VALID[_EXPAND](draw, call.caps).params,
        strategies.moduli(call.caps.range(_EXPAND, "q"), prime=False),
    )
    wasteful = sorted(allowed, key=limit)[:2]
    n, params["q"] = params["n"], int(draw(among(wasteful) | st.sampled_from(allowed)))
    shorter = granted(call.caps, draw(st.integers(0, n)))
    long = call.vector(_EXPAND, params, "value", n)
    short = call.vector(_EXPAND, {**params, "n": shorter}, "value", shorter)
    call.by_relation |= not standard(call.caps)
    same(f"{shorter} of {n} elements", short, long[:shorter])


@refuses(_EXPAND, "key-length", "PRG-02", applies=standard)
def expand_length(draw: Any, params: Params) -> Change:
    """A key that is not 32 bytes long is refused."""
    text = _wrong_length(draw, params["key"])
    return {"key": text}, reject.KEY_LENGTH, f"the key has {len(text) // 2} bytes"


LONG = 2**18 + 40
"""How many elements of 4 bytes take a stream of more than 2**16 blocks of 16 bytes."""


def _long(caps: Capabilities) -> tuple[int, int]:
    """Return the largest modulus, and how many of its elements take `LONG` words."""
    q = max(strategies.moduli(caps.range(_EXPAND, "q"), prime=False))
    return q, 4 * LONG // element_bytes(q)


@check(
    "prg.expand/long",
    "PRG-01",
    applies=lambda caps: not standard(caps) or _gives(caps, _long(caps)[1]),
    examples=1,
    wide=True,
)
def expand_long(draw: Any, call: Caller) -> None:
    """A stream continues beyond 2**16 blocks. The stream of a generator other than the text's does not repeat."""
    q, n = _long(call.caps)
    params = {"q": q, "key": bytes(range(32)).hex(), "n": n}
    if standard(call.caps):
        _expanded(call, params)
        return
    values, size = stream(call, q, bytes(range(32)), n), -(-_TELLING // (q.bit_length() - 1))
    pieces = set(map(tuple, values[: n // size * size].reshape(-1, size).tolist()))
    if len(pieces) < n // size:
        fail(f"of {n // size} pieces of {size} elements modulo {q}, {n // size - len(pieces)} come again")


@check("key.agree/exact", "KEY-02", "KEY-10", examples=40)
def agree(draw: Any, call: Caller) -> None:
    """Both sides of two key pairs compute the same X25519 shared secret."""
    privates = key(draw), draw(among((bytes([7]) * 32, bytes(range(1, 33)))))
    publics = lightsecagg_parties.public_keys(list(privates))
    want = keys.agree(privates[0], publics[1]).hex()
    for own, other in ((0, 1), (1, 0)):
        got = call.result("key.agree", {"private": privates[own].hex(), "public": publics[other].hex()}).get("secret")
        equal("the secret is", got, want)


@check("key.agree/low-order", "KEY-01", examples=30)
def agree_weak(draw: Any, call: Caller) -> None:
    """A public key of low order, which gives an all-zero secret, is refused."""
    public = low_order(draw).hex()
    call.refused("key.agree", {"private": key(draw).hex(), "public": public}, reject.WEAK_KEY, "the secret is all zero")


@refuses("key.agree", "lengths", "KEY-03", examples=8)
def agree_lengths(draw: Any, params: Params) -> Change:
    """Keys that are not 32 bytes long are refused."""
    name = draw(Each(("private", "public")))
    text = _wrong_length(draw, params[name])
    return {name: text}, reject.KEY_LENGTH, f"{name} has {len(text) // 2} bytes"


@check("key.derive/exact", "KEY-02")
def derive(draw: Any, call: Caller) -> None:
    """The binding has exactly the fields of the text. The key is derived from secret, session and binding."""
    params = VALID["key.derive"](draw, call.caps).params
    binding, derived = _derived(params)
    result = call.result("key.derive", params)
    for name, want in (("binding", binding.hex()), ("key", derived.hex())):
        equal(f"the {name} is", result.get(name), want)


def _derived(params: dict[str, Any]) -> tuple[bytes, bytes]:
    numbers = {name: int(text) for name, text in params["parameters"]}
    session = bytes.fromhex(params["session"])
    context = sealing.Context(params["protocol"], keys.hash_parameters(numbers), session, int(params["round"]), 0)
    one, other = (bytes.fromhex(params[name]) for name in ("sender_key", "receiver_key"))
    binding = sealing.binding(context, params["sender"], params["receiver"], one, other)
    return binding, keys.derive(bytes.fromhex(params["secret"]), session, binding)


@refuses("key.derive", "lengths", "KEY-03", examples=4)
def derive_lengths(draw: Any, params: Params) -> Change:
    """Secrets, sessions and keys of the wrong length are refused."""
    name = draw(Each(("sender_key", "receiver_key", "session", "secret")))
    text = params[name] + "00" if name in ("session", "secret") else _wrong_length(draw, params[name])
    return {name: text}, reject.KEY_LENGTH, f"{name} has {len(text) // 2} bytes"


@check("seal.close/exact", "SEA-01", "SEA-08", "KEY-02", "KEY-07", "LSA-18")
def close(draw: Any, call: Caller) -> None:
    """A payload is sealed as the text says and is 28 bytes longer than its plaintext."""
    params = VALID[_CLOSE](draw, call.caps).params
    own = channel(params, bytes.fromhex(params["private"]))
    plaintexts = [(receiver, bytes.fromhex(text)) for receiver, text in params["plaintexts"]]
    want = [own.close(params["sender"], receiver, plaintext).hex() for receiver, plaintext in plaintexts]
    got = call.result(_CLOSE, params).get("payloads")
    equal("the payloads are", got, want)


def _ends(params: dict[str, Any], sender: int, own: int) -> tuple[dict[str, Any], SealedChannel]:
    """Return the members of a request by user `own` with known keys, and the sender's channel."""
    privates = [user.to_bytes(2, "little") * 16 for user in range(1, params["N"] + 1)]
    changed = {**params, "roster": [public.hex() for public in lightsecagg_parties.public_keys(privates)]}
    return {**changed, "private": privates[own].hex()}, channel(changed, privates[sender])


@check("seal.close/long", "SEA-01", examples=1)
def close_long(draw: Any, call: Caller) -> None:
    """Plaintexts of more than 2**8 and of more than 2**16 blocks are sealed like short ones."""
    params = VALID[_CLOSE](draw, call.caps).params
    sender, receiver = params["sender"], params["plaintexts"][0][0]
    for size in pairs.SIZES:
        given, own = _ends(params, sender, sender)
        plaintext = pairs.long_plaintexts(size)[-1]
        call.transcript.clear()
        payloads = call.result(_CLOSE, {**given, "plaintexts": [[receiver, plaintext.hex()]]}).get("payloads")
        if payloads != [own.close(sender, receiver, plaintext).hex()]:
            fail(f"a plaintext of {size} bytes is not sealed as in the text")


@check("seal.open/long", "SEA-01", examples=1)
def open_long(draw: Any, call: Caller) -> None:
    """Payloads of more than 2**8 and of more than 2**16 blocks are opened like short ones."""
    params = VALID[_OPEN](draw, call.caps).params
    sender, receiver = params["sender"], params["receiver"]
    for size in pairs.SIZES:
        given, own = _ends(params, sender, receiver)
        plaintext = pairs.long_plaintexts(size)[-1]
        call.transcript.clear()
        payload = own.close(sender, receiver, plaintext).hex()
        if call.result(_OPEN, {**given, "payload": payload}).get("plaintext") != plaintext.hex():
            fail(f"the payload of a plaintext of {size} bytes does not open to it")


@refuses(_CLOSE, "twice", "SEA-03", examples=20)
def close_twice(draw: Any, params: Params) -> Change:
    """A channel refuses to seal a second payload for the same receiver."""
    receiver, plaintext = draw(among(params["plaintexts"]))
    plaintexts = [*params["plaintexts"], [receiver, plaintext + "00"]]
    return {"plaintexts": plaintexts}, reject.AGAIN, f"user {receiver} gets a second payload"


@refuses(_CLOSE, "low-order", "KEY-01", examples=20)
def close_weak(draw: Any, params: Params) -> Change:
    """Sealing for a user is refused when its public key gives an all-zero secret."""
    receiver = params["plaintexts"][-1][0]
    roster = _with_key(params["roster"], receiver, low_order(draw).hex())
    return {"roster": roster}, reject.WEAK_KEY, f"the secret with user {receiver} is all zero"


@check("seal.open/exact", "SEA-01", "KEY-02", "LSA-18")
def open_payload(draw: Any, call: Caller) -> None:
    """The receiver opens a payload to its plaintext."""
    params = VALID[_OPEN](draw, call.caps).params
    own = channel(params, bytes.fromhex(params["private"]))
    want = own.open(params["sender"], params["receiver"], bytes.fromhex(params["payload"])).hex()
    got = call.result(_OPEN, params).get("plaintext")
    equal("the plaintext is", got, want)


@refuses(_OPEN, "altered", "SEA-02", examples=50)
def open_altered(draw: Any, params: Params) -> Change:
    """A payload that was altered, cut or extended does not open."""
    payload = altered(draw, bytes.fromhex(params["payload"]))
    return {"payload": payload.hex()}, reject.BAD_CIPHERTEXT, "the payload was altered"


def wrong_keys(draw: Any, right: list[str]) -> tuple[list[str], frozenset[str], str]:
    """Draw a list of keys that is not N distinct keys of 32 bytes. Return it, the codes, and what is wrong with it."""
    how = draw(among(("equal", "long", "few", "many")))
    lists = {
        "equal": [right[1], *right[1:]],
        "long": [right[0] + "00", *right[1:]],
        "few": right[:-1],
        "many": [*right, "07" * 32],
    }
    return lists[how], reject.EQUAL_KEYS if how == "equal" else reject.KEY_LENGTH, how


def altered(draw: Any, payload: bytes) -> bytes:
    """Draw a payload that has one bit flipped, is cut, or is extended."""
    how = draw(among(("bit", "cut", "tag", "longer")))
    if how == "bit":
        return flipped(draw, payload)
    if how == "longer":
        return payload + bytes(draw(st.integers(1, 17)))
    return payload[: draw(st.integers(0, len(payload) - 1)) if how == "cut" else -1]


@refuses(_OPEN, "another-nonce", "SEA-09", examples=7)
def open_nonce(draw: Any, params: Params) -> Change:
    """A payload does not open if it was sealed under a nonce other than the one that its plaintext gives."""
    own = channel(params, bytes.fromhex(params["private"]))
    way = own._lane(params["sender"], params["receiver"])
    cipher, associated = way._cipher(_secret(params))
    plaintext, right = b"a share", way._nonce(_secret(params), associated, b"a share")
    other = way._nonce(_secret(params), associated, b"a shard")
    nonce = draw(Each((bytes(12), other, right[:-1] + bytes([right[-1] ^ 1]))))
    payload = nonce + cipher.encrypt(nonce, plaintext, associated)
    return {"payload": payload.hex()}, reject.BAD_CIPHERTEXT, "its nonce is not the one of its plaintext"


_KINDS = ("session", "round", "type", "receiver", "roster", "reversed", "sender")
_PROTOCOLS = ("lightsecagg-active", "basecagg")


@check("seal.open/another-context", "SEA-02", "KEY-02", "LSA-18", examples=50)
def open_elsewhere(draw: Any, call: Caller) -> None:
    """A payload does not open if any field of its binding differs from what the receiver expects."""
    params = VALID[_OPEN](draw, call.caps).params
    kind = draw(among(_KINDS))
    number, step = draw(among(("q", "N", "D", "U", "T", "d"))), draw(among((1, -1)))
    protocol, prime = draw(among(_PROTOCOLS)), draw(among(strategies.PRIMES))
    changed = prime if number == "q" else params[number] + (step if params[number] else 1)
    right, ends = channel(params, bytes(32)).context, (params["sender"], params["receiver"])
    other = _seal(replace(right, protocol=protocol), params, *ends)
    payloads = {kind: _sealed_otherwise(params, kind), f"protocol ({protocol})": other}
    if changed != params[number]:
        numbers = {name: params[name] for name in ("q", "N", "D", "U", "T", "d")} | {number: changed}
        context = replace(right, parameters=keys.hash_parameters(numbers))
        payloads[f"{number} ({changed})"] = _seal(context, params, *ends)
    for name, payload in payloads.items():
        why = f"it was sealed for another {name}"
        call.refused(_OPEN, {**params, "payload": payload.hex()}, reject.BAD_CIPHERTEXT, why)


def _secret(params: dict[str, Any]) -> bytes:
    """Return the secret that both ends share. With it the receiver can seal payloads that nobody else could."""
    return keys.agree(bytes.fromhex(params["private"]), bytes.fromhex(params["roster"][params["sender"]]))


def _sealed_otherwise(params: dict[str, Any], name: str) -> bytes:
    """Return a payload that was sealed with one thing different from the request."""
    sealed, sender, receiver = dict(params), params["sender"], params["receiver"]
    third = next(user for user in range(params["N"]) if user not in (sender, receiver))
    if name == "session":
        sealed["session"] = ("01" if params["session"][:2] == "00" else "00") + params["session"][2:]
    elif name == "round":
        sealed["round"] = str(int(params["round"]) ^ 1)
    elif name == "type":
        sealed["type"] = params["type"] ^ 1
    elif name == "roster":
        sealed["roster"] = _with_key(params["roster"], sender, params["roster"][third])
        sealed["roster"][third] = params["roster"][sender]
    context = channel(sealed, bytes(32)).context
    users = {"receiver": (sender, third), "sender": (third, receiver), "reversed": (receiver, sender)}
    return _seal(context, sealed, *users.get(name, (sender, receiver)), _secret(params))


def _seal(
    context: sealing.Context, params: dict[str, Any], sender: int, receiver: int, secret: bytes | None = None
) -> bytes:
    """Return a payload sealed under a given secret; by default under the secret of the request."""
    public = (bytes.fromhex(params["roster"][user]) for user in (sender, receiver))
    return sealing.Lane(context, sender, receiver, *public).seal(secret or _secret(params), b"a share")


@refuses(_OPEN, "low-order", "KEY-01", examples=20)
def open_weak(draw: Any, params: Params) -> Change:
    """Opening is refused if the sender's public key gives an all-zero secret, even for a payload sealed under it."""
    sender, receiver = params["sender"], params["receiver"]
    roster = _with_key(params["roster"], sender, low_order(draw).hex())
    params = {**params, "roster": roster}
    if draw(st.booleans()):
        context = channel(params, bytes(32)).context
        params["payload"] = _seal(context, params, sender, receiver, bytes(32)).hex()
    return params, reject.WEAK_KEY, f"the secret with user {sender} is all zero"


@refuses(_OPEN, "users", "SEA-04", examples=2)
def open_users(draw: Any, params: Params) -> Change:
    """A payload from a user to itself is refused. A payload from or to a user outside the roster is refused."""
    others = {"sender": params["receiver"], "receiver": params["sender"]}
    name, user = draw(Each((name, user) for name in others for user in (others[name], *_outsiders(params["N"]))))
    params = {**params, name: user}
    if user == others[name]:
        params["payload"] = _seal(channel(params, bytes(32)).context, params, user, user).hex()
    return params, reject.PEER, f"the sender is {params['sender']} and the receiver {params['receiver']}"


@refuses(_CLOSE, "users", "SEA-04", examples=2)
def close_users(draw: Any, params: Params) -> Change:
    """Sealing from a user to itself is refused, and so is sealing from or to a user outside the roster."""
    N, sender = params["N"], params["sender"]
    receiver, text = params["plaintexts"][-1]
    changes: list[dict[str, Any]] = [
        {"plaintexts": [*params["plaintexts"][:-1], [user, text]]} for user in (sender, *_outsiders(N))
    ]
    changes += [{"sender": user} for user in (receiver, *_outsiders(N))]
    changed = draw(Each(changes))
    return changed, reject.PEER, f"{changed} has not two different users of the roster"


def _outsiders(N: int) -> tuple[int, ...]:
    return N, 2**31 - 1, -1


def _fields_of_context(operation: str) -> None:
    @refuses(operation, "session-and-round", "KEY-02")
    def session_and_round(draw: Any, params: Params) -> Change:
        """A session that is not 16 bytes long is refused. A round that does not fit its field is refused."""
        session = params["session"]
        changes = [{"session": text} for text in (session[:-2], session + "00", "", session + session)]
        changed = draw(among([*changes, *({"round": str(n)} for n in (2**32, 2**32 + 1, 2**64, -1))]))
        return changed, reject.FIELD, f"{changed} does not fit its field"


def _with_key(roster: list[str], user: int, text: str) -> list[str]:
    return [text if at == user else public for at, public in enumerate(roster)]


def _rosters(operation: str) -> None:
    @refuses(operation, "equal-keys", "KEY-04")
    def equal_keys(draw: Any, params: Params) -> Change:
        """A roster in which two users have the same public key is refused."""
        one, other = strategies.subset(draw, range(params["N"]), 2, 2)
        roster = _with_key(params["roster"], one, params["roster"][other])
        return {"roster": roster}, reject.EQUAL_KEYS, f"users {one} and {other} have one key"

    @refuses(operation, "key-lengths", "KEY-03", examples=20)
    def key_lengths(draw: Any, params: Params) -> Change:
        """A key that is not 32 bytes long is refused. A roster that does not have N keys is refused."""
        roster, private = list(params["roster"]), params["private"]
        changed = draw(among(("private", "public", "shorter", "longer")))
        if changed == "private":
            private = _wrong_length(draw, private)
        elif changed == "public":
            user = draw(st.integers(0, len(roster) - 1))
            roster[user] = _wrong_length(draw, roster[user])
        else:
            roster = roster[:-1] if changed == "shorter" else [*roster, "07" * 32]
        params = {**params, "private": private, "roster": roster}
        return params, reject.KEY_LENGTH, f"the length is wrong ({changed})"


def broken_parameters(operation: str) -> None:
    """Register the check of LSA-01 for an operation."""

    @check(f"{operation}/parameters", "LSA-01", examples=20)
    def parameters(draw: Any, call: Caller) -> None:
        """Parameters that break a constraint are refused."""
        valid = VALID[operation](draw, call.caps)
        params = valid.params
        options: tuple[dict[str, int], ...] = (
            {"T": 0},
            {"T": params["U"]},
            {"U": params["N"] - params["D"] + 1},
            {"D": params["N"] - max(params["U"], params["T"] + 2) + 1},
            {"D": -1},
            {"d": 0},
        )
        changed = draw(among(options))
        rand = call.randomness(operation, valid.rand)
        why = f"{changed} breaks a constraint of LSA-01"
        call.refused(operation, {**params, **changed}, reject.BAD_PARAM, why, rand)


for _name in (_CLOSE, _OPEN):
    _rosters(_name)
    broken_parameters(_name)
for _name in (_CLOSE, _OPEN, "key.derive"):
    _fields_of_context(_name)
