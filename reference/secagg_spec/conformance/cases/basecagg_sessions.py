"""Draws sessions of BASecAgg: numbers, what every party is given, and who does what when (spec/basecagg.md).

The turns of a session are drawn while the reference runs, because the possible turns of a party depend on what has
happened. All turns are by honest parties, so every step of a drawn session must be taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import lightsecagg_active_parties, lightsecagg_parties, strategies
from secagg_spec.conformance.sessions.basecagg_stage import Key, Stage, Turn, answering
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.session import base_of
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.protocols.steps import SERVER

FUNCTIONS = (("polynomial", 1, 1, 0), ("constant", 0, 1, 0), ("hinge", 1, 2, 1), ("polynomial", 1, 2, 0))
FIRST_ROUNDS = (0, 1, 255, 256, 2**31, 2**32 - 9)
_PRIMES = (19, 97, 32749, 2**31 - 1, 2**32 - 5)
_LEVELS = (3, 1, 2, 5, 12, 64)
_LATEST = (2, 0, 1, 3)
_MOST = 12
"""The most actions that are drawn between two recoveries."""


def numbers(draw: Any, *, spare: int = 0, latest: Sequence[int] = _LATEST, active: bool = False) -> dict[str, Any]:
    """Draw the numbers of a session of up to 7 users, as a request holds them, with at least U + `spare` users.

    In the active profile W is one of them.
    """
    T = draw(st.integers(1, 2))
    U = draw(st.integers(T + 1, T + 2))
    D = draw(st.integers(0, 1))
    least = max(U + max(D, spare), T + 2, T + 2 * D + 1 if active else 0)
    N = draw(st.integers(least, least + 1))
    chosen = {"N": N, "D": D, "U": U, "T": T, "d": strategies.length(draw, 1, 4)}
    chosen |= levels(draw, N, T, _PRIMES, latest)
    return _signed(draw, chosen) if active else chosen


def _signed(draw: Any, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Draw W for the other numbers of a session (BSA-37)."""
    N, D, U, T = (chosen[name] for name in ("N", "D", "U", "T"))
    return {**chosen, "W": draw(st.integers(max(U, (N + T) // 2 + 1), N - D))}


def levels(
    draw: Any, N: int, T: int, primes: Sequence[int], latest: Sequence[int] = _LATEST, K: int | None = None
) -> dict[str, Any]:
    """Draw K, a modulus among some primes, the levels, the largest staleness and the function, as BSA-02 allows."""
    K = draw(st.integers(T + 2, N)) if K is None else K
    tau_max = draw(among(latest))
    fitting = [q for q in primes if q > N and (q - 1) // 2 >= K]
    largest = (max(fitting) - 1) // 2 // K
    c_g, function = late_weights(draw, [c for c in _LEVELS if c <= largest], tau_max)
    q = draw(among([q for q in fitting if (q - 1) // 2 >= K * c_g]))
    c_l = draw(among((1, 3, 65536)))
    return {"q": str(q), "K": K, "c_l": str(c_l), "c_g": str(c_g), "tau_max": tau_max, **function}


def late_weights(draw: Any, levels: Sequence[int], tau_max: int) -> tuple[int, dict[str, Any]]:
    """Draw a level, and a staleness function by which no update vanishes at this level, in the form of a request."""
    choices = [
        (function, c)
        for function in FUNCTIONS
        for c in levels
        if floor_weight(Staleness(*function), c, tau_max) >= 1  # type: ignore[arg-type]
    ]
    (kind, p, r, b), c_g = choices[draw(st.integers(0, len(choices) - 1))]
    return c_g, {"kind": kind, "numerator": p, "denominator": r, "start": str(b)}


def budget(numbers: Mapping[str, Any]) -> int:
    """Return B, the largest magnitude of an element of an update (BSA-06)."""
    return (int(numbers["q"]) - 1) // 2 // (int(numbers["K"]) * int(numbers["c_g"]))


def wrong_numbers(numbers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes that break BSA-01 or BSA-02, by name."""
    N, U, T, K = (numbers[name] for name in ("N", "U", "T", "K"))
    q = int(numbers["q"])
    return {
        "nobody colludes": {"T": 0},
        "as many answers as colluders": {"U": T},
        "too few users stay": {"D": N - U + 1},
        "a negative D": {"D": -1},
        "a small buffer": {"K": T + 1},
        "a buffer of more than all": {"K": N + 1},
        "no prime": {"q": str(q - 1)},
        "a small field": {"q": "2"},
        "a field above 2**32": {"q": str(2**32 + 15)},
        **wrong_levels(q, K, int(numbers["c_g"])),
    }


def wrong_levels(q: int, K: int, c_g: int) -> dict[str, dict[str, Any]]:
    """Return changes of the length, the levels and the function that break BSA-02 or BAA-02, by name."""
    return {
        "no element": {"d": 0},
        "a negative tau_max": {"tau_max": -1},
        "c_l of 0": {"c_l": "0"},
        "c_l above 2**32": {"c_l": str(2**32 + 1)},
        "c_g of 0": {"c_g": "0"},
        "weights that vanish": {"kind": "polynomial", "numerator": 1000, "denominator": 1, "start": "0", "tau_max": 10},
        "weights that no sum holds": {"c_g": str((q - 1) // 2 // K + 1)},
        "an average that is not one division": {"c_l": str(2**53 // (K * c_g) + 1)},
    }


def updates(draw: Any, numbers: Mapping[str, Any], count: int) -> list[UintArray]:
    """Draw updates that fit in a buffer."""
    return carried(draw, budget(numbers), int(numbers["q"]), int(numbers["d"]), count)


def carried(draw: Any, B: int, q: int, d: int, count: int) -> list[UintArray]:
    """Draw updates modulo q of a budget B: both ends of it, small numbers, and pseudo-random ones."""
    first = draw(st.integers(0, 2))
    random = strategies.seeded_vector(draw, min(2 * B + 1, 2**32), count * d).reshape(count, d)
    made = []
    for number in range(count):
        ramp, ends = [(number + at) % (B + 1) for at in range(d)], [B if at % 2 else -B for at in range(d)]
        values = (ramp, ends, [int(value) - B for value in random[number]])[(first + number) % 3]
        made.append(np.array([value % q for value in values], dtype=np.uint64))
    return made


def inputs(
    draw: Any, given: Mapping[str, Any] | None = None, *, count: int = 3, channel: str | None = None
) -> SessionInputs:
    """Draw what every party of a session is given: `count` updates and masks per user, and as many roundings."""
    chosen = numbers(draw) if given is None else dict(given)
    N, K, q, T, d = (int(chosen[name]) for name in ("N", "K", "q", "T", "d"))
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basecagg")
    rows = T * -(-d // (chosen["U"] - T))
    if "W" in chosen:
        shown, own = lightsecagg_active_parties.given_keys(draw, lightsecagg_parties.private_keys(draw, N))
    else:
        shown, own = {}, _channels(draw, N, channel)
    given_updates = [pack(vector) for vector in updates(draw, chosen, N * count)]
    setups: dict[int, Mapping[str, Any]] = {SERVER: shown}
    rands: dict[int, Mapping[str, Any]] = {}
    for user in range(N):
        setups[user] = {"user": user, **own[user], "updates": given_updates[user * count : (user + 1) * count]}
        sizes = {"masks": d, "noises": rows}
        drawn = {name: [pack(draw_elements(source, Ring(q), (n,))) for _ in range(count)] for name, n in sizes.items()}
        rands[user] = drawn
    rands[SERVER] = {"roundings": [pack_reals(strategies.rounding(draw, K)) for _ in range(count)]}
    first = int(draw(among(FIRST_ROUNDS)))
    name = "basecagg-active" if "W" in chosen else "basecagg"
    return SessionInputs(name, chosen, lightsecagg_parties.session_id(draw), first, setups, rands)


def _channels(draw: Any, N: int, channel: str | None) -> list[dict[str, Any]]:
    """Draw the channel of each user."""
    kind = draw(among(("plain", "sealed"))) if channel is None else channel
    if kind == "plain":
        return [{"channel": "plain"}] * N
    return lightsecagg_parties.sealed_channels(lightsecagg_parties.private_keys(draw, N))


@dataclass(eq=False)
class Director:
    """Draws the turns of a session, and knows which messages are on their way.

    `asking`, `stamps` and `coming` hold each user's request, stamp and masked update. `batches` holds the shares of a
    user that wait at the server, `mail` those that wait for a user. `shown` holds the announcements of a buffer.
    """

    draw: Any
    stage: Stage
    asking: dict[int, Key] = field(default_factory=dict)
    stamps: dict[int, Key] = field(default_factory=dict)
    coming: dict[int, Key] = field(default_factory=dict)
    batches: dict[int, list[Key]] = field(default_factory=dict)
    mail: dict[int, list[Key]] = field(default_factory=dict)
    shown: dict[int, Key] = field(default_factory=dict)

    # what the parties know

    @property
    def server(self) -> Any:
        """The state of the server, as the semi-honest profile has it."""
        return base_of(self.stage.parties[SERVER].state)

    def user(self, user: int) -> Any:
        """Return the state of a user, as the semi-honest profile has it."""
        return base_of(self.stage.parties[user].state)

    @property
    def users(self) -> list[int]:
        """The users."""
        return self.stage.inputs.users

    def number(self, name: str) -> int:
        """Return one of the numbers of the session."""
        return int(self.stage.inputs.numbers[name])

    # who can do what

    def _stamp(self, user: int) -> int | None:
        record = self.server.records.get(user)
        return None if record is None else record.stamp

    def _fresh(self, user: int) -> bool:
        """Whether a user's last stamp is recent enough for its update."""
        stamp = self._stamp(user)
        return stamp is not None and self.server.round - stamp <= self.number("tau_max")

    def can_ask(self, user: int) -> bool:
        """Whether a user may ask for a model and the server then gives it one."""
        return self._is_out(user) and self._stamp(user) != self.server.round

    def can_send(self, user: int) -> bool:
        """Whether a user may upload and its update can be accepted."""
        return user not in self.batches and self.user(user).phase == "training" and self._fresh(user)

    def can_give_up(self, user: int) -> bool:
        """Whether a user may abandon its training and the others can still fill the buffer."""
        if self.user(user).phase != "training":
            return False
        if self._stamp(user) != self.server.round:
            return True
        out = [u for u in self.users if self._stamp(u) == self.server.round and self._is_out(u)]
        return len(self.users) - len(out) > self.number("K")

    def _is_out(self, user: int) -> bool:
        waiting = (self.asking, self.stamps, self.coming, self.server.buffer)
        return self.user(user).phase == "idle" and not any(user in some for some in waiting)

    # what they do

    def start(self, users: Sequence[int]) -> None:
        """Let users ask for the model, get their stamps and share their masks."""
        for act in (self.ask, self.give, self.begin, self.relay):
            act(users)

    def ask(self, users: Sequence[int]) -> None:
        """Let users ask for the model."""
        for user in users:
            [self.asking[user]] = self.stage.take(Turn(user, "request"))

    def give(self, users: Sequence[int]) -> None:
        """Let the server give stamps to users that asked."""
        for key in self.stage.take(Turn(SERVER, "request", tuple(self.asking.pop(user) for user in users))):
            self.stamps[key.receiver] = key

    def begin(self, users: Sequence[int]) -> None:
        """Let users take their stamps, and share their masks."""
        for user in users:
            self.batches[user] = self.stage.take(Turn(user, "share", (self.stamps.pop(user),)))

    def relay(self, users: Sequence[int]) -> None:
        """Let the server relay shares."""
        keys = [key for user in users for key in self.batches.pop(user)]
        for key in self.stage.take(Turn(SERVER, "share", tuple(keys[:: self.draw(among((1, -1)))]))):
            self.mail.setdefault(key.receiver, []).append(key)

    def hold(self, users: Sequence[int]) -> None:
        """Let users hold the oldest waiting share of each sender."""
        for user in users:
            oldest: dict[int, Key] = {}
            for key in self.mail.get(user, []):
                oldest.setdefault(key.sender, key)
            self.mail[user] = [key for key in self.mail.get(user, []) if key not in oldest.values()]
            self.stage.take(Turn(user, "hold", tuple(oldest.values())))

    def send(self, users: Sequence[int]) -> None:
        """Let users upload."""
        for user in users:
            [self.coming[user]] = self.stage.take(Turn(user, "upload"))

    def collect(self, users: Sequence[int]) -> None:
        """Let the server take updates."""
        self.stage.take(Turn(SERVER, "upload", tuple(self.coming.pop(user) for user in users)))

    def give_up(self, users: Sequence[int]) -> None:
        """Let users abandon their training. Their shares may still wait at the server, and stay there."""
        for user in users:
            self.stage.take(Turn(user, "abandon"))
            self.batches.pop(user, None)

    def close(self) -> None:
        """Let the server announce its buffer."""
        self.shown = {key.receiver: key for key in self.stage.take(Turn(SERVER, "close"))}

    def answer(self, user: int) -> Key:
        """Let a user hold all shares that wait for it, and answer; in the active profile, sign."""
        while self.mail.get(user):
            self.hold([user])
        [key] = self.stage.take(Turn(user, answering(self.stage.inputs), (self.shown.pop(user),)))
        return key

    # what happens between two recoveries

    def possible(self) -> list[tuple[Callable[[Sequence[int]], None], list[int], int]]:
        """Return the actions that are possible now, each with its users and the most users that can take it at once."""
        users, server = self.users, self.server
        room = 0 if server.entries else self.number("K") - len(server.buffer)
        actions = [
            (self.ask, [u for u in users if self.can_ask(u)], len(users)),
            (self.give, [u for u in users if u in self.asking], len(users)),
            (self.begin, [u for u in users if u in self.stamps], len(users)),
            (self.relay, [u for u in users if u in self.batches], len(users)),
            (self.hold, [u for u in users if self.mail.get(u)], len(users)),
            (self.send, [u for u in users if self.can_send(u)], len(users)),
            (self.collect, [u for u in users if u in self.coming and self._fresh(u)], room),
            (self.give_up, [u for u in users if self.can_give_up(u)], 1),
        ]
        return [(act, able, most) for act, able, most in actions if able and most]

    def bustle(self, most: int = _MOST) -> None:
        """Draw some actions, each by some of the users that can take it."""
        for _ in range(self.draw(st.integers(0, most))):
            self._drop_stale()
            found = self.possible()
            if not found:
                return
            act, able, upper = found[self.draw(st.integers(0, len(found) - 1))]
            act(strategies.subset(self.draw, able, 1, min(upper, len(able))))

    def _drop_stale(self) -> None:
        """Remove updates on their way that have become too old: they are lost."""
        for user in [user for user in self.coming if not self._fresh(user)]:
            del self.coming[user]

    def fill(self, without: int | None = None) -> None:
        """Let users except `without` continue until the buffer is full. Users that train come first."""
        self._drop_stale()
        order = strategies.shuffled(self.draw, [user for user in self.users if user != without])
        for user in sorted(order, key=lambda user: not self.can_send(user)):
            if len(self.server.buffer) < self.number("K"):
                self._go_on(user)
        assert len(self.server.buffer) == self.number("K")

    def _go_on(self, user: int) -> None:
        """Let a user continue until its update is in the buffer, if that is possible."""
        for waiting, act in ((self.asking, self.give), (self.stamps, self.begin), (self.batches, self.relay)):
            if user in waiting:
                act([user])
        if self.user(user).phase == "training" and not self._fresh(user):
            self.give_up([user])
        if self.can_ask(user):
            self.start([user])
        if self.can_send(user):
            self.send([user])
        if user in self.coming:
            self.collect([user])

    def buffer(self, spare: int = 0) -> None:
        """Draw everything up to a full buffer, and its recovery from at least U + `spare` users."""
        self.bustle()
        self.fill()
        self.close()
        self.bustle(3)
        self.recover(spare)

    def recover(self, spare: int = 0) -> None:
        """Let at least U + `spare` users answer, and the server recover. A further answer may come in vain."""
        least = self.number("U") + spare
        if "W" in self.stage.inputs.numbers:
            answers = self._confirmed(least)
        else:
            answers = [self.answer(user) for user in strategies.subset(self.draw, self.users, least)]
        self.stage.take(Turn(SERVER, "recover", tuple(answers)))
        for user in strategies.subset(self.draw, sorted(self.shown), 0, 1):
            self.answer(user)

    def _confirmed(self, least: int) -> list[Key]:
        """Let users sign the buffer, and at least `least` of them answer its quorum."""
        signing = strategies.subset(self.draw, self.users, max(self.number("W"), least))
        signed = tuple(self.answer(user) for user in signing)
        quorums = {key.receiver: key for key in self.stage.take(Turn(SERVER, "confirm", signed))}
        self.bustle(2)
        chosen = strategies.subset(self.draw, signing, least)
        return [key for user in chosen for key in self.stage.take(Turn(user, "recover", (quorums[user],)))]


def session(draw: Any, inputs: SessionInputs, count: int, spare: int = 0) -> Stage:
    """Draw a session in which `count` buffers are recovered."""
    director = Director(draw, Stage.of(inputs))
    for _ in range(count):
        director.buffer(spare)
    director.bustle(3)
    return director.stage


def _roomy(draw: Any, latest: Sequence[int], spare: int = 0, active: bool = False) -> dict[str, Any]:
    """Draw the numbers of a session with more users than a buffer has places."""
    chosen = numbers(draw, spare=spare, latest=latest)
    N, T = int(chosen["N"]), int(chosen["T"])
    K = int(draw(st.integers(T + 2, N)))
    chosen |= {"N": N + 1, **levels(draw, N + 1, T, _PRIMES, (chosen["tau_max"],), K)}
    return _signed(draw, chosen) if active else chosen


def late(draw: Any, *, active: bool = False) -> Stage:
    """Draw a session in which an update is older than tau_max while the buffer has room for it."""
    chosen = _roomy(draw, (0, 1), active=active)
    director = Director(draw, Stage.of(inputs(draw, chosen, count=chosen["tau_max"] + 2)))
    [slow] = strategies.subset(draw, director.users, 1, 1)
    director.start([slow])
    for _ in range(chosen["tau_max"] + 1):
        director.fill(without=slow)
        director.close()
        director.recover()
    return director.stage


def crowded(draw: Any, *, active: bool = False) -> Stage:
    """Draw a session in which more users train than a buffer has places."""
    director = Director(draw, Stage.of(inputs(draw, _roomy(draw, _LATEST, active=active), count=2)))
    director.start(director.users)
    director.fill()
    director.close()
    director.recover()
    return director.stage


def mixed_ages(draw: Any, spare: int = 0, active: bool = False) -> Stage:
    """Draw a session in which everybody trains at once, so that the second buffer holds late updates."""
    director = Director(draw, Stage.of(inputs(draw, _roomy(draw, (2, 1, 3), spare, active), count=3)))
    director.start(director.users)
    for _ in range(2):
        director.fill()
        director.close()
        director.recover(spare)
    director.bustle(3)
    return director.stage


def played(draw: Any, *, spare: int = 0, least: int = 1, active: bool = False) -> Stage:
    """Draw a session of one or two buffers, and everything that it is given."""
    if draw(st.booleans()):
        return mixed_ages(draw, spare, active)
    count = draw(st.integers(least, 2))
    return session(draw, inputs(draw, numbers(draw, spare=spare, active=active), count=count + 1), count, spare)


def trimmed(draw: Any, stage: Stage) -> SessionInputs:
    """Return what the parties were given, without what none of them used.

    In half of the cases one spare of each stays.
    """
    inputs, more = stage.inputs, draw(st.integers(0, 1))
    used = {user: stage.parties[user].used for user in (*inputs.users, SERVER)}  # type: ignore[attr-defined]
    setups = {
        user: {**setup, "updates": setup["updates"][: used[user]["upload"] + more]} if "updates" in setup else setup
        for user, setup in inputs.setups.items()
    }
    counts = {party: taken["close" if party == SERVER else "share"] + more for party, taken in used.items()}
    rands = {
        party: {name: values[: counts[party]] for name, values in rand.items()} for party, rand in inputs.rands.items()
    }
    return SessionInputs(inputs.protocol, inputs.numbers, inputs.session, inputs.round, setups, rands)
