"""Draws sessions of BASA: numbers, what every party is given, and who gets which position when (spec/basa.md).

A *plan* is drawn first, from the text alone: the acts of some epochs, where an act is the visit of a user or the end of
an epoch. What the parties are given fits the plan, and the reference runs it. Before each step, what the party knows is
noted. A fault can then be put in the right place without reading the state of any party.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import basecagg_sessions, lightsecagg_parties, strategies
from secagg_spec.conformance.sessions import basa_fixed
from secagg_spec.conformance.sessions.basa_acts import Act, Director, Tamper, positions, same
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.protocols.steps import AUTHORITY, SERVER

FIRST_EPOCHS = (1, 2, 255, 256, 2**31, 2**32 - 9)
_MODULI = (16, 97, 2**16, 2**31, 2**32 - 5, 2**32)
_LEVELS = (2, 1, 3, 5, 12, 64)
_MANY = 300
"""A roster whose users have numbers above 255."""


def numbers(draw: Any, *, void: bool | None = None, spares: Sequence[int] = (1, 0, 2)) -> dict[str, Any]:
    """Draw the numbers of a session of up to six positions, as a request holds them."""
    ends = bool(draw(st.booleans())) if void is None else void
    T = draw(st.integers(1, 2))
    K = draw(st.integers(T + 2, T + 3))
    S = 0 if ends else int(draw(among(spares)))
    N = draw(among((K + S + 1, K + S, K + S + 2, _MANY)))
    shape = {"N": N, "T": T, "d": strategies.length(draw, 1, 4), "K": K, "S": S}
    return {**shape, **levels(draw, K), "timeouts": "void" if ends else "settle"}


def levels(draw: Any, K: int) -> dict[str, Any]:
    """Draw a modulus, the levels, the largest staleness and the function, as BAA-02 allows."""
    tau_max = draw(among((1, 0, 2, 10)))
    c_g, function = basecagg_sessions.late_weights(draw, _LEVELS, tau_max)
    R = draw(among([R for R in _MODULI if K * c_g <= (R - 1) // 2]))
    c_l = draw(among((1, 3, 65536)))
    return {"R": str(R), "c_l": str(c_l), "c_g": str(c_g), "tau_max": tau_max, **function}


def wrong_numbers(numbers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes that break BAA-01 or BAA-02, by name."""
    N, T, K, S = (int(numbers[name]) for name in ("N", "T", "K", "S"))
    return {
        "nobody colludes": {"T": 0},
        "a small buffer": {"K": T + 1},
        "more positions than users": {"K": N - S + 1},
        "a negative number of spares": {"S": -1},
        "spares without skipping": {"timeouts": "void", "S": 1, "N": N + 1},
        "another end of timeouts": {"timeouts": "keep"},
        "a modulus of 1": {"R": "1"},
        "a modulus above 2**32": {"R": str(2**32 + 1)},
        **basecagg_sessions.wrong_levels(int(numbers["R"]), K, int(numbers["c_g"])),
    }


@dataclass(eq=False)
class Plan:
    """Draws acts, and knows their results by the text: the epoch, who has which position, and each user's updates."""

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
        """The users that may visit: all users, or some of a large roster."""
        N = self.number("N")
        return list(range(N)) if N < _MANY else [0, 1, 2, 255, 256, 257, N - 1, N - 2]

    @property
    def ready(self) -> bool:
        """Whether the authority accepts that the epoch is closed (BAA-19)."""
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
        """Return the users that may be offered a position (BAA-36) and have an update that is not too old."""
        oldest = self.epoch - self.number("tau_max")
        return [user for user in self.people if user not in self.keyed and not self._too_old(user, oldest)]

    def _too_old(self, user: int, oldest: int) -> bool:
        stamp = self.hand(user)
        return stamp is not None and stamp < oldest

    def hand(self, user: int) -> int | None:
        """Return the stamp of the update that a user will upload next."""
        stamps = self.stamps.get(user, [])
        return stamps[self.spent[user]] if self.spent[user] < len(stamps) else None

    def _stamp(self, user: int) -> int:
        if self.hand(user) is None:
            oldest = max(0, self.epoch - self.number("tau_max"))
            drawn = int(self.draw(among((self.epoch, oldest)) | st.integers(oldest, self.epoch)))
            self.stamps.setdefault(user, []).append(drawn)
        stamp = self.hand(user)
        assert stamp is not None
        return stamp

    def visit(self, kind: str, user: int | None = None) -> None:
        """Let a user visit."""
        who = int(self.draw(among(self.able()))) if user is None else user
        fetched, heard = (bool(self.draw(st.booleans())) for _ in range(2)) if kind == "free" else (True, True)
        self.acts.append(Act(kind, who, self._stamp(who), fetched, heard))
        if kind != "free":
            self.keyed.add(who)
            self.next += 1
        if kind == "upload":
            self.accepted.append(who)
        if kind in ("upload", "late", "denied"):
            self.spent[who] += 1

    def kinds(self) -> list[str]:
        """Return the visits that are possible now and leave the epoch closable. The likely ones come first."""
        full = positions(self.numbers)
        if len(self.accepted) == self.number("K") or self.next == full or not self.able():
            return []
        lost = ["skip", "late"] if self.numbers["timeouts"] == "settle" and self.spare > 0 else []
        return ["upload", "upload", "free", *lost]

    def fill(self, kinds: Sequence[str] = ("upload", "free", "skip", "late")) -> None:
        """Draw visits until there is no room or, sometimes, until the epoch can be closed or is given up."""
        patience = 3
        while found := [kind for kind in self.kinds() if kind in kinds and (kind != "free" or patience)]:
            kind = found[self.draw(st.integers(0, len(found) - 1))]
            patience -= kind == "free"
            self.visit(kind)

    def end(self) -> None:
        """Close the epoch, or give it up if closing is refused."""
        self.acts.append(Act("close" if self.ready else "abandon"))

    def whole(self) -> None:
        """Draw an epoch that ends with a sum, if there are enough users."""
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
            self.visit(self.draw(among(("skip", "late"))))
        else:
            self.acts.append(Act("abandon"))


