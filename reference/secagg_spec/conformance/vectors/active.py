"""Vectors of one party of a round in the active profile, step by step (spec/lightsecagg.md, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases.requests import shares_length
from secagg_spec.conformance.checks.base import (
    BAD_CIPHERTEXT,
    BAD_PARAM,
    BAD_SHARE,
    LENGTH,
    MALFORMED,
    NONCANONICAL,
    OUTSIDE,
    TOO_FEW,
    TWICE,
)
from secagg_spec.conformance.checks.crypto import AGAIN, EQUAL_KEYS, KEY_LENGTH, WEAK_KEY
from secagg_spec.conformance.checks.lightsecagg_active import BAD_SIGNATURE, NOT_64_EACH
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE
from secagg_spec.conformance.checks.scripts import (
    BAD_VECTOR,
    ELSEWHERE,
    NOT_ALLOWED,
    NOTHING_CAME,
    OUT_OF_TURN,
    SECOND,
    STRANGER,
)
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
)
from secagg_spec.conformance.vectors.code import VANDERMONDE
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.conformance.vectors.played import (
    HEADER_FAULTS,
    Fault,
    Scene,
    altered,
    besides,
    by,
    faulty,
    having,
    longer,
    no_party,
    same,
    shorter,
    taken,
    to,
)
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import sign, signed_fields
from secagg_spec.protocols.agreement import PURPOSE, Proposal
from secagg_spec.protocols.codec import Message, vector_bytes, vector_from_bytes
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg.active import PHASES, PrivateKeys, PublicKeys, SignedSet
from secagg_spec.protocols.lightsecagg.round import MaskShare, SurvivingSet
from secagg_spec.protocols.steps import SERVER, Network

_TINY: dict[str, int] = {"q": BYTE, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "W": 4}
_FEW: dict[str, int] = {"q": LARGE[2], "N": 4, "D": 1, "U": 3, "T": 1, "d": 3, "W": 3}
_LEAST: dict[str, int] = {"q": LARGE[2], "N": 3, "D": 0, "U": 2, "T": 1, "d": 2, "W": 3}
_WIDE: dict[str, int] = {"q": LARGE[2], "N": 8, "D": 3, "U": 4, "T": 1, "d": 5, "W": 5}
_OWN = 2
"""The user whose steps are refused."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    covers = "One party of a round of the active profile, step by step: what it signs, and what it answers for."
    made = begun("active", covers)
    _whole(made)
    _user_messages(made)
    _user_steps(made)
    _user_sets(made)
    _quorums(made)
    _quorum_signatures(made)
    _user_payloads(made)
    _user_requests(made)
    _server_messages(made)
    _server_steps(made)
    _nobody_shares(made)
    _server_signatures(made)
    _server_requests(made)
    return made


# -------------------------------------------------------------------------------------------------------- a round


@dataclass(frozen=True, eq=False)
class _Scene(Scene):
    """A round of the active profile."""

    of_user: ClassVar[str] = "lightsecagg_active.user"
    of_server: ClassVar[str] = "lightsecagg_active.server"
    phases: ClassVar[tuple[str, ...]] = PHASES

    @property
    def parameters(self) -> lightsecagg_active.Parameters:
        return lightsecagg_active.Parameters(**self.numbers)

    def keys(self) -> dict[int, PrivateKeys]:
        """Return the private keys of all users."""
        pairs = zip(self.privates(), self.privates("signing"), strict=True)
        return {user: PrivateKeys(*pair) for user, pair in enumerate(pairs)}

    def opened(self) -> Network:
        return lightsecagg_active.open_round(
            self.parameters, self.updates(), keys=self.keys(), session=self.session, round=self.round
        )

    def given(self, party: int) -> dict[str, Any]:
        public = {"roster": self.roster.sealing, "verification": self.roster.verification}
        shown = {name: [key.hex() for key in roster.keys] for name, roster in public.items()}
        if party == SERVER:
            return shown
        own = self.keys()[party]
        return {"private": own.sealing.hex(), "signing": own.signing.hex(), **shown}

    @property
    def roster(self) -> PublicKeys:
        """The public keys of all users."""
        return lightsecagg_active.roster_of(self.parameters, self.keys())

    def context(self, kind: type[Message]) -> Context:
        """Return the context that the seals and signatures of a message type are bound to."""
        sealing = self.roster.sealing
        return lightsecagg_active.binding_context(self.parameters, self.session, self.round, kind, sealing)

    def bound(self, keys: bytes | None, *names: str) -> bytes:
        """Return the hash of the parameters with these names, and of `keys` if given."""
        return hash_parameters({name: self.numbers[name] for name in names}, keys)

    @property
    def surviving(self) -> tuple[int, ...]:
        """The surviving set."""
        message = self.sent[SERVER, "upload"][0]
        assert isinstance(message, SurvivingSet)
        return tuple(message.users)

    def signature(self, user: int, members: Sequence[int] | None = None, **changed: Any) -> bytes:
        """Return a user's signature on the surviving set or on `members`, optionally in a changed context."""
        content = Proposal(self.surviving if members is None else tuple(members)).content()
        data = signed_fields(replace(self.context(SignedSet), **changed), PURPOSE, user, content)
        return sign(self.privates("signing")[user], data)

    def shown(self, signers: Sequence[int], signatures: Sequence[bytes] | None = None) -> Call:
        """Return the step `recover` with another quorum. Its signatures are right unless they are given."""
        right = [self.signature(user) for user in signers] if signatures is None else signatures
        return altered(self, _OWN, 3, 0, having(signers=tuple(signers), signatures=b"".join(right)))

    def announced(self, *users: int) -> Call:
        """Return the step `confirm` with another surviving set."""
        return altered(self, _OWN, 2, 0, having(users=users))


