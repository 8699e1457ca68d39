"""Sessions of BASA as sequences of acts; what each party knows before each of its steps; and one party alone.

Nothing is drawn here, so mutants start quickly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from secagg_spec.conformance.sessions.basa_cast import Cast
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.basecagg_stage import Key, Turn
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.protocols.basa.messages import PositionUpload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER


def budget(numbers: Mapping[str, Any]) -> int:
    """Return the largest magnitude of an element of an update (BAA-25)."""
    return (int(numbers["R"]) - 1) // 2 // (int(numbers["K"]) * int(numbers["c_g"]))


def positions(numbers: Mapping[str, Any]) -> int:
    """Return the number of positions P."""
    return int(numbers["K"]) + int(numbers["S"])


@lru_cache(maxsize=4096)
def verifying(private: bytes) -> bytes:
    """Return a verification key, cached because those of large rosters are needed repeatedly."""
    return verification_key(private)


@dataclass(frozen=True)
class Act:
    """What happens next: the visit of a user, or the end of an epoch.

    The kinds are:

    - ``upload``: the user's upload is accepted;
    - ``free``: the offer expires before the key is given;
    - ``skip``: the offer expires after the key is given;
    - ``late``: the upload arrives after the offer expired;
    - ``denied``: the server takes the upload, but the authority hears that the offer expired;
    - ``open``, ``close`` and ``abandon``: an epoch begins, ends, or is given up.

    For a visit that ends early, `fetched` says whether the user took the offer, and `heard` whether the authority heard
    of it.
    """

    kind: str
    user: int = -1
    stamp: int = 0
    fetched: bool = True
    heard: bool = True


@dataclass(frozen=True)
class Moment:
    """What a party knows before a step, or at the end.

    `phase` depends on the party:

    - the server: ``idle``, ``filling``, ``serving``, ``settling``, ``closing``;
    - the authority: ``closed``, ``filling``, ``assigned``, ``keyed``;
    - a user: ``idle``, ``asked``, ``fetched``.

    `epoch` is the open epoch, the last one, or the epoch of the offer. `position` is the first unused position or the
    one in question, and `user` is its user. `accepted` and `skipped` are users by position. `used` is the number of
    updates that a user uploaded.
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
        """The users whose positions have a final state."""
        return {user for _, user in (*self.accepted, *self.skipped)}


Tamper = Callable[[Message], Message]


def same(message: Message) -> Message:
    """Return a message unchanged."""
    return message


