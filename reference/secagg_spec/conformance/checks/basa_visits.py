"""Draws sessions of BASA: numbers, what every party is given, and who comes to which position when (spec/basa.md).

A *plan* is drawn first, from the text alone: the acts of some epochs, each the visit of a user or the end of an epoch.
What the parties are given fits it, and the reference goes through it. Before each step it is noted what the party knows
by then, so that a fault can be put where it belongs without a look into the state of anybody's party.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.conformance import cases
from secagg_spec.conformance.basa_stage import PositionStage, opened_stage
from secagg_spec.conformance.checks import basecagg_scenes, rounds
from secagg_spec.conformance.checks.basecagg_scenes import FUNCTIONS
from secagg_spec.conformance.deals import Deal
from secagg_spec.conformance.stage import Key, Turn
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.shape import AUTHORITY, SERVER

FIRST_EPOCHS = (1, 2, 255, 256, 2**31, 2**32 - 9)
_MODULI = (16, 97, 2**16, 2**31, 2**32 - 5, 2**32)
_LEVELS = (2, 1, 3, 5, 12, 64)
_MANY = 300
"""A roster whose users have numbers above 255."""


# --------------------------------------------------------------------------------------------------------- numbers


def numbers(draw: Any, *, void: bool | None = None, spares: Sequence[int] = (1, 0, 2)) -> dict[str, Any]:
    """Draw the numbers of a session of up to six positions, as they stand in a request."""
    ends = bool(draw(st.booleans())) if void is None else void
    T = draw(st.integers(1, 2))
    K = draw(st.integers(T + 2, T + 3))
    S = 0 if ends else int(draw(st.sampled_from(spares)))
    N = draw(st.sampled_from((K + S + 1, K + S, K + S + 2, _MANY)))
    shape = {"N": N, "T": T, "d": cases.length(draw, 1, 4), "K": K, "S": S}
    return {**shape, **levels(draw, K), "timeouts": "void" if ends else "settle"}


def levels(draw: Any, K: int) -> dict[str, Any]:
    """Draw a modulus, the levels, the largest staleness and the function, as BAA-02 allows."""
    tau_max = draw(st.sampled_from((1, 0, 2, 10)))
    choices = [
        (kind, p, r, b, c)
        for kind, p, r, b in FUNCTIONS
        for c in _LEVELS
        if floor_weight(Staleness(kind, p, r, b), c, tau_max) >= 1  # type: ignore[arg-type]
    ]
    kind, p, r, b, c_g = choices[draw(st.integers(0, len(choices) - 1))]
    R = draw(st.sampled_from([R for R in _MODULI if K * c_g <= (R - 1) // 2]))
    c_l = draw(st.sampled_from((1, 3, 65536)))
    function = {"kind": kind, "numerator": p, "denominator": r, "start": str(b)}
    return {"R": str(R), "c_l": str(c_l), "c_g": str(c_g), "tau_max": tau_max, **function}


def budget(numbers: Mapping[str, Any]) -> int:
    """Return the largest magnitude of an element of an update (BAA-25)."""
    return (int(numbers["R"]) - 1) // 2 // (int(numbers["K"]) * int(numbers["c_g"]))


def positions(numbers: Mapping[str, Any]) -> int:
    """Return P."""
    return int(numbers["K"]) + int(numbers["S"])


def wrong_numbers(numbers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes that break BAA-01 or BAA-02, each by its name."""
    N, T, K, S = (int(numbers[name]) for name in ("N", "T", "K", "S"))
    R, c_g = int(numbers["R"]), int(numbers["c_g"])
    return {
        "nobody colludes": {"T": 0},
        "a small buffer": {"K": T + 1},
        "more positions than users": {"K": N - S + 1},
        "a negative number of spares": {"S": -1},
        "spares without skipping": {"timeouts": "void", "S": 1, "N": N + 1},
        "another end of timeouts": {"timeouts": "keep"},
        "a modulus of 1": {"R": "1"},
        "a modulus above 2**32": {"R": str(2**32 + 1)},
        "no element": {"d": 0},
        "a negative tau_max": {"tau_max": -1},
        "c_l of 0": {"c_l": "0"},
        "c_l above 2**32": {"c_l": str(2**32 + 1)},
        "c_g of 0": {"c_g": "0"},
        "weights that vanish": {"kind": "polynomial", "numerator": 1000, "denominator": 1, "start": "0", "tau_max": 10},
        "weights that no sum holds": {"c_g": str((R - 1) // 2 // K + 1)},
        "an average that is not one division": {"c_l": str(2**53 // (K * c_g) + 1)},
    }


# ------------------------------------------------------------------------------------------------------------ plans


@dataclass(frozen=True)
class Act:
    """What happens next: the visit of a user, or the end of an epoch.

    kind : ``upload``, ``free`` (the offer expires, no key was given), ``skip`` (it expires after the key was given),
    ``late`` (the upload comes after that), ``denied`` (the server takes the upload, and the authority is told that it
    expired), ``open``, ``close``, ``abandon``. Of a visit that ends early, `fetched` says
    that the user took the offer, and `told` that the authority was told of it.
    """

    kind: str
    user: int = -1
    stamp: int = 0
    fetched: bool = True
    told: bool = True


@dataclass(eq=False)
class Plan:
    """Draws acts, and knows what came of them by the text: the epoch, who is where, and the updates of each user."""

    draw: Any
    numbers: Mapping[str, Any]
    first: int
    acts: list[Act] = field(default_factory=list)
    stamps: dict[int, list[int]] = field(default_factory=dict)
    spent: Counter[int] = field(default_factory=Counter)
    accepted: list[int] = field(default_factory=list)
    keyed: set[int] = field(default_factory=set)
    next: int = 0
    epoch: int = -1

    def number(self, name: str) -> int:
        """Return one of the numbers."""
        return int(self.numbers[name])

    @property
    def people(self) -> list[int]:
        """The users that may come: all, or some of a large roster."""
        N = self.number("N")
        return list(range(N)) if N < _MANY else [0, 1, 2, 255, 256, 257, N - 1, N - 2]

    @property
    def ready(self) -> bool:
        """Whether the authority takes that the epoch is closed (BAA-19)."""
        count, full = len(self.accepted), positions(self.numbers)
        return count >= self.number("K") or (self.next == full and count >= self.number("T") + 2)

    @property
    def spare(self) -> int:
        """How many positions may still be skipped."""
        return positions(self.numbers) - self.next - (self.number("T") + 2 - len(self.accepted))

    def open(self) -> None:
        """Begin the next epoch."""
        self.epoch = self.first if self.epoch < 0 else self.epoch + 1
        self.accepted, self.keyed, self.next = [], set(), 0
        self.acts.append(Act("open"))

    def able(self) -> list[int]:
        """Return the users that may be offered a position (BAA-36), with an update that is not too old."""
        oldest = self.epoch - self.number("tau_max")
        return [user for user in self.people if user not in self.keyed and not self._too_old(user, oldest)]

    def _too_old(self, user: int, oldest: int) -> bool:
        stamp = self.hand(user)
        return stamp is not None and stamp < oldest

    def hand(self, user: int) -> int | None:
        """Return the stamp of the update that a user has in hand."""
        stamps = self.stamps.get(user, [])
        return stamps[self.spent[user]] if self.spent[user] < len(stamps) else None

    def _stamp(self, user: int) -> int:
        if self.hand(user) is None:
            oldest = max(0, self.epoch - self.number("tau_max"))
            drawn = int(self.draw(st.sampled_from((self.epoch, oldest)) | st.integers(oldest, self.epoch)))
            self.stamps.setdefault(user, []).append(drawn)
        stamp = self.hand(user)
        assert stamp is not None
        return stamp

    def visit(self, kind: str, user: int | None = None) -> None:
        """Let a user come."""
        who = int(self.draw(st.sampled_from(self.able()))) if user is None else user
        fetched, told = (bool(self.draw(st.booleans())) for _ in range(2)) if kind == "free" else (True, True)
        self.acts.append(Act(kind, who, self._stamp(who), fetched, told))
        if kind != "free":
            self.keyed.add(who)
            self.next += 1
        if kind == "upload":
            self.accepted.append(who)
        if kind in ("upload", "late", "denied"):
            self.spent[who] += 1

    def kinds(self) -> list[str]:
        """Return the visits that may come now, so that the epoch can still be closed, the likely ones first."""
        full = positions(self.numbers)
        if len(self.accepted) == self.number("K") or self.next == full or not self.able():
            return []
        lost = ["skip", "late"] if self.numbers["timeouts"] == "settle" and self.spare > 0 else []
        return ["upload", "upload", "free", *lost]

    def fill(self, kinds: Sequence[str] = ("upload", "free", "skip", "late")) -> None:
        """Draw visits until there is no room, or, now and then, until the epoch can be closed or is given up."""
        patience = 3
        while found := [kind for kind in self.kinds() if kind in kinds and (kind != "free" or patience)]:
            kind = found[self.draw(st.integers(0, len(found) - 1))]
            patience -= kind == "free"
            self.visit(kind)

    def end(self) -> None:
        """Close the epoch, or give it up when that is refused."""
        self.acts.append(Act("close" if self.ready else "abandon"))

    def whole(self) -> None:
        """Draw an epoch that ends with a sum, if there are users enough."""
        self.open()
        self.fill()
        self.end()

    def broken(self) -> None:
        """Draw an epoch that ends without a sum."""
        self.open()
        for _ in range(self.draw(st.integers(0, 2))):
            if "upload" in self.kinds():
                self.visit("upload")
        if self.numbers["timeouts"] == "void" and self.kinds() and self.draw(st.booleans()):
            self.visit(self.draw(st.sampled_from(("skip", "late"))))
        else:
            self.acts.append(Act("abandon"))


def plan(draw: Any, chosen: Mapping[str, Any]) -> Plan:
    """Draw nothing yet: return a plan without an act."""
    return Plan(draw, chosen, int(draw(st.sampled_from(FIRST_EPOCHS))))


# ------------------------------------------------------------------------------------------------------------ deals


def deal(draw: Any, drawn: Plan | None = None) -> Deal:
    """Draw what every party of a plan is given, and an update more in half of the cases."""
    made = Plan(draw, numbers(draw), int(draw(st.sampled_from(FIRST_EPOCHS)))) if drawn is None else drawn
    chosen, more = made.numbers, draw(st.integers(0, 1))
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basa")
    epochs = sum(act.kind == "open" for act in made.acts) or 1
    keys = rounds.key_of(2**31, draw(st.integers(0, 255)))
    signing = {user: rounds.key_of(user, keys[0]) for user in range(int(chosen["N"]))}
    shown = {"verification": [verifying(key).hex() for key in signing.values()]}
    users = sorted(set(made.stamps) | {0, made.people[-1]})
    setups: dict[int, dict[str, Any]] = {
        SERVER: {**shown, "authority": verifying(keys).hex()},
        AUTHORITY: {**shown, "signing": keys.hex()},
    }
    rands: dict[int, dict[str, Any]] = {AUTHORITY: _authority_values(source, chosen, epochs + more)}
    for user in users:
        stamps = [*made.stamps.get(user, []), *[made.first] * more]
        given = basecagg_scenes.updates(draw, {**chosen, "q": chosen["R"]}, len(stamps))
        own = {"updates": [pack(row) for row in given], "stamps": pack(np.array(stamps, np.uint64))}
        setups[user] = {**setups[SERVER], "user": user, "signing": signing[user].hex(), **own}
        rands[user] = _user_values(draw, source, chosen, len(stamps))
    server = made.first - 1
    return Deal("basa", chosen, rounds.session_id(draw), made.first, setups, rands, {SERVER: server})


_KEYS: dict[bytes, bytes] = {}


def verifying(private: bytes) -> bytes:
    """Return a verification key; those of large rosters are asked for again and again."""
    if private not in _KEYS:
        _KEYS[private] = verification_key(private)
    return _KEYS[private]


def _authority_values(source: SeededSource, numbers: Mapping[str, Any], count: int) -> dict[str, Any]:
    size = 32 * positions(numbers)
    own = count if numbers["timeouts"] == "settle" else 0
    return {name: [source.take(size).hex() for _ in range(n)] for name, n in (("pair_keys", count), ("self_keys", own))}


def _user_values(draw: Any, source: SeededSource, numbers: Mapping[str, Any], count: int) -> dict[str, Any]:
    seeds = [source.take(32 * positions(numbers)).hex() for _ in range(count)]
    keys = [source.take(32).hex() for _ in range(count)]
    return {"seeds": seeds, "box_keys": keys, "roundings": pack_reals(cases.rounding(draw, count))}


# --------------------------------------------------------------------------------------------------------- sessions


@dataclass(frozen=True)
class Moment:
    """What a party knows before a step, or in the end.

    phase : of the server ``idle``, ``filling``, ``serving``, ``settling``, ``closing``; of the authority ``closed``,
    ``filling``, ``assigned``, ``keyed``; of a user ``idle``, ``asked``, ``fetched``. `epoch` is the one that is open,
    or the last one, or that of the offer; `position` the first unused one or the one in question, `user` who is there;
    `accepted` and `skipped` are users by position. `used` are the updates that a user uploaded.
    """

    phase: str
    epoch: int
    position: int = 0
    user: int = -1
    accepted: tuple[tuple[int, int], ...] = ()
    skipped: tuple[tuple[int, int], ...] = ()
    used: int = 0

    @property
    def holders(self) -> set[int]:
        """The users whose positions were settled for good."""
        return {user for _, user in (*self.accepted, *self.skipped)}


Tamper = Callable[[Message], Message]


def _same(message: Message) -> Message:
    return message


@dataclass(eq=False)
class Director:
    """Goes through a plan on the reference, and notes what each party knows.

    `moments` has an entry for each step of a party, and `now` the last one. `uploads` are the uploads of the open epoch
    that were accepted, `late` those that nobody took. `tamper` changes uploads before the server gets them.
    """

    stage: PositionStage
    tamper: Tamper = _same
    now: dict[int, Moment] = field(default_factory=dict)
    moments: dict[int, list[Moment]] = field(default_factory=dict)
    late: list[tuple[int, Message]] = field(default_factory=list)

    def know(self, party: int, **changes: Any) -> None:
        """Change what a party knows."""
        self.now[party] = replace(self.knows(party), **changes)

    def knows(self, party: int) -> Moment:
        """Return what a party knows."""
        start = {SERVER: "idle", AUTHORITY: "closed"}.get(party, "idle")
        return self.now.get(party, Moment(start, self.stage.deal.round_of(party) - (party == AUTHORITY)))

    def take(self, party: int, phase: str, *inbox: Key) -> list[Key]:
        """Let a party take a step, and note what it knew before."""
        self.moments.setdefault(party, []).append(self.knows(party))
        return self.stage.take(Turn(party, phase, inbox))

    def play(self, acts: Sequence[Act]) -> PositionStage:
        """Go through some acts."""
        for act in acts:
            if act.kind in ("open", "close", "abandon"):
                getattr(self, f"_{act.kind}")()
            else:
                self._visit(act)
        return self.stage

    def _both(self, **changes: Any) -> None:
        for party in (SERVER, AUTHORITY):
            self.know(party, **changes)

    def _open(self) -> None:
        epoch = self.knows(AUTHORITY).epoch + 1
        [keys] = self.take(AUTHORITY, "open")
        self.know(AUTHORITY, phase="filling", epoch=epoch, position=0, user=-1, accepted=(), skipped=())
        self.take(SERVER, "open", keys)
        self.know(SERVER, phase="filling", epoch=epoch, position=0, user=-1, accepted=(), skipped=())

    def _visit(self, act: Act) -> None:
        server, user = self.knows(SERVER), act.user
        [asked] = self.take(user, "request")
        self.know(user, phase="asked")
        offer, told = sorted(self.take(SERVER, "offer", asked), key=lambda key: key.receiver == AUTHORITY)
        self.know(SERVER, phase="serving", user=user)
        if act.told or act.kind != "free":
            self.take(AUTHORITY, "assign", told)
            self.know(AUTHORITY, phase="assigned", user=user)
        if act.fetched:
            [wish] = self.take(user, "fetch", offer)
            self.know(user, phase="fetched", epoch=server.epoch, position=server.position)
        upload = None
        if act.kind != "free":
            [key] = self.take(AUTHORITY, "issue", wish)
            self.know(AUTHORITY, phase="keyed")
            upload = self._upload(user, key) if act.kind in ("upload", "late", "denied") else None
        if act.kind == "late" and upload is not None:
            self.late.append((len(self.moments[SERVER]), self.stage.sent[upload]))
        self._settle(act, None if act.kind == "late" else upload)

    def _upload(self, user: int, key: Key) -> Key:
        [sent] = self.take(user, "upload", key)
        self.stage.sent[sent] = self.tamper(self.stage.sent[sent])
        self.know(user, phase="idle", used=self.knows(user).used + 1)
        return sent

    def _settle(self, act: Act, upload: Key | None) -> None:
        [told] = self.take(SERVER, "expire") if upload is None else self.take(SERVER, "take", upload)
        self.know(SERVER, phase="settling")
        if act.kind == "denied":
            message = self.stage.sent[told]
            blank = {"accepted": 0, "stamp": 0, "weight": 0, "hashes": b"", "signature": b""}
            self.stage.sent[told] = replace(message, **blank)  # type: ignore[arg-type]
        [state] = self.take(AUTHORITY, "settle", told)
        self._note(act, AUTHORITY)
        self.take(SERVER, "settle", state)
        self._note(act, SERVER)

    def _note(self, act: Act, party: int) -> None:
        """Note what became of a position."""
        known = self.knows(party)
        if act.kind == "free":
            self.know(party, phase="filling", user=-1)
            return
        name = "accepted" if act.kind == "upload" else "skipped"
        settled = (*getattr(known, name), (known.position, act.user))
        self.know(party, phase="filling", position=known.position + 1, user=-1, **{name: settled})
        if act.kind != "upload" and self.stage.deal.numbers["timeouts"] == "void":
            self.know(party, phase="idle" if party == SERVER else "closed")

    def _close(self) -> None:
        [wish] = self.take(SERVER, "close")
        self.know(SERVER, phase="closing")
        [release] = self.take(AUTHORITY, "close", wish)
        self.know(AUTHORITY, phase="closed")
        self.take(SERVER, "recover", release)
        self.know(SERVER, phase="idle")

    def _abandon(self) -> None:
        [told] = self.take(SERVER, "abandon")
        self.know(SERVER, phase="idle")
        self.take(AUTHORITY, "abandon", told)
        self.know(AUTHORITY, phase="closed")


def directed(draw: Any, drawn: Plan, tamper: Tamper | None = None) -> Director:
    """Draw what the parties of a plan are given, and go through it."""
    director = Director(opened_stage(deal(draw, drawn)), tamper or _same)
    director.play(drawn.acts)
    return director


def session(draw: Any, *, void: bool | None = None, spares: Sequence[int] = (1, 0, 2)) -> Director:
    """Draw a session of one or two epochs, the last of which ends with a sum, and go through it."""
    drawn = plan(draw, numbers(draw, void=void, spares=spares))
    for _ in range(draw(st.integers(0, 1))):
        drawn.broken() if draw(st.booleans()) else drawn.whole()
    drawn.whole()
    return directed(draw, drawn)


def settled(draw: Any) -> Director:
    """Draw a session as above, with fewer offers that expire before a key is given."""
    drawn = plan(draw, numbers(draw))
    drawn.open()
    drawn.fill(("upload", "skip", "late"))
    drawn.end()
    return directed(draw, drawn)


def belated(draw: Any) -> Director:
    """Draw a session in which an upload comes when its offer has expired, and another epoch follows."""
    drawn = plan(draw, numbers(draw, void=draw(st.sampled_from((False, False, True))), spares=(1, 2)))
    drawn.open()
    for _ in range(draw(st.integers(0, 2))):
        drawn.visit("upload")
    drawn.visit("late")
    if drawn.numbers["timeouts"] == "settle":
        drawn.fill()
        drawn.end()
    if draw(st.booleans()):
        drawn.whole()
    return directed(draw, drawn)


def denied(draw: Any) -> Director:
    """Draw an epoch in which the authority does not accept an upload that the server took."""
    drawn = plan(draw, numbers(draw, void=False, spares=(1, 2)))
    drawn.open()
    for _ in range(draw(st.integers(0, 2))):
        drawn.visit("upload")
    drawn.visit("denied")
    drawn.fill(("upload", "free"))
    drawn.end()
    return directed(draw, drawn)