def _whole(made: VectorFile) -> None:
    """Add the views of parties in whole rounds. Each is one script, and all scripts of a round fit together."""
    few, tiny = _Scene("script-active", _FEW), _Scene("script-active-tiny", _TINY)
    for scene, parties in ((few, (0, 1, 2, 3, SERVER)), (tiny, (4, SERVER))):
        for party in parties:
            who = "server" if party == SERVER else f"user-{party}"
            clauses = (
                ("LSA-25", "LSA-06", "LSA-30")
                if party == SERVER
                else ("LSA-21", "LSA-26", "LSA-31", "LSA-34", "KEY-08", "KEY-09", "SIG-01")
            )
            flags = ["AllSigners", "SignerOrder"] if party == SERVER else ["Confirmation", "Binding", "Attempt"]
            comment = f"a whole round as {who.replace('-', ' ')} sees it; nobody drops out"
            taken(made, f"{scene.id}-{who}", scene, party, clauses, flags, comment, operations=True)
    _orders(made)
    _dropouts(made)


def _orders(made: VectorFile) -> None:
    scene = _Scene("active-server-order", _TINY)
    calls = scene.calls(SERVER)
    calls[2] = replace(calls[2], inbox=tuple(calls[2].inbox[at] for at in (3, 0, 4, 2, 1)))
    comment = "the signatures come in another order than that of the users"
    taken(made, scene.id, scene, SERVER, ["LSA-25"], ["SignerOrder"], comment, calls=calls)


def _dropouts(made: VectorFile) -> None:
    each = {"share": [7], "upload": [0], "confirm": [4], "recover": [2]}
    for name, numbers, drop, party, clauses, flags, comment in (
        ("user-smaller-set", _FEW, {"upload": [0]}, 3, ["LSA-21"], ["Confirmation"], "user 0 does not survive"),
        ("user-few-signers", _FEW, {"confirm": [3]}, 1, ["LSA-26"], ["Binding"], "W users sign, and user 3 does not"),
        ("user-each-phase", _WIDE, each, 6, ["LSA-21"], ["Confirmation"], "one user drops out in each phase"),
        ("server-w-signers", _FEW, {"confirm": [1]}, SERVER, ["LSA-30"], ["LateDropout"], "exactly W users sign"),
        ("server-before-recover", _FEW, {"recover": [1]}, SERVER, ["LSA-30"], ["LateDropout"], "a signer is silent"),
        ("server-each-phase", _WIDE, each, SERVER, ["LSA-30"], ["LateDropout"], "one user drops out in each phase"),
    ):
        scene = _Scene(f"active-{name}", numbers, drop)
        taken(made, scene.id, scene, party, clauses, flags, comment)


# --------------------------------------------------------------------------------------------------------- a user


def _user_messages(made: VectorFile) -> None:
    for at, phase in enumerate(PHASES):
        if at:
            _user_headers(made, at, phase)
        scene = _Scene(f"active-user-{phase}-type", _FEW)
        call = scene.calls(_OWN)[at]
        call = replace(call, inbox=(*call.inbox, scene.calls(_OWN)[1 if at != 1 else 2].inbox[0]))
        comment = "a message of another step besides"
        faulty(made, scene, _OWN, Fault(at, call, Refusal(OUT_OF_TURN), ("MSG-02",), ("AnotherType",), comment))
    for at in (2, 3):
        for name, broken, comment in (
            ("longer", longer, "a byte follows"),
            ("cut", shorter, "one is missing"),
        ):
            scene = _Scene(f"active-user-{PHASES[at]}-bytes-{name}", _FEW)
            call, why = altered(scene, _OWN, at, 0, broken), f"the bytes of a message: {comment}"
            faulty(made, scene, _OWN, Fault(at, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), why))


