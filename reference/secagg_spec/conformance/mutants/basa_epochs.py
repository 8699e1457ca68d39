"""Planted bugs of whole sessions of BASA: timeouts, late uploads, refusals, and when an epoch ends with a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.conformance import positions as scenes
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basa_cores import SETTLE, VOID, Parameters
from secagg_spec.protocols.basa_runs import Run

Function = Callable[..., Any]
_ADAPTER = "secagg_spec.conformance.targets.reference_basa"
_RUN = "secagg_spec.protocols.basa_runs:Run"
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_TINY = {"R": 97, "N": 6, "T": 1, "d": 2, "K": 3, "c_l": 1, "c_g": 5, "tau_max": 1}
_FULL = [{"event": "upload", "user": user, "stamp": "6"} for user in range(3)]
_CLOSE = {"event": "close"}


def _answer(*events: Any, timeouts: str = SETTLE, updates: int = 5) -> object:
    """Return the answer to a schedule in epoch 7, with updates that are all ones."""
    p = Parameters(**_TINY, S=int(timeouts == SETTLE), staleness=Staleness.polynomial(1), timeouts=timeouts)
    params = {
        **scenes.members(p),
        "R": str(p.R),
        "session": "07" * 16,
        "round": "7",
        "updates": [pack(np.ones(2, dtype=np.uint64))] * updates,
        "schedule": list(events),
    }
    request = {"id": 1, "op": "basa.epochs", "params": params, "rand": {"roundings": pack_reals(np.full(5, 0.25))}}
    answer = reference.build().answer(request)
    return answer.get("result", answer.get("reject", {}).get("code"))


_TIMEOUT = {"event": "expire", "user": 5, "stamp": "7", "keyed": True}


@mutant(
    "basa-position-given-again",
    "BAA-16",
    "privacy: the position of a user that timed out with its key is given to the next one, as the paper has it",
    f"{_RUN}.expire",
    lambda: _answer(_TIMEOUT, *_FULL, _CLOSE),
    also=("BAA-17",),
    kind="privacy",
    source="paper: BASA-TO",
)
def _given_again(right: Function) -> Function:
    return lambda self, user, stamp, keyed: right(self, user, stamp, keyed=False)


@mutant(
    "basa-every-timeout-skips",
    "BAA-16",
    "lost positions: one whose user timed out without its key is skipped as well",
    f"{_RUN}.expire",
    lambda: _answer({**_TIMEOUT, "keyed": False}, *_FULL, _CLOSE),
    kind="refusal",
    source="other rule: every timeout skips",
)
def _always_skipped(right: Function) -> Function:
    return lambda self, user, stamp, keyed: right(self, user, stamp, keyed=True)


@mutant(
    "basa-late-upload-taken",
    "BAA-40",
    "privacy: an upload that comes when its offer has expired is put into the buffer",
    f"{_RUN}.late",
    lambda: _answer({"event": "late", "user": 4, "stamp": "7"}, *_FULL, _CLOSE),
    also=("BAA-16", "BAA-17"),
    kind="privacy",
    source="paper: basa, late uploads",
)
def _late_taken(right: Function) -> Function:
    return lambda self, user, update, stamp, rounding: self.upload(user, update, stamp, rounding)


@mutant(
    "basa-weights-always-down",
    "BAA-23",
    "bias: weights are always rounded down, without their draws",
    f"{_RUN}.upload",
    lambda: _answer(*_FULL, _CLOSE),
    also=("BAA-41",),
    kind="sum",
    source="weak draw: always rounded down",
)
def _down(right: Function) -> Function:
    return lambda self, user, update, stamp, rounding: right(self, user, update, stamp, 1 - 2.0**-53)


@mutant(
    "basa-refused-events-skipped",
    "BAA-45",
    "disagreement: an event that a party refuses is passed over, so that an epoch that can't be closed goes on",
    f"{_ADAPTER}:_play",
    lambda: _answer(*_FULL[:2], _CLOSE),
    also=("BAA-10", "BAA-19", "BAA-28", "BAA-36", "BAA-38", "BAA-49"),
    kind="acceptance",
    source="silent repair",
)
def _passed_over(right: Function) -> Function:
    def wrong(run: Run, left: Iterator[Any], event: str, **given: Any) -> None:
        try:
            right(run, left, event, **given)
        except ProtocolError:
            return

    return wrong


@mutant(
    "basa-closes-when-full",
    "BAA-45",
    "disagreement: an epoch with K updates is closed though nobody closes it",
    f"{_RUN}.upload",
    lambda: _answer(*_FULL),
    kind="sum",
    source="other rule: closed when it is full",
)
def _closes(right: Function) -> Function:
    def wrong(self: Run, *given: Any) -> None:
        right(self, *given)
        if len(self.server.entries) == self.parameters.K:
            self.close()

    return wrong


@mutant(
    "basa-sums-of-open-epochs",
    "BAA-45",
    "disagreement: an epoch that has no sum gets one of zeros",
    f"{_ADAPTER}:_outcome",
    lambda: _answer(*_FULL),
    kind="sum",
    source="other rule: zeros shown for no sum",
)
def _zeros(right: Function) -> Function:
    def wrong(outcome: Any) -> dict[str, Any]:
        shown: dict[str, Any] = right(outcome)
        return {**shown, "sum": "" if shown["sum"] is None else shown["sum"]}

    return wrong


@mutant(
    "basa-void-goes-on",
    "BAA-17",
    "disagreement: in the profile void, an epoch in which a user timed out with its key is left as if it had not come",
    f"{_RUN}.expire",
    lambda: _answer(_TIMEOUT, *_FULL, _CLOSE, timeouts=VOID),
    kind="privacy",
    source="paper: BASA-TO",
)
def _goes_on(right: Function) -> Function:
    def wrong(self: Run, user: int, stamp: int, keyed: bool) -> None:
        right(self, user, stamp, keyed=keyed and self.parameters.settle)

    return wrong


@mutant(
    "basa-missing-updates-made-up",
    "RND-04",
    "wrong sums: where updates or draws run out, zeros are taken",
    f"{_ADAPTER}:_play",
    lambda: _answer(*_FULL, _CLOSE, updates=2),
    kind="acceptance",
    source="silent repair",
)
def _made_up(right: Function) -> Function:
    def wrong(run: Run, left: Iterator[Any], event: str, **given: Any) -> None:
        zeros = run.parameters.ring.zeros(run.parameters.d)
        right(run, chain(left, repeat((zeros, 0.0))), event, **given)

    return wrong


@mutant(
    "basa-events-not-checked",
    "ADP-36",
    "failure: the form of events is not checked, and one that is not of the table breaks the adapter",
    f"{_SDK}:_is_epoch_event",
    lambda: _answer({"event": "start", "user": 0}),
    kind="form",
    source="clause left out",
)
def _any_event(right: Function) -> Function:
    return lambda value: isinstance(value, dict)
