"""The entries of scripts, in vectors and as demands on answers (spec/adapter.md, "Scripts").

The entries of requests, which have no messages, are judged in the same way.

The entry of a step that is taken equals the answer's. The entry of a refused step has the fitting codes, and the
parties to blame if a clause names them: ``{"reject": ["bad_share"], "blamed": [0, 1, 2, 3]}``.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.adapter.wire import Answer
from secagg_spec.conformance.checks.base import Caller, CheckFailed
from secagg_spec.conformance.checks.scripts import at_step, right_step, same_parties
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES
from secagg_spec.conformance.sessions import broken

SCRIPTS = tuple(party.replace("-", "_") for party in PARTIES)
"""The operations whose result has the entries of steps."""
MEMBERS: Mapping[str, str] = {**dict.fromkeys(SCRIPTS, "steps"), "heterosag.request": "answers"}
"""The operations whose result has entries, and the member that holds them."""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Refusal:
    """How a step is refused: the fitting codes, and the parties to blame if a clause names them."""

    codes: Collection[str]
    blamed: tuple[int | str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry of the step."""
        blamed = {} if self.blamed is None else {"blamed": list(self.blamed)}
        return {"reject": sorted(self.codes), **blamed}


def demanded(entries: Sequence[Entry], refused: Mapping[int, Refusal]) -> list[dict[str, Any]]:
    """Return the demands on an answer's entries. The entries must refuse exactly the steps of `refused`."""
    assert {at for at, entry in enumerate(entries) if "reject" in entry} == set(refused), entries
    for at, refusal in refused.items():
        reject = entries[at]["reject"]
        assert reject["code"] in refusal.codes, reject
        assert refusal.blamed is None or same_parties(reject["blamed"], refusal.blamed), reject
    return [refused[at].as_json() if at in refused else dict(entry) for at, entry in enumerate(entries)]


def compare(call: Caller, operation: str, got: object, want: Sequence[Entry]) -> None:
    """Fail when the entries of an answer are not those of a vector. An outbox may be in any order.

    Raises
    ------
    CheckFailed
        With the verdict of the first entry that differs.
    """
    entries = isinstance(got, list) and all(isinstance(entry, dict) for entry in got)
    if not isinstance(got, list) or not entries or len(got) != len(want):
        verdict = "wrong_value" if entries else "protocol"
        raise CheckFailed(verdict, f"{operation}: {MEMBERS[operation]} must be a list of {len(want)} objects")
    faults = [at for at, entry in enumerate(want) if "reject" in entry]
    for at, (mine, right) in enumerate(zip(got, want, strict=True)):
        judge = _refused if "reject" in right else _taken
        with at_step(at):
            if faults and at < faults[0] and operation in SCRIPTS:
                with right_step(operation):
                    _taken(call, f"{operation}: {MEMBERS[operation]}[{at}]", mine, right)
            judge(call, f"{operation}: {MEMBERS[operation]}[{at}]", mine, _widened(call, operation, at, right))


def _widened(call: Caller, operation: str, at: int, right: Entry) -> Entry:
    """Return an entry with the additional codes of readers that open a message by its own header."""
    if "reject" not in right or operation not in SCRIPTS:
        return right
    params = call.transcript[-1].request.params
    inbox = [bytes.fromhex(text) for text in params["steps"][at]["inbox"]]
    return {**right, "reject": sorted({*right["reject"], *broken.expected(operation, params).codes(inbox)})}


def _taken(call: Caller, what: str, mine: Entry, right: Entry) -> None:
    if "reject" in mine:
        raise CheckFailed("rejected_valid", f"{what} was refused, and it is right", dict(right))
    outbox, wanted = mine.get("outbox"), right.get("outbox")
    if wanted is not None and (not isinstance(outbox, list) or sorted(map(str, outbox)) != sorted(wanted)):
        raise CheckFailed("wrong_value", f"{what} does not send the messages that the text demands", dict(right))
    if mine.get("aggregate") != right.get("aggregate"):
        raise CheckFailed("wrong_value", f"{what}: aggregate is not the one that the text demands", dict(right))


def _refused(call: Caller, what: str, mine: Entry, right: Entry) -> None:
    if "reject" not in mine:
        raise CheckFailed("accepted_invalid", f"{what} was taken, and it must be refused", dict(right))
    body = mine["reject"]
    code = body.get("code") if isinstance(body, dict) else None
    if not isinstance(code, str):
        raise CheckFailed("protocol", f"{what}: a refused step has a reject with a code", dict(right))
    reject = Answer("reject", code=code, message=str(body.get("message", "")))
    call.fits(what, reject, frozenset(right["reject"]), "the step must be refused with")
    if "blamed" in right and not same_parties(body.get("blamed"), right["blamed"]):
        message = f"{what}: blamed is {str(body.get('blamed'))[:80]}, must be {right['blamed']} in any order"
        raise CheckFailed("wrong_value", message, dict(right))