def _user_headers(made: VectorFile, at: int, phase: str) -> None:
    trace = ("RefusedStep",) if at > 1 else ()
    for name, change, flag, comment in (*HEADER_FAULTS, ("receiver", to(3), "AnotherReceiver", "a message for user 3")):
        scene = _Scene(f"active-user-{phase}-{name}", _FEW)
        call = altered(scene, _OWN, at, 0, change)
        faulty(made, scene, _OWN, Fault(at, call, Refusal(ELSEWHERE), ("MSG-03",), (flag, *trace), comment))
    for sender in (3, _OWN) if at > 1 else ():
        scene = _Scene(f"active-user-{phase}-from-{sender}", _FEW)
        call, comment = altered(scene, _OWN, at, 0, by(sender)), f"a message from user {sender} and not the server"
        faulty(made, scene, _OWN, Fault(at, call, Refusal(STRANGER), ("MSG-03",), ("Stranger", *trace), comment))
    scene = _Scene(f"active-user-{phase}-twice", _FEW)
    call, comment = besides(scene, _OWN, at, 0, same), "one message stands in the inbox twice"
    faulty(made, scene, _OWN, Fault(at, call, Refusal(SECOND), ("MSG-04",), ("SecondMessage", *trace), comment))


def _user_steps(made: VectorFile) -> None:
    for at, clause in ((1, "LSA-04"), (2, "LSA-22"), (3, "LSA-12")):
        scene = _Scene(f"active-user-{PHASES[at]}-again", _FEW)
        flags = ("SecondSet",) if PHASES[at] == "confirm" else ("Phases",)
        call, comment = scene.calls(_OWN)[at], f"the step {PHASES[at]} a second time"
        faulty(made, scene, _OWN, Fault(at + 1, call, Refusal(AGAIN), (clause,), flags, comment))
    for name, before, flags, comment in (
        ("another-set", 3, ("SecondSet",), "a second surviving set, without user 3, after the first was signed"),
        ("late-set", 4, ("Phases",), "a second surviving set, without user 3, after the user answered"),
    ):
        scene = _Scene(f"active-user-{name}", _FEW)
        faulty(made, scene, _OWN, Fault(before, scene.announced(0, 1, 2), Refusal(AGAIN), ("LSA-22",), flags, comment))
    for name, at, before in (("upload-first", 1, 0), ("confirm-early", 2, 1), ("recover-early", 3, 2)):
        scene = _Scene(f"active-user-{name}", _FEW)
        call, comment = scene.calls(_OWN)[at], f"the step {PHASES[at]} before its turn"
        faulty(made, scene, _OWN, Fault(before, call, Refusal(OUT_OF_TURN), ("MSG-03",), ("Phases",), comment))


def _user_sets(made: VectorFile) -> None:
    for name, users, codes, clause, flag, comment in (
        ("small", (1, 2), TOO_FEW, "LSA-09", "AnySet", "T + 1 users survive"),
        ("twice", (0, 1, 2, 2), TWICE, "LSA-10", "AnySet", "user 2 is named twice, and T + 2 users are named"),
        ("outside", (0, 1, 2, 3, 4), OUTSIDE, "LSA-10", "AnySet", "user N is named"),
        ("server", (0, 1, 2, 3, SERVER), OUTSIDE, "LSA-10", "AnySet", "the server is named"),
        ("not-held", (0, 1, 2, 3), OUTSIDE, "LSA-11", "AnySet", "the share of user 3 never came"),
        ("left-out", (0, 1, 3), OUTSIDE, "LSA-20", "LeftOut", "T + 2 users survive, and the user itself does not"),
    ):
        scene = _Scene(f"active-user-set-{name}", _FEW, {"share": [3]} if name == "not-held" else {})
        fault = Fault(2, scene.announced(*users), Refusal(codes), (clause,), (flag, "RefusedStep"), comment)
        faulty(made, scene, _OWN, fault)
    for name, users, comment in (
        ("order", (0, 2, 1, 3), "the right users, with 2 before 1"),
        ("descending", (3, 2, 1, 0), "the right users in descending order"),
    ):
        scene, refusal = _Scene(f"active-user-set-{name}", _FEW), Refusal(MALFORMED, ("server",))
        clauses, flags = ("LSA-32", "ADP-21"), ("SetOrder", "RefusedStep")
        faulty(made, scene, _OWN, Fault(2, scene.announced(*users), refusal, clauses, flags, comment))
    scene = _Scene("active-user-set-none", _FEW)
    fault = Fault(2, Call("confirm"), Refusal(NOTHING_CAME), ("LSA-09",), ("NoSet",), "no surviving set came")
    faulty(made, scene, _OWN, fault)


