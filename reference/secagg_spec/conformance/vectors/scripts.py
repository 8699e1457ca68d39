"""Vectors of one party of a round, step by step: what it sends, what it refuses, and that a refusal has no effect."""

from __future__ import annotations

from collections.abc import Callable
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
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.protocols.codec import vector_bytes
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import SERVER, Network

_TINY: dict[str, int] = {"q": 7, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}
_FEW: dict[str, int] = {"q": BYTE, "N": 4, "D": 1, "U": 3, "T": 1, "d": 3}
_LEAST: dict[str, int] = {"q": BYTE, "N": 3, "D": 0, "U": 2, "T": 1, "d": 2}
_WIDE: dict[str, int] = {"q": LARGE[2], "N": 5, "D": 1, "U": 4, "T": 2, "d": 5}
_OWN = 2
"""The user whose steps are refused."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun(
        "scripts", "One party of a round, step by step: its messages, what it refuses, and that no trace is left."
    )
    _whole(made)
    _user_messages(made)
    _user_steps(made)
    _user_sets(made)
    _user_payloads(made)
    _user_requests(made)
    _server_messages(made)
    _server_steps(made)
    _nobody_shares(made)
    _server_requests(made)
    return made


# -------------------------------------------------------------------------------------------------------- a round


@dataclass(frozen=True, eq=False)
class _Scene(Scene):
    """A round over the plain or the sealed channel."""

    of_user: ClassVar[str] = "lightsecagg.user"
    of_server: ClassVar[str] = "lightsecagg.server"
    phases: ClassVar[tuple[str, ...]] = lightsecagg.PHASES

    sealed: bool = False

    @property
    def parameters(self) -> lightsecagg.Parameters:
        return lightsecagg.Parameters(**self.numbers)

    def opened(self) -> Network:
        link = sealed_links(self._context(), dict(enumerate(self.privates()))) if self.sealed else None
        return lightsecagg.open_round(
            self.parameters, self.updates(), session=self.session, round=self.round, channel=link
        )

    def _context(self) -> Any:
        return lightsecagg.sealing_context(self.parameters, self.session, self.round)

    def given(self, party: int) -> dict[str, Any]:
        return {} if party == SERVER else {"channel": self._channel(party)}

    def _channel(self, user: int) -> Any:
        if not self.sealed:
            return "plain"
        roster = [public_key(private).hex() for private in self.privates()]
        return {"private": self.privates()[user].hex(), "roster": roster}


def _whole(made: VectorFile) -> None:
    """Add the views of parties in whole rounds. Each is one script, and all scripts of a round fit together."""
    wide, tiny, sealed = (
        _Scene("script-wide", _WIDE),
        _Scene("script-tiny", _TINY),
        _Scene("script-sealed", _FEW, sealed=True),
    )
    for scene, parties, clauses, flag in (
        (tiny, (0, SERVER), ("LSA-02", "LSA-08"), "Round"),
        (wide, (4,), ("LSA-02", "LSA-08"), "Round"),
        (sealed, (0, 1, 2, 3, SERVER), ("LSA-18", "SEA-01", "KEY-02"), "SealedRound"),
    ):
        for party in parties:
            who = "server" if party == SERVER else f"user-{party}"
            flags = ["Relay"] if party == SERVER else [flag]
            of_server = ("LSA-05", "LSA-06", "LSA-13")
            comment = f"a whole round as {who.replace('-', ' ')} sees it; nobody drops out"
            decisive = of_server if party == SERVER else clauses
            taken(made, f"{scene.id}-{who}", scene, party, decisive, flags, comment, operations=True)
    _dropouts(made)


def _dropouts(made: VectorFile) -> None:
    for name, drop, lost, party, clauses, flags, comment in (
        ("user-few-shares", {"share": [3]}, (), 1, ["LSA-08"], ["Round"], "no share of user 3 comes"),
        (
            "user-smaller-set",
            {"upload": [0]},
            (),
            3,
            ["LSA-08"],
            ["Round"],
            "user 0 shared its mask and does not survive",
        ),
        ("server-before-share", {"share": [3]}, (), SERVER, ["LSA-05"], ["Relay"], "user 3 is never there"),
        ("server-lost-share", {}, ((3, 0),), SERVER, ["LSA-05"], ["Relay"], "the share of user 3 for user 0 is lost"),
        ("server-before-upload", {"upload": [0]}, (), SERVER, ["LSA-06"], ["Announcement"], "user 0 does not upload"),
        ("server-before-recover", {"recover": [1]}, (), SERVER, ["LSA-13"], ["LateDropout"], "user 1 does not answer"),
    ):
        left = {"upload": [lost[0][0]]} if lost else {}
        scene = _Scene(f"script-{name}", _FEW, {**drop, **left}, lost=lost)
        taken(made, scene.id, scene, party, clauses, flags, comment)


# --------------------------------------------------------------------------------------------------------- a user


def _zero_share(message: Any) -> Any:
    return replace(message, payload=vector_bytes(np.zeros(shares_length(_FEW, _FEW["d"]), np.uint64)))


def _user_messages(made: VectorFile) -> None:
    phases = ("share", "upload", "recover")
    for at in (1, 2):
        faults = [*HEADER_FAULTS, ("receiver", to(3), "AnotherReceiver", "a message for user 3")]
        for name, change, flag, comment in faults:
            scene = _Scene(f"user-{phases[at]}-{name}", _FEW)
            call = altered(scene, _OWN, at, 0, change)
            flags = (flag, "RefusedStep")
            faulty(made, scene, _OWN, Fault(at, call, Refusal(ELSEWHERE), ("MSG-03",), flags, comment))
        for name, broken, comment in (
            ("longer", longer, "a byte follows"),
            ("cut", shorter, "the last byte is missing"),
        ):
            scene = _Scene(f"user-{phases[at]}-bytes-{name}", _FEW)
            call = altered(scene, _OWN, at, 0, broken)
            fault = Fault(
                at, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), f"the bytes of a message: {comment}"
            )
            faulty(made, scene, _OWN, fault)
    _user_senders(made)
    _user_types(made)


def _user_senders(made: VectorFile) -> None:
    for name, stranger in (("n", 4), ("large", 2**31 - 1), ("server", SERVER)):
        scene = _Scene(f"user-upload-sender-{name}", _FEW)
        call = besides(scene, _OWN, 1, 0, by(stranger))
        comment = f"a share from party {stranger} besides those of the others"
        faulty(made, scene, _OWN, Fault(1, call, Refusal(STRANGER), ("MSG-03",), ("Stranger", "RefusedStep"), comment))
    scene = _Scene("user-recover-sender", _FEW)
    call = altered(scene, _OWN, 2, 0, by(3))
    comment = "a surviving set from user 3"
    faulty(made, scene, _OWN, Fault(2, call, Refusal(STRANGER), ("MSG-03",), ("Stranger", "RefusedStep"), comment))
    for name, at, change, comment in (
        ("upload-twice", 1, same, "one share stands in the inbox twice"),
        ("upload-second", 1, _zero_share, "two shares of one user"),
        ("recover-twice", 2, same, "the surviving set stands in the inbox twice"),
    ):
        scene = _Scene(f"user-{name}", _FEW)
        call = besides(scene, _OWN, at, 0, change)
        faulty(made, scene, _OWN, Fault(at, call, Refusal(SECOND), ("MSG-04",), ("SecondMessage",), comment))


def _user_types(made: VectorFile) -> None:
    for name, at, wrong in (("share", 0, 1), ("upload", 1, 2), ("recover", 2, 1)):
        scene = _Scene(f"user-{name}-type", _FEW)
        calls = scene.calls(_OWN)
        call = replace(calls[at], inbox=(*calls[at].inbox, calls[wrong].inbox[0]))
        comment = f"a message of the step {calls[wrong].phase} in the step {name}"
        faulty(made, scene, _OWN, Fault(at, call, Refusal(OUT_OF_TURN), ("MSG-02",), ("AnotherType",), comment))


def _user_steps(made: VectorFile) -> None:
    for name, at, before, clause, flag in (
        ("share-again", 0, 1, "MSG-04", "Phases"),
        ("upload-again", 1, 2, "LSA-04", "SecondUpload"),
        ("recover-again", 2, 3, "LSA-12", "SecondAnswer"),
    ):
        scene = _Scene(f"user-{name}", _FEW)
        call = scene.calls(_OWN)[at]
        comment = f"the step {call.phase} a second time"
        faulty(made, scene, _OWN, Fault(before, call, Refusal(AGAIN), (clause,), (flag,), comment))
    scene = _Scene("user-recover-another-set", _FEW)
    call = _set(scene, (0, 1, 2))
    comment = "a second surviving set, without user 3"
    faulty(made, scene, _OWN, Fault(3, call, Refusal(AGAIN), ("LSA-12",), ("SecondAnswer",), comment))
    for name, at, before in (("upload-first", 1, 0), ("recover-early", 2, 1)):
        scene = _Scene(f"user-{name}", _FEW)
        call = scene.calls(_OWN)[at]
        comment = f"the step {call.phase} before its turn"
        faulty(made, scene, _OWN, Fault(before, call, Refusal(OUT_OF_TURN), ("MSG-03",), ("Phases",), comment))


def _set(scene: _Scene, users: tuple[int, ...]) -> Call:
    return altered(scene, _OWN, 2, 0, lambda message: replace(message, users=users))


def _user_sets(made: VectorFile) -> None:
    trace = "RefusedStep"
    for name, users, codes, clause, flag, comment in (
        ("small", (1, 2), TOO_FEW, "LSA-09", ("SmallSet", trace), "T + 1 users survive"),
        (
            "twice",
            (0, 1, 2, 2),
            TWICE,
            "LSA-10",
            ("SetTwice", trace),
            "user 2 is named twice, and T + 2 users are named",
        ),
        ("outside", (0, 1, 2, 3, 4), OUTSIDE, "LSA-10", ("SetOutside", trace), "user N is named"),
        ("server", (0, 1, 2, 3, SERVER), OUTSIDE, "LSA-10", ("SetOutside", trace), "the server is named"),
        ("not-held", (0, 2, 3), OUTSIDE, "LSA-11", ("NotHeld", trace), "the share of user 3 never came"),
    ):
        scene = _Scene(f"user-set-{name}", _FEW, {"share": [3]} if name == "not-held" else {})
        fault = Fault(2, _set(scene, users), Refusal(codes), (clause,), flag, comment)
        faulty(made, scene, _OWN, fault)
    for name, users, comment in (
        ("order", (0, 2, 1, 3), "the right users, with 2 before 1"),
        ("descending", (3, 2, 1, 0), "the right users in descending order"),
    ):
        scene, refusal = _Scene(f"user-set-{name}", _FEW), Refusal(MALFORMED, ("server",))
        fault = Fault(2, _set(scene, users), refusal, ("LSA-32", "ADP-21"), ("SetOrder", trace), comment)
        faulty(made, scene, _OWN, fault)
    scene = _Scene("user-set-none", _FEW)
    fault = Fault(2, Call("recover"), Refusal(NOTHING_CAME), ("LSA-09",), ("NoSet",), "no surviving set came")
    faulty(made, scene, _OWN, fault)


def _user_payloads(made: VectorFile) -> None:
    L = shares_length(_FEW, _FEW["d"])
    for name, vector, clause, comment in (
        ("q", [BYTE] + [0] * (L - 1), "MOD-06", "a share holds q itself"),
        ("longer", [0] * (L + 1), "MOD-07", "a share is one element too long"),
        ("shorter", [0] * (L - 1), "MOD-07", "a share is one element too short"),
    ):
        scene = _Scene(f"user-payload-{name}", _FEW)
        payload = vector_bytes(np.array(vector, np.uint64))
        call = altered(scene, _OWN, 1, 0, having(payload=payload))
        faulty(made, scene, _OWN, Fault(1, call, Refusal(BAD_VECTOR), (clause,), ("Vectors",), comment))
    scene = _Scene("user-payload-goes-on", _FEW)
    call = altered(scene, _OWN, 1, 0, lambda message: replace(message, payload=message.payload + b"\0"))
    comment = "a byte follows the vector in a payload"
    faulty(made, scene, _OWN, Fault(1, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), comment))
    _sealed_payloads(made)


def _sealed_payloads(made: VectorFile) -> None:
    cases: tuple[tuple[str, int, Callable[[bytes], bytes], str], ...] = (
        ("altered", 0, lambda data: bytes([data[0] ^ 1]) + data[1:], "a payload was altered"),
        ("cut", 2, lambda data: data[:-1], "a payload was cut"),
        ("tag", 1, lambda data: data[:-1] + bytes([data[-1] ^ 128]), "the tag of a payload was altered"),
    )
    for name, place, change, comment in cases:
        scene = _Scene(f"user-sealed-{name}", _FEW, sealed=True)
        call = altered(scene, _OWN, 1, place, having(payload=change(_payload(scene, place))))
        _not_opened(made, scene, call, place, comment)
    scene = _Scene("user-sealed-exchanged", _FEW, sealed=True)
    call = altered(scene, _OWN, 1, 0, having(payload=_payload(scene, 1)))
    _not_opened(made, scene, call, 0, "the payload of another sender")


def _payload(scene: _Scene, place: int) -> bytes:
    message = scene.received[_OWN, "upload"][place]
    assert isinstance(message, lightsecagg.MaskShare)
    return message.payload


def _not_opened(made: VectorFile, scene: _Scene, call: Call, place: int, comment: str) -> None:
    sender = scene.received[_OWN, "upload"][place].sender
    refusal = Refusal(BAD_CIPHERTEXT, (sender, "server"))
    clauses, flags = ("SEA-02", "ADP-21"), ("Payload", "RefusedStep")
    faulty(made, scene, _OWN, Fault(1, call, refusal, clauses, flags, comment))


def _user_requests(made: VectorFile) -> None:
    """Add scripts that are refused as a whole, and scripts in which every step fails because of a weak key."""
    for weak in (3, 0):
        scene = _Scene(f"user-low-order-{weak}", _FEW, sealed=True)
        params = scene.params(_OWN, [Call("share"), Call("share")])
        params["channel"]["roster"][weak] = bytes(32).hex()
        made.script(
            scene.id,
            scene.of_user,
            params,
            scene.rand(_OWN),
            refused={0: Refusal(WEAK_KEY), 1: Refusal(WEAK_KEY)},
            clauses=["KEY-01", "ERR-01"],
            flags=["LowOrder"],
            comment=f"the key of user {weak} is of low order, and the user tries twice",
            policy=VANDERMONDE,
        )
    for name, codes, clause, comment in (
        ("equal", EQUAL_KEYS, "KEY-04", "users 1 and 3 have one key"),
        ("public", KEY_LENGTH, "KEY-03", "the key of user 3 has 31 bytes"),
        ("private", KEY_LENGTH, "KEY-03", "the private key has 33 bytes"),
    ):
        scene = _Scene(f"user-roster-{name}", _FEW, sealed=True)
        params = scene.params(_OWN, [])
        roster = params["channel"]["roster"]
        if name == "private":
            params["channel"]["private"] += "00"
        else:
            roster[3] = roster[1] if name == "equal" else roster[3][2:]
        no_party(made, scene, _OWN, params, codes, clause, "Roster", comment)
    _user_updates(made)
    _numbers(made, "user", _OWN)


def _user_updates(made: VectorFile) -> None:
    d = _FEW["d"]
    for name, size, codes, comment in (
        ("longer", d + 1, LENGTH, "the update has d + 1 elements"),
        ("shorter", d - 1, LENGTH, "the update has d - 1 elements"),
        ("q", d, NONCANONICAL, "the update holds q itself"),
    ):
        scene = _Scene(f"user-update-{name}", _FEW)
        update = drawn(scene.id, "altered", BYTE, size).copy()
        if name == "q":
            update[-1] = BYTE
        params = {**scene.params(_OWN, scene.calls(_OWN)), "update": pack(update)}
        no_party(made, scene, _OWN, params, codes, "LSA-03", "Update", comment)


def _numbers(made: VectorFile, who: str, party: int) -> None:
    for name, changed in (("u", {"U": 4}), ("dropouts", {"D": 3}), ("d-negative", {"D": -1})):
        scene = _Scene(f"{who}-numbers-{name}", {**_FEW, "d": 6})
        [(member, value)] = changed.items()
        params = {**scene.params(party, []), **changed}
        rand = scene.rand(party)
        if rand:
            rand["noise"] = pack(
                drawn(scene.id, "noise", params["q"], params["T"] * shares_length(params, params["d"]))
            )
        no_party(made, scene, party, params, BAD_PARAM, "LSA-01", "Numbers", f"{member} = {value}", rand)


# ------------------------------------------------------------------------------------------------------ the server


def _server_messages(made: VectorFile) -> None:
    phases = ("share", "upload", "recover")
    for at, phase in enumerate(phases):
        for name, change, flag, comment in HEADER_FAULTS:
            scene = _Scene(f"server-{phase}-{name}", _LEAST)
            call = altered(scene, SERVER, at, 1, change)
            faulty(made, scene, SERVER, Fault(at, call, Refusal(ELSEWHERE), ("MSG-03",), (flag,), comment))
        scene = _Scene(f"server-{phase}-twice", _LEAST)
        call = besides(scene, SERVER, at, 1, same)
        comment = "one message stands in the inbox twice"
        faulty(made, scene, SERVER, Fault(at, call, Refusal(SECOND), ("MSG-04",), ("SecondMessage",), comment))
        _server_bytes(made, at, phase)
        scene = _Scene(f"server-{phase}-type", _LEAST)
        wrong = scene.calls(SERVER)[0 if at else 1].inbox[0]
        call = scene.calls(SERVER)[at]
        call = replace(call, inbox=(*call.inbox, wrong))
        comment = "a message of another step besides"
        faulty(made, scene, SERVER, Fault(at, call, Refusal(OUT_OF_TURN), ("MSG-02",), ("AnotherType",), comment))
    _server_parties(made)
    _server_vectors(made)


def _server_bytes(made: VectorFile, at: int, phase: str) -> None:
    cut, more = ("cut", shorter, "the last byte is missing"), ("longer", longer, "a byte follows")
    for name, broken, comment in {"share": (cut, more), "upload": (more,), "recover": (cut,)}[phase]:
        scene = _Scene(f"server-{phase}-bytes-{name}", _LEAST)
        call = altered(scene, SERVER, at, 0, broken)
        fault = Fault(
            at, call, Refusal(ANOTHER_TYPE), ("MSG-02",), ("NoMessage",), f"the bytes of a message: {comment}"
        )
        faulty(made, scene, SERVER, fault)


def _server_parties(made: VectorFile) -> None:
    for name, at, change, flag, codes, comment in (
        ("upload-receiver", 1, to(1), "AnotherReceiver", ELSEWHERE, "a masked update for user 1"),
        ("recover-receiver", 2, to(0), "AnotherReceiver", ELSEWHERE, "an aggregated share for user 0"),
    ):
        scene = _Scene(f"server-{name}", _LEAST)
        call = altered(scene, SERVER, at, 2, change)
        faulty(made, scene, SERVER, Fault(at, call, Refusal(codes), ("MSG-03",), (flag,), comment))
    for name, at, change, codes, comment in (
        ("share-sender", 0, by(3), STRANGER, "a share from user N"),
        ("share-from-server", 0, by(SERVER), STRANGER, "a share from the server"),
        ("share-receiver", 0, to(3), STRANGER | ELSEWHERE, "a share for user N"),
        ("share-to-server", 0, to(SERVER), STRANGER | ELSEWHERE, "a share for the server"),
        ("share-to-itself", 0, to(0), STRANGER | ELSEWHERE, "a share of user 0 for itself"),
        ("upload-sender", 1, by(3), STRANGER, "a masked update from user N"),
        ("recover-sender", 2, by(2**31 - 1), STRANGER, "an answer from outside the roster"),
    ):
        scene = _Scene(f"server-{name}", _LEAST)
        call = besides(scene, SERVER, at, 0, change)
        faulty(made, scene, SERVER, Fault(at, call, Refusal(codes), ("MSG-03",), ("Stranger",), comment))
    _outsiders(made)


def _outsiders(made: VectorFile) -> None:
    scene = _Scene("server-no-sharer", _FEW, {"upload": [3]}, lost=((3, 1),))
    call = besides(scene, SERVER, 1, 0, by(3))
    comment = "a masked update from user 3, whose share for user 1 is lost"
    faulty(made, scene, SERVER, Fault(1, call, Refusal(NOT_ALLOWED), ("LSA-16", "LSA-05"), ("NoSharer",), comment))
    scene = _Scene("server-no-survivor", _FEW, {"upload": [1]})
    late = drawn(scene.id, "late", BYTE, scene.parameters.share_length)
    call = besides(scene, SERVER, 2, 0, lambda message: replace(message, sender=1, share=late))
    comment = "an answer from user 1, which did not upload"
    faulty(made, scene, SERVER, Fault(2, call, Refusal(NOT_ALLOWED), ("LSA-16",), ("NoSharer",), comment))


def _server_vectors(made: VectorFile) -> None:
    for at, member in ((1, "masked"), (2, "share")):
        for name, change, clause, comment in (
            ("q", lambda vector: vector + np.uint64(BYTE), "MOD-06", "has each element plus q"),
            ("longer", lambda vector: np.append(vector, np.uint64(0)), "MOD-07", "is one element too long"),
        ):
            scene = _Scene(f"server-{'update' if at == 1 else 'answer'}-{name}", _LEAST)
            vector = getattr(scene.received[SERVER, "upload" if at == 1 else "recover"][1], member)
            call = altered(scene, SERVER, at, 1, having(**{member: change(vector)}))
            fault = Fault(at, call, Refusal(BAD_VECTOR), (clause,), ("Vectors",), f"the vector of user 1 {comment}")
            faulty(made, scene, SERVER, fault)


def _nobody_shares(made: VectorFile) -> None:
    """Add servers that get no shares, or one share too few from each user. The next step ends the round."""
    for name, kept in (("nobody", 0), ("lost", 2)):
        scene = _Scene(f"server-{name}-shares", _LEAST)
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
    phases = ("share", "upload", "recover")
    for at, phase in enumerate(phases):
        scene = _Scene(f"server-{phase}-again", _LEAST)
        comment = f"the step {phase} a second time"
        fault = Fault(at + 1, scene.calls(SERVER)[at], Refusal(AGAIN), ("MSG-04",), ("Phases",), comment)
        faulty(made, scene, SERVER, fault)
    for name, at, before in (("upload-first", 1, 0), ("recover-early", 2, 1)):
        scene = _Scene(f"server-{name}", _LEAST)
        call = scene.calls(SERVER)[at]
        comment = f"the step {call.phase} before its turn"
        faulty(made, scene, SERVER, Fault(before, call, Refusal(OUT_OF_TURN), ("MSG-03",), ("Phases",), comment))
    for count in (0, 1):
        scene = _Scene(f"server-{count}-updates", _LEAST)
        call = scene.calls(SERVER)[1]
        fewer = replace(call, inbox=call.inbox[:count])
        flags = ("FewContributors", "RefusedStep")
        comment = f"{count} masked updates where T + 2 = 3 are needed; all of them in the next step"
        faulty(made, scene, SERVER, Fault(1, fewer, Refusal(TOO_FEW), ("LSA-07",), flags, comment))
        scene = _Scene(f"server-{count}-answers", _LEAST)
        call = scene.calls(SERVER)[2]
        fewer = replace(call, inbox=call.inbox[:count])
        comment = f"{count} answers, where U = 2; all of them in the next step"
        faulty(made, scene, SERVER, Fault(2, fewer, Refusal(TOO_FEW), ("LSA-14",), ("TooFewAnswers",), comment))
    _bad_shares(made)


def _bad_shares(made: VectorFile) -> None:
    for name, place in (("last", 3), ("first", 0)):
        scene = _Scene(f"server-bad-share-{name}", _FEW)
        call = altered(scene, SERVER, 2, place, _altered)
        blamed = tuple(message.sender for message in scene.received[SERVER, "recover"])
        fault = Fault(
            2,
            call,
            Refusal(BAD_SHARE, blamed),
            ("LSA-15", "ADP-21"),
            ("AlteredAnswer",),
            f"{len(blamed)} answers where three suffice, and that of user {blamed[place]} was altered",
        )
        faulty(made, scene, SERVER, fault)


def _altered(message: Any) -> Any:
    return replace(message, share=np.where(message.share == 0, np.uint64(1), np.uint64(0)))


def _server_requests(made: VectorFile) -> None:
    _numbers(made, "server", SERVER)