@dataclass(eq=False)
class Director:
    """Run a plan on the reference, and record what each party knows.

    `moments` has an entry for each step of a party, and `now` the latest one. `uploads` are the accepted uploads of the
    open epoch, and `late` the uploads that nobody took. `tamper` changes uploads before the server receives them.
    """

    stage: PositionStage
    tamper: Tamper = same
    now: dict[int, Moment] = field(default_factory=dict)
    moments: dict[int, list[Moment]] = field(default_factory=dict)
    late: list[tuple[int, Message]] = field(default_factory=list)

    def know(self, party: int, **changes: Any) -> None:
        """Change what a party knows."""
        self.now[party] = replace(self.knows(party), **changes)

    def knows(self, party: int) -> Moment:
        """Return what a party knows."""
        start = {SERVER: "idle", AUTHORITY: "closed"}.get(party, "idle")
        return self.now.get(party, Moment(start, self.stage.inputs.round_of(party) - (party == AUTHORITY)))

    def take(self, party: int, phase: str, *inbox: Key) -> list[Key]:
        """Let a party take a step, and record what it knew before."""
        self.moments.setdefault(party, []).append(self.knows(party))
        return self.stage.take(Turn(party, phase, inbox))

    def play(self, acts: Sequence[Act]) -> PositionStage:
        """Run some acts."""
        for act in acts:
            if act.kind in ("open", "close", "abandon"):
                getattr(self, f"_{act.kind}")()
            else:
                self._visit(act)
        return self.stage

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
        offer, assignment = sorted(self.take(SERVER, "offer", asked), key=lambda key: key.receiver == AUTHORITY)
        self.know(SERVER, phase="serving", user=user)
        if act.heard or act.kind != "free":
            self.take(AUTHORITY, "assign", assignment)
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
        [sent] = self.take(SERVER, "expire") if upload is None else self.take(SERVER, "take", upload)
        self.know(SERVER, phase="settling")
        if act.kind == "denied":
            message = self.stage.sent[sent]
            blank = {"accepted": 0, "stamp": 0, "weight": 0, "hashes": b"", "signature": b""}
            self.stage.sent[sent] = replace(message, **blank)  # type: ignore[arg-type]
        [state] = self.take(AUTHORITY, "settle", sent)
        self._note(act, AUTHORITY)
        self.take(SERVER, "settle", state)
        self._note(act, SERVER)

    def _note(self, act: Act, party: int) -> None:
        """Record the outcome of a position."""
        known = self.knows(party)
        if act.kind == "free":
            self.know(party, phase="filling", user=-1)
            return
        name = "accepted" if act.kind == "upload" else "skipped"
        settled = (*getattr(known, name), (known.position, act.user))
        self.know(party, phase="filling", position=known.position + 1, user=-1, **{name: settled})
        if act.kind != "upload" and self.stage.inputs.numbers["timeouts"] == "void":
            self.know(party, phase="idle" if party == SERVER else "closed")

    def _close(self) -> None:
        [wish] = self.take(SERVER, "close")
        self.know(SERVER, phase="closing")
        [release] = self.take(AUTHORITY, "close", wish)
        self.know(AUTHORITY, phase="closed")
        self.take(SERVER, "recover", release)
        self.know(SERVER, phase="idle")

    def _abandon(self) -> None:
        [message] = self.take(SERVER, "abandon")
        self.know(SERVER, phase="idle")
        self.take(AUTHORITY, "abandon", message)
        self.know(AUTHORITY, phase="closed")


@dataclass(frozen=True, eq=False)
class Part(Played):
    """One party of a session, and what it knows before each of its steps and at the end.

    `late` are uploads that arrived after their offer had expired, each with the number of the server's step before
    which they may arrive.
    """

    moments: tuple[Moment, ...] = ()
    sent: tuple[Message, ...] = ()
    late: tuple[tuple[int, PositionUpload], ...] = ()

    @cached_property
    def cast(self) -> Cast:
        """All other parties."""
        return Cast(self.inputs)

    def when(self, holds: Callable[[Moment], bool]) -> list[int]:
        """Return the numbers of the steps before which a property holds; the end counts as the last number."""
        return [at for at, moment in enumerate(self.moments) if holds(moment)]

    def taking(self, phase: str) -> list[int]:
        """Return the numbers of the steps of a phase."""
        return [at for at, event in enumerate(self.events()) if event.step.phase == phase]

    def uploads(self, moment: Moment) -> list[PositionUpload]:
        """Return the accepted uploads of an epoch, by position."""
        return [self.upload(moment.epoch, position, user) for position, user in moment.accepted]

    def upload(self, epoch: int, position: int, user: int) -> PositionUpload:
        """Return the upload of a user at a position."""
        uploads = (message for message in self.sent if isinstance(message, PositionUpload))
        [found] = [one for one in uploads if (one.round, one.position, one.sender) == (epoch, position, user)]
        return found

    def made(self, user: int, moment: Moment, **changes: Any) -> PositionUpload:
        """Return a valid signed upload of any user at the position of a moment, with optional changes to fields."""
        numbers = self.inputs.numbers
        masked = np.zeros(numbers["d"], np.uint64)
        right = self.cast.upload(user, moment.epoch, moment.position, moment.epoch, int(numbers["c_g"]), masked)
        return self.cast.signed(right, **changes) if changes else right

    def signers(self) -> list[int]:
        """Return the users whose signing keys the kit holds."""
        return self.inputs.users


def part_of(director: Director, party: int) -> Part:
    """Return a party of a session."""
    stage = director.stage
    moments = (*director.moments.get(party, ()), director.knows(party))
    late = tuple((at, message) for at, message in director.late if isinstance(message, PositionUpload))
    return Part(stage.inputs, party, stage.network(), moments, tuple(stage.sent.values()), late)