def _quorums(made: VectorFile) -> None:
    """Add quorums with too few, repeated or wrong signers, and quorums of the wrong length."""
    scene = _Scene("active-user-quorum-none", _FEW)
    clauses, flags = ("LSA-29", "LSA-26"), ("FewSigners", "RefusedStep")
    fault = Fault(3, Call("recover"), Refusal(NOTHING_CAME), clauses, ("NoQuorum",), "no quorum came")
    faulty(made, scene, _OWN, fault)
    few: dict[str, tuple[int, ...]] = {"empty": (), "own": (2,), "one-short": (1, 2), "others": (0, 3)}
    for name, signers in few.items():
        scene = _Scene(f"active-user-quorum-{name}", _FEW)
        comment = f"{len(signers)} signers, and W = 3"
        faulty(made, scene, _OWN, Fault(3, scene.shown(signers), Refusal(TOO_FEW), clauses, flags, comment))
    _wrong_signers(made)
    for name, signers in (("order", (0, 2, 1, 3)), ("descending", (3, 2, 1, 0))):
        scene, refusal = _Scene(f"active-user-quorum-{name}", _FEW), Refusal(MALFORMED, ("server",))
        comment = f"the signers are {list(signers)}, and the signatures stand in this order"
        fault = Fault(3, scene.shown(signers), refusal, ("LSA-33", "ADP-21"), ("QuorumOrder", "RefusedStep"), comment)
        faulty(made, scene, _OWN, fault)
    for name, shown, change in (
        ("longer", (0, 1, 2), lambda right: [*right, b"\0"]),
        ("more", (0, 1, 2), lambda right: [*right, right[-1]]),
        ("fewer", (0, 1, 2, 3), lambda right: right[:-1]),
        ("cut", (0, 1, 2, 3), lambda right: [*right[:-1], right[-1][:-1]]),
    ):
        scene = _Scene(f"active-user-quorum-{name}", _FEW)
        made_up = change([scene.signature(user) for user in shown])
        comment = f"{len(shown)} signers, and {sum(map(len, made_up))} bytes of signatures"
        call, flags = scene.shown(shown, made_up), ("QuorumLength", "RefusedStep")
        faulty(made, scene, _OWN, Fault(3, call, Refusal(NOT_64_EACH), ("MSG-02",), flags, comment))


def _wrong_signers(made: VectorFile) -> None:
    clauses = ("LSA-27", "LSA-26", "ADP-21")
    scene = _Scene("active-user-signer-twice", _FEW)
    refusal, comment = Refusal(TWICE, ("server",)), "user 1 is named twice, and W different users are named"
    faulty(made, scene, _OWN, Fault(3, scene.shown((0, 1, 1, 2)), refusal, clauses, ("SignerTwice",), comment))
    scene = _Scene("active-user-signer-twice-few", _FEW)
    comment = "W signers are named, and user 2 makes two of them"
    fault = Fault(3, scene.shown((1, 2, 2)), Refusal(TWICE | TOO_FEW), clauses[:2], ("SignerTwice",), comment)
    faulty(made, scene, _OWN, fault)
    for name, added, comment in (
        ("outside", 3, "user 3, who does not survive, signed the set as well"),
        ("n", 4, "user N is named as well"),
        ("server", SERVER, "the server is named as well"),
    ):
        scene = _Scene(f"active-user-signer-{name}", _FEW, {"upload": [3]})
        call = scene.shown((0, 1, 2, added), [*map(scene.signature, (0, 1, 2)), scene.signature(3)])
        refusal = Refusal(OUTSIDE, ("server",))
        faulty(made, scene, _OWN, Fault(3, call, refusal, clauses, ("SignerOutside", "RefusedStep"), comment))


def _flip(signature: bytes) -> bytes:
    return signature[:40] + bytes([signature[40] ^ 4]) + signature[41:]


def _semi_honest(scene: _Scene) -> dict[str, Any]:
    """Return what the shares of the semi-honest profile are bound to in the same session, where it differs."""
    return {"protocol": "lightsecagg", "parameters": scene.bound(None, *_LIGHT)}


_LIGHT = ("q", "N", "D", "U", "T", "d")


def _without_W(scene: _Scene) -> bytes:  # noqa: N802 - W is the parameter
    return scene.bound(scene.roster.sealing.hash, *_LIGHT)


def _without_keys(scene: _Scene) -> bytes:
    return scene.bound(None, *_LIGHT, "W")


def _other_keys(scene: _Scene) -> bytes:
    """Return the hash with the keys of another attempt, for which one user drew a new sealing key."""
    keys = scene.roster.sealing.keys
    fresh = public_key(drawn_bytes(scene.id, "key of another attempt", 32))
    return scene.bound(Roster((*keys[:-1], fresh)).hash, *_LIGHT, "W")