def plan(draw: Any, chosen: Mapping[str, Any]) -> Plan:
    """Return a plan without acts. Nothing is drawn yet."""
    return Plan(draw, chosen, int(draw(among(FIRST_EPOCHS))))


def inputs(draw: Any, drawn: Plan | None = None) -> SessionInputs:
    """Draw what every party of a plan is given. In half of the cases there is one update too many."""
    made = Plan(draw, numbers(draw), int(draw(among(FIRST_EPOCHS)))) if drawn is None else drawn
    chosen, more = made.numbers, draw(st.integers(0, 1))
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basa")

    def take(name: str, size: int) -> bytes:
        return source.take(size)

    epochs = sum(act.kind == "open" for act in made.acts) or 1
    key = lightsecagg_parties.key_of(2**31, draw(st.integers(0, 255)))
    signing = {user: lightsecagg_parties.key_of(user, key[0]) for user in range(int(chosen["N"]))}
    everybody, rands = basa_fixed.keyed(take, chosen, signing, key, epochs + more)
    users = sorted(set(made.stamps) | {0, made.people[-1]})
    setups = {party: everybody[party] for party in (SERVER, AUTHORITY, *users)}
    for user in users:
        stamps = [*made.stamps.get(user, []), *[made.first] * more]
        given = basecagg_sessions.updates(draw, {**chosen, "q": chosen["R"]}, len(stamps))
        setups[user] |= basa_fixed.uploads(given, stamps)
        rands[user] = basa_fixed.values(take, chosen, user, len(stamps))
        rands[user]["roundings"] = pack_reals(strategies.rounding(draw, len(stamps)))
    session = lightsecagg_parties.session_id(draw)
    return SessionInputs("basa", chosen, session, made.first, setups, rands, {SERVER: made.first - 1})


def directed(draw: Any, drawn: Plan, tamper: Tamper | None = None) -> Director:
    """Draw what the parties of a plan are given, and run it."""
    director = Director(PositionStage.of(inputs(draw, drawn)), tamper or same)
    director.play(drawn.acts)
    return director


def session(draw: Any, *, void: bool | None = None, spares: Sequence[int] = (1, 0, 2)) -> Director:
    """Draw a session of one or two epochs, the last of which ends with a sum, and run it."""
    drawn = plan(draw, numbers(draw, void=void, spares=spares))
    for _ in range(draw(st.integers(0, 1))):
        drawn.broken() if draw(st.booleans()) else drawn.whole()
    drawn.whole()
    return directed(draw, drawn)


def settled(draw: Any) -> Director:
    """Draw a session like `session`, with fewer offers that expire before a key is given."""
    drawn = plan(draw, numbers(draw))
    drawn.open()
    drawn.fill(("upload", "skip", "late"))
    drawn.end()
    return directed(draw, drawn)


def belated(draw: Any) -> Director:
    """Draw a session in which an upload arrives after its offer expired, and another epoch follows."""
    drawn = plan(draw, numbers(draw, void=draw(among((False, False, True))), spares=(1, 2)))
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


def returning(draw: Any) -> Director:
    """Draw two epochs with the same users."""
    drawn = plan(draw, numbers(draw))
    drawn.open()
    drawn.fill(("upload",))
    again = list(drawn.accepted)
    drawn.end()
    drawn.open()
    for user in strategies.shuffled(draw, again):
        drawn.visit("upload", user)
    drawn.end()
    return directed(draw, drawn)