Wrong = Callable[[_Scene, int], bytes]
_ELSEWHERE: tuple[tuple[str, str, Wrong, str], ...] = (
    ("other-session", "", lambda scene, user: scene.signature(user, session=bytes(16)), "it is for another session"),
    ("other-round", "", lambda scene, user: scene.signature(user, round=scene.round ^ 1), "it is for another round"),
    ("other-type", "", lambda scene, user: scene.signature(user, message_type=262), "it is for another message type"),
    ("other-set", "", lambda scene, user: scene.signature(user, scene.surviving[1:]), "it is on another set"),
    ("other-signer", "", lambda scene, user: scene.signature(3 - user), "it is that of another signer"),
    ("zero", "", lambda scene, user: bytes(64), "it is all zero"),
    ("altered", "", lambda scene, user: _flip(scene.signature(user)), "one bit of it is flipped"),
    ("no-session", "SessionSigned", lambda scene, user: scene.signature(user, session=b""), "it is for no session"),
    ("no-round", "RoundSigned", lambda scene, user: scene.signature(user, round=0), "it is for no round"),
    (
        "no-w",
        "Binding",
        lambda scene, user: scene.signature(user, parameters=_without_W(scene)),
        "it is not bound to W",
    ),
    (
        "no-keys",
        "Attempt",
        lambda scene, user: scene.signature(user, parameters=_without_keys(scene)),
        "it is not bound to the keys of the attempt",
    ),
    (
        "other-keys",
        "Attempt",
        lambda scene, user: scene.signature(user, parameters=_other_keys(scene)),
        "it is of another attempt, in which the last user had another sealing key",
    ),
    (
        "other-profile",
        "Binding",
        lambda scene, user: scene.signature(user, protocol="lightsecagg"),
        "it is bound to the name of the other profile",
    ),
)
"""Invalid signatures: their name in ids, their flag if it is a special one, and the comment."""


def _quorum_signatures(made: VectorFile) -> None:
    clauses, refusal = ("LSA-28", "LSA-26", "ADP-21"), Refusal(BAD_SIGNATURE, ("server",))
    for name, flag, wrong, comment in _ELSEWHERE:
        scene = _Scene(f"active-user-signature-{name}", _FEW)
        call = scene.shown((0, 1, 2), [scene.signature(0), wrong(scene, 1), scene.signature(2)])
        flags = (flag or "QuorumSignature", "RefusedStep")
        why = f"of three signatures that of user 1 is not valid: {comment}"
        faulty(made, scene, _OWN, Fault(3, call, refusal, clauses, flags, why))
    for name, place in (("first", 0), ("last", 3)):
        scene = _Scene(f"active-user-signature-{name}-of-four", _FEW)
        right = [scene.signature(user) for user in range(4)]
        right[place] = _flip(right[place])
        comment = f"four signatures where three suffice, and that of user {place} is not valid"
        fault = Fault(3, scene.shown(range(4), right), refusal, clauses, ("QuorumSignature", "RefusedStep"), comment)
        faulty(made, scene, _OWN, fault)
    scene = _Scene("active-user-signature-places", _FEW)
    call = scene.shown((0, 1, 2), [scene.signature(user) for user in (0, 2, 1)])
    comment = "the signatures of users 1 and 2 have changed places"
    faulty(made, scene, _OWN, Fault(3, call, refusal, clauses, ("QuorumSignature", "RefusedStep"), comment))
    for name, drop, signed in (("smaller", (), (0, 1, 2)), ("larger", (3,), (0, 1, 2, 3)), ("equal", (3,), (0, 2, 3))):
        scene = _Scene(f"active-user-quorum-on-{name}-set", _FEW, {"upload": drop})
        call = scene.shown((0, 1, 2), [scene.signature(user, signed) for user in (0, 1, 2)])
        flags = ("QuorumSignature" if name == "equal" else "QuorumOnAnotherSet", "RefusedStep")
        comment = f"the user signed {list(scene.surviving)}, and the quorum is on {list(signed)}"
        faulty(made, scene, _OWN, Fault(3, call, refusal, clauses, flags, comment))


def _user_payloads(made: VectorFile) -> None:
    L = shares_length(_FEW, _FEW["d"])
    for name, vector, clause, comment in (
        ("q", [0] * (L - 1) + [_FEW["q"]], "MOD-06", "a share holds q itself"),
        ("longer", [0] * (L + 1), "MOD-07", "a share is one element too long"),
        ("shorter", [0] * (L - 1), "MOD-07", "a share is one element too short"),
    ):
        scene = _Scene(f"active-user-payload-{name}", _FEW)
        call = _resealed(scene, vector_bytes(np.array(vector, np.uint64)))
        faulty(made, scene, _OWN, Fault(1, call, Refusal(BAD_VECTOR), (clause,), ("Vectors",), comment))
    scene = _Scene("active-user-payload-goes-on", _FEW)
    call, comment = _resealed(scene, _plaintext(scene) + b"\0"), "a byte follows the vector in a payload"
    faulty(made, scene, _OWN, Fault(1, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), comment))
    for name, flag, changed, comment in (
        ("other-profile", "Binding", lambda scene: {"protocol": "lightsecagg"}, "with the name of the other profile"),
        ("no-w", "Binding", lambda scene: {"parameters": _without_W(scene)}, "without W"),
        ("no-keys", "Attempt", lambda scene: {"parameters": _without_keys(scene)}, "without the keys of the attempt"),
        ("other-keys", "Attempt", lambda scene: {"parameters": _other_keys(scene)}, "in another attempt"),
        ("semi-honest", "Payload", _semi_honest, "in the semi-honest profile"),
    ):
        scene = _Scene(f"active-user-sealed-{name}", _FEW)
        bound = changed(scene)
        call = _resealed(scene, _plaintext(scene), **bound)
        _not_opened(made, scene, call, flag, f"the share of user 0 was sealed {comment}")
    scene = _Scene("active-user-sealed-type", _FEW)
    call = _resealed(scene, _plaintext(scene), message_type=258)
    _not_opened(made, scene, call, "Payload", "the share of user 0 was sealed for another message type")
    scene = _Scene("active-user-sealed-altered", _FEW)
    call = altered(scene, _OWN, 1, 0, lambda message: replace(message, payload=message.payload[:-1] + b"\0"))
    _not_opened(made, scene, call, "Payload", "the tag of the share of user 0 was altered")


def _not_opened(made: VectorFile, scene: _Scene, call: Call, flag: str, comment: str) -> None:
    refusal = Refusal(BAD_CIPHERTEXT, (0, "server"))
    faulty(made, scene, _OWN, Fault(1, call, refusal, ("SEA-02", "LSA-31", "ADP-21"), (flag,), comment))


def _channel(scene: _Scene, user: int, **changed: Any) -> SealedChannel:
    context = replace(scene.context(MaskShare), **changed)
    return SealedChannel(context, scene.privates()[user], scene.roster.sealing)


def _plaintext(scene: _Scene) -> bytes:
    """Return the plaintext that user 0 sealed for the user whose steps are refused."""
    message = scene.received[_OWN, "upload"][0]
    assert isinstance(message, MaskShare)
    plaintext = _channel(scene, _OWN).open(0, _OWN, message.payload)
    assert vector_from_bytes(plaintext).size == shares_length(scene.numbers, scene.numbers["d"])
    return plaintext


def _resealed(scene: _Scene, plaintext: bytes, **changed: Any) -> Call:
    """Return the step `upload` with another share of user 0, or with one bound to something else."""
    payload = _channel(scene, 0, **changed).close(0, _OWN, plaintext)
    return altered(scene, _OWN, 1, 0, having(payload=payload))


def _user_requests(made: VectorFile) -> None:
    """Add scripts that are refused as a whole, and one in which every step fails because of a weak key."""
    scene = _Scene("active-user-low-order", _FEW)
    params = scene.params(_OWN, [Call("share"), Call("share")])
    params["roster"][3] = bytes(32).hex()
    made.script(
        scene.id,
        scene.of_user,
        params,
        scene.rand(_OWN),
        refused={0: Refusal(WEAK_KEY), 1: Refusal(WEAK_KEY)},
        clauses=["KEY-01", "ERR-01"],
        flags=["LowOrder"],
        comment="the key of user 3 is of low order, and the user tries twice",
        policy=VANDERMONDE,
    )
    for name, member, clause in (("private", "private", "KEY-03"), ("signing", "signing", "SIG-04")):
        for size in (31, 33):
            scene = _Scene(f"active-user-{name}-{size}", _FEW)
            params = scene.params(_OWN, [])
            params[member] = (params[member] + "a5")[: 2 * size]
            no_party(made, scene, _OWN, params, KEY_LENGTH, clause, "Roster", f"{member} has {size} bytes")
    _common_requests(made, "user", _OWN)
    d = _FEW["d"]
    for name, size, codes, comment in (
        ("longer", d + 1, LENGTH, "the update has d + 1 elements"),
        ("shorter", d - 1, LENGTH, "the update has d - 1 elements"),
        ("q", d, NONCANONICAL, "the update holds q itself"),
    ):
        scene = _Scene(f"active-user-update-{name}", _FEW)
        update = drawn(scene.id, "altered", _FEW["q"], size).copy()
        update[-1] = _FEW["q"] if name == "q" else update[-1]
        params = {**scene.params(_OWN, []), "update": pack(update)}
        no_party(made, scene, _OWN, params, codes, "LSA-03", "Update", comment)


def _rosters(made: VectorFile, who: str, party: int, member: str, of_length: str, of_equals: str) -> None:
    """Add lists of keys in which two are equal or one has the wrong length."""
    for name, codes, clause, comment in (
        ("equal", EQUAL_KEYS, of_equals, "users 1 and 3 have one key"),
        ("short", KEY_LENGTH, of_length, "the key of user 3 has 31 bytes"),
        ("long", KEY_LENGTH, of_length, "the key of user 3 has 33 bytes"),
    ):
        scene = _Scene(f"active-{who}-{member}-{name}", _FEW)
        params = scene.params(party, [])
        keys = params[member]
        keys[3] = {"equal": keys[1], "short": keys[3][2:], "long": keys[3] + "a5"}[name]
        no_party(made, scene, party, params, codes, clause, "Roster", f"{member}: {comment}")


def _common_requests(made: VectorFile, who: str, party: int) -> None:
    """Add requests that both parties refuse: wrong numbers, verification keys, and lengths of sessions."""
    for name, W, comment in (("two-quorums", 3, "2W = N + T"), ("unreachable", 5, "W = N - D + 1")):
        scene = _Scene(f"active-{who}-w-{name}", _TINY)
        params = {**scene.params(party, []), "W": W}
        no_party(made, scene, party, params, BAD_PARAM, "LSA-19", "Threshold", f"W = {W}: {comment}")
    scene = _Scene(f"active-{who}-numbers-u", {**_FEW, "d": 4})
    params = {**scene.params(party, []), "U": 4}
    rand = scene.rand(party)
    if rand:
        rand["noise"] = pack(drawn(scene.id, "noise", params["q"], shares_length(params, params["d"])))
    no_party(made, scene, party, params, BAD_PARAM, "LSA-01", "Numbers", "U = 4 = N - D + 1", rand)
    _rosters(made, who, party, "roster", "KEY-03", "KEY-04")
    _rosters(made, who, party, "verification", "SIG-04", "SIG-05")
    scene = _Scene(f"active-{who}-verification-many", _FEW)
    params = scene.params(party, [])
    params["verification"].append(drawn_bytes(scene.id, "added", 32).hex())
    no_party(made, scene, party, params, KEY_LENGTH, "SIG-04", "Roster", "N + 1 verification keys are given")
    for size in (15, 17):
        scene = _Scene(f"active-{who}-session-{size}", _FEW)
        params = {**scene.params(party, []), "session": drawn_bytes(scene.id, "altered", size).hex()}
        no_party(made, scene, party, params, KEY_LENGTH, "SIG-01", "SessionLength", f"the session has {size} bytes")


# ------------------------------------------------------------------------------------------------------ the server


def _server_messages(made: VectorFile) -> None:
    for at, phase in enumerate(PHASES):
        for name, change, flag, comment in HEADER_FAULTS:
            scene = _Scene(f"active-server-{phase}-{name}", _LEAST)
            call = altered(scene, SERVER, at, 1, change)
            faulty(made, scene, SERVER, Fault(at, call, Refusal(ELSEWHERE), ("MSG-03",), (flag,), comment))
        scene = _Scene(f"active-server-{phase}-twice", _LEAST)
        call, comment = besides(scene, SERVER, at, 1, same), "one message stands in the inbox twice"
        faulty(made, scene, SERVER, Fault(at, call, Refusal(SECOND), ("MSG-04",), ("SecondMessage",), comment))
        scene = _Scene(f"active-server-{phase}-type", _LEAST)
        call = scene.calls(SERVER)[at]
        call = replace(call, inbox=(*call.inbox, scene.calls(SERVER)[0 if at else 1].inbox[0]))
        comment = "a message of another step besides"
        faulty(made, scene, SERVER, Fault(at, call, Refusal(OUT_OF_TURN), ("MSG-02",), ("AnotherType",), comment))
    for at in (1, 2, 3):
        scene = _Scene(f"active-server-{PHASES[at]}-receiver", _LEAST)
        call, comment = altered(scene, SERVER, at, 2, to(1)), "a message for user 1"
        faulty(made, scene, SERVER, Fault(at, call, Refusal(ELSEWHERE), ("MSG-03",), ("AnotherReceiver",), comment))
    for name, broken, comment in (("cut", shorter, "one is missing"), ("longer", longer, "a byte follows")):
        scene = _Scene(f"active-server-confirm-bytes-{name}", _LEAST)
        call, why = altered(scene, SERVER, 2, 0, broken), f"the bytes of a message: {comment}"
        faulty(made, scene, SERVER, Fault(2, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), why))
    _outsiders(made)


def _outsiders(made: VectorFile) -> None:
    scene = _Scene("active-server-confirm-outsider", _FEW, {"upload": [3]})
    call = besides(scene, SERVER, 2, 0, having(sender=3, signature=scene.signature(3)))
    comment = "user 3, which does not survive, signed the surviving set as well"
    faulty(made, scene, SERVER, Fault(2, call, Refusal(NOT_ALLOWED), ("LSA-16",), ("Outsider",), comment))
    scene = _Scene("active-server-recover-outsider", _FEW, {"upload": [3]})
    late = drawn(scene.id, "late", _FEW["q"], scene.parameters.share_length)
    call = besides(scene, SERVER, 3, 0, having(sender=3, share=late))
    comment = "an answer from user 3, which does not survive"
    faulty(made, scene, SERVER, Fault(3, call, Refusal(NOT_ALLOWED), ("LSA-16",), ("Outsider",), comment))


def _nobody_shares(made: VectorFile) -> None:
    """Add servers that get no shares, or one share too few from each user. The next step ends the round."""
    for name, kept in (("nobody", 0), ("lost", 2)):
        scene = _Scene(f"active-server-{name}-shares", _LEAST)
        first = scene.calls(SERVER)[0]
        one_each = tuple(data for at, data in enumerate(first.inbox) if at % 2 == 0)[: 2 * kept]
        calls = [replace(first, inbox=one_each), Call("upload")]
        what = "no share comes" if not kept else f"{len(one_each)} shares come, one from each user"
        made.script(
            scene.id,
            scene.of_server,
            scene.params(SERVER, calls),
            {},
            refused={1: Refusal(TOO_FEW)},
            clauses=["LSA-40", "LSA-07"],
            flags=["NobodyShares"],
            comment=f"{what}, so that there is no sharer; the step share is taken, and upload ends the round",
            policy=scene.policy,
        )


def _server_steps(made: VectorFile) -> None:
    for at, phase in enumerate(PHASES):
        scene = _Scene(f"active-server-{phase}-again", _LEAST)
        call, comment = scene.calls(SERVER)[at], f"the step {phase} a second time"
        faulty(made, scene, SERVER, Fault(at + 1, call, Refusal(AGAIN), ("MSG-04",), ("Phases",), comment))
    for name, at, before in (("upload-first", 1, 0), ("confirm-early", 2, 1), ("recover-early", 3, 2)):
        scene = _Scene(f"active-server-{name}", _LEAST)
        call, comment = scene.calls(SERVER)[at], f"the step {PHASES[at]} before its turn"
        faulty(made, scene, SERVER, Fault(before, call, Refusal(OUT_OF_TURN), ("MSG-03",), ("Phases",), comment))
    for name, at, count, clauses, flag, comment in (
        ("few-updates", 1, 2, ("LSA-07",), "FewContributors", "masked updates where T + 2 = 3 are needed"),
        ("no-signature", 2, 0, ("LSA-23", "LSA-30"), "FewSignatures", "signatures, and W = 3"),
        ("few-signatures", 2, 2, ("LSA-23", "LSA-30"), "FewSignatures", "signatures, and W = 3"),
        ("few-answers", 3, 1, ("LSA-14", "LSA-30"), "TooFewAnswers", "answers, and U = 2"),
    ):
        scene = _Scene(f"active-server-{name}", _LEAST)
        call = scene.calls(SERVER)[at]
        fewer, why = replace(call, inbox=call.inbox[:count]), f"{count} {comment}; all of them in the next step"
        faulty(made, scene, SERVER, Fault(at, fewer, Refusal(TOO_FEW), clauses, (flag,), why))
    scene = _Scene("active-server-bad-share", _FEW)
    share = np.zeros(scene.parameters.share_length, np.uint64)
    call, refusal = altered(scene, SERVER, 3, 3, having(share=share)), Refusal(BAD_SHARE, (0, 1, 2, 3))
    comment = "four answers where three suffice, and that of user 3 was altered"
    faulty(made, scene, SERVER, Fault(3, call, refusal, ("LSA-15", "ADP-21"), ("AlteredAnswer",), comment))


def _server_signatures(made: VectorFile) -> None:
    lengths: tuple[tuple[str, str, Wrong, str], ...] = (
        ("cut", "", lambda scene, user: scene.signature(user)[:-1], "its last byte is missing"),
        ("longer", "", lambda scene, user: scene.signature(user) + b"\0", "a byte follows"),
        ("empty", "", lambda scene, user: b"", "it is empty"),
    )
    for name, flag, wrong, comment in (*_ELSEWHERE, *lengths):
        scene = _Scene(f"active-server-signature-{name}", _LEAST)
        call = altered(scene, SERVER, 2, 1, having(signature=wrong(scene, 1)))
        refusal, why = Refusal(BAD_SIGNATURE, (1,)), f"the signature of user 1 is not valid: {comment}"
        fault = Fault(2, call, refusal, ("LSA-24", "ADP-21"), (flag or "UserSignature",), why)
        faulty(made, scene, SERVER, fault)


def _server_requests(made: VectorFile) -> None:
    _common_requests(made, "server", SERVER)
