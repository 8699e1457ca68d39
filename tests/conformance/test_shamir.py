"""Secret sharing in the kit: right implementations with a field or draws of their own, and bugs planted in them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.cases import strategies as cases
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.crypto.entropy import SeededSource
from tests.conformance import narrow
from tests.quick import WHOLE, exhaustive

pytestmark = pytest.mark.usefixtures("unshrunk")

OTHER_PRIME = 2**607 - 1
Values = dict[int, int]


class Sharing:
    """Secret sharing in another field, as an implementation that never saw the text may have it; bugs are subclasses.

    A share is 4 bytes of the point, big-endian, and then the value in 76 bytes.
    """

    points_from = 1
    drawn = 76

    def __init__(self) -> None:
        self.own = (number.to_bytes(8, "little") for number in count())

    def numbers(self, t: int, n: int) -> None:
        """Refuse numbers."""
        if not 2 <= t <= n <= 2**16:
            raise Reject("bad_param", f"t = {t}, n = {n}")

    def degree(self, t: int) -> int:
        """Return the number of coefficients."""
        return t - 1

    def coefficients(self, count: int, rand: dict[str, str]) -> list[int]:
        """Draw coefficients, uniform but for one value in 2**606; without a seed, of the next one of a fixed row."""
        source = SeededSource(bytes.fromhex(rand["seed"]) if rand else next(self.own), "c")
        return [int.from_bytes(source.take(self.drawn), "big") % OTHER_PRIME for _ in range(count)]

    def share(self, t: int, n: int, secret: str, rand: dict[str, str]) -> dict[str, Any]:
        """Answer `shamir.share`."""
        self.numbers(t, n)
        terms = [int(secret or "0", 16), *self.coefficients(self.degree(t), rand)]
        shares = []
        for user in range(n):
            x = user + self.points_from
            value = sum(term * pow(x, k, OTHER_PRIME) for k, term in enumerate(terms)) % OTHER_PRIME
            shares.append((x.to_bytes(4, "big") + value.to_bytes(76, "big")).hex())
        return {"shares": shares}

    def collected(self, users: list[int], shares: list[str]) -> Values:
        """Return the value at each point."""
        if len(users) != len(shares):
            raise Reject("length_mismatch")
        if len(set(users)) < len(users):
            raise Reject("duplicate_id")
        if min(users, default=0) < 0:
            raise Reject("unknown_peer")
        return {int(text[:8], 16): int(text[8:], 16) for text in shares}

    def few(self, t: int, values: Values) -> None:
        """Refuse too few shares."""
        if len(values) < t:
            raise Reject("below_threshold")

    def extra(self, t: int, values: Values) -> None:
        """Refuse shares that do not fit the first t ones."""
        first = dict(list(values.items())[:t])
        if any(interpolated(first, x) != y for x, y in values.items()):
            raise Reject("bad_share")

    def reconstruct(self, t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
        """Answer `shamir.reconstruct`."""
        if t < 2:
            raise Reject("bad_param")
        values = self.collected(users, shares)
        self.few(t, values)
        self.extra(t, values)
        number = interpolated(dict(list(values.items())[:t]), 0)
        return {"secret": (number % 2**256).to_bytes(32, "big").hex()}


def interpolated(values: Values, at: int) -> int:
    """Return the value of the polynomial through some points."""
    total = 0
    for x, y in values.items():
        above = below = 1
        for other in values:
            if other != x:
                above, below = above * (at - other) % OTHER_PRIME, below * (x - other) % OTHER_PRIME
        total += y * above * pow(below, -1, OTHER_PRIME)
    return total % OTHER_PRIME


def adapter(sharing: Sharing, grade: str, **ranges: Any) -> Adapter:
    """Return an adapter with the two operations."""
    made = Adapter("another field", "1", randomness=grade, policy={"shamir.field": "other"})
    made.operation("shamir.share", ranges=ranges)(sharing.share)
    made.operation("shamir.reconstruct", ranges={name: ranges[name] for name in ranges if name == "t"})(
        sharing.reconstruct
    )
    return made


def judged(made: Adapter, pattern: str = "shamir*", cases: int = 12) -> list[Outcome]:
    """Return what the checks say."""
    _, outcomes = run(DirectConnection(made.answer), Settings(cases=cases, seed=3, pattern=pattern))
    return [outcome for outcome in outcomes if outcome.verdict != "unsupported"]


RELATIONS = {
    "shamir/any-shares",
    "shamir/one-fewer",
    "shamir.share/hides",
    "shamir.share/numbers",
    *(f"shamir.reconstruct/{name}" for name in ("numbers", "too-few", "twice", "outside", "extra", "lengths")),
}


@pytest.mark.slow
@pytest.mark.parametrize("grade", ["none", "seeded"])
@pytest.mark.parametrize("ranges", [{}, {"t": {"min": 4, "max": 5}, "n": {"values": [6, 30]}}], ids=["all", "narrow"])
def test_an_implementation_with_another_field_passes_by_relation(grade: str, ranges: dict[str, Any]) -> None:
    outcomes = judged(adapter(Sharing(), grade, **ranges))
    assert [f"{o.check.id}: {o.failure.message}" for o in outcomes if o.failure] == []
    assert {outcome.check.id for outcome in outcomes} >= RELATIONS
    assert not any(outcome.check.id.endswith("/exact") for outcome in outcomes)
    assert {"shamir/any-shares", "shamir/one-fewer", "shamir.share/hides"} <= {
        o.check.id for o in outcomes if o.by_relation
    }


class SecretAtZero(Sharing):
    points_from = 0


class DegreeShort(Sharing):
    def degree(self, t: int) -> int:
        return max(t - 2, 1)


class NoNoise(Sharing):
    def coefficients(self, count: int, rand: dict[str, str]) -> list[int]:
        return [5] * count


class ShortCoefficients(Sharing):
    """Coefficients of 600 bits: the share at 2 is even where the secret is, since nothing is reduced."""

    drawn = 75


class ThresholdOne(Sharing):
    def numbers(self, t: int, n: int) -> None:
        if n < 1:
            raise Reject("bad_param")


class AnyNumber(Sharing):
    def few(self, t: int, values: Values) -> None:
        return None


class NothingExtra(Sharing):
    def extra(self, t: int, values: Values) -> None:
        return None


class Twice(Sharing):
    def collected(self, users: list[int], shares: list[str]) -> Values:
        return super().collected(list(dict.fromkeys(users)), list(dict.fromkeys(shares)))


class Anybody(Sharing):
    def collected(self, users: list[int], shares: list[str]) -> Values:
        return super().collected([user % 2**20 for user in users], shares)


class FirstUsers(Sharing):
    def collected(self, users: list[int], shares: list[str]) -> Values:
        return dict(enumerate(super().collected(users, shares).values(), 1))


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (SecretAtZero, "shamir.share/hides"),
        (NoNoise, "shamir.share/hides"),
        (ShortCoefficients, "privacy/shamir.share/contrast"),
        (DegreeShort, "shamir/one-fewer"),
        (ThresholdOne, "shamir.share/numbers"),
        (AnyNumber, "shamir.reconstruct/too-few"),
        (NothingExtra, "shamir.reconstruct/extra"),
        (Twice, "shamir.reconstruct/twice"),
        (Anybody, "shamir.reconstruct/outside"),
        (FirstUsers, "shamir/any-shares"),
    ],
)
def test_relations_find_bugs_in_another_field(bug: type[Sharing], check: str) -> None:
    connection = DirectConnection(adapter(bug(), "none").answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    outcome = run_check(connection, caps, REGISTRY[check], Settings(cases=40, seed=1))
    assert outcome.verdict in ("wrong_value", "accepted_invalid", "wrong_reason", "leaked"), outcome


@pytest.mark.slow
def test_the_reference_that_draws_by_itself_passes_by_relation() -> None:
    made = reference.build()
    explicit = made._handlers["shamir.share"]

    def share(t: int, n: int, secret: str, rand: dict[str, str]) -> dict[str, Any]:
        sampled = narrow._sampled("shamir.share", ("coefficients",), {"t": t}, bytes.fromhex(rand["seed"]))
        return explicit(t=t, n=n, secret=secret, rand=sampled)

    made.operation("shamir.share", randomness="seeded")(share)
    outcomes = judged(made)
    assert [f"{o.check.id}: {o.failure.message}" for o in outcomes if o.failure] == []
    assert {"shamir.share/hides", "shamir/one-fewer", "shamir.reconstruct/exact"} <= {o.check.id for o in outcomes}


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@settings(
    max_examples=8 if WHOLE else 3,
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.fixed_dictionaries({name: narrow._declaration(name) for name in ("shamir.share", "shamir.reconstruct")}),
    st.integers(0, 2**32),
    st.sampled_from(("explicit", "seeded", "none")),
    st.sampled_from(("mersenne521", "other")),
)
@example(
    {"shamir.share": {"ranges": {"n": {"values": [39, 1]}}}, "shamir.reconstruct": {"ranges": {"t": {"min": 30}}}},
    179540,
    "none",
    "other",
)
@exhaustive
def test_no_declaration_of_the_reference_gives_an_alarm(
    operations: dict[str, Any], seed: int, grade: str, field: str
) -> None:
    hello = {
        **reference.build().hello,
        "operations": operations,
        "randomness": grade,
        "policy": {"shamir.field": field},
    }
    _, outcomes = run(DirectConnection(narrow.adapter(hello)), Settings(cases=4, seed=seed))
    assert [f"{o.check.id}: {o.failure.message}" for o in outcomes if o.failure] == []


def declared(**operations: Any) -> Capabilities:
    """Return what a hello with these declarations means, as the runner takes it."""
    named = {name.replace("_", "."): declaration for name, declaration in operations.items()}
    caps = narrow.understood({**reference.build().hello, "operations": named})
    cases.refuse_impossible(caps)
    return caps


def test_the_numbers_of_a_sharing_are_ranged_and_the_length_of_a_sample_is_not() -> None:
    caps = declared(shamir_share={"ranges": {"t": {"min": 5}, "n": {"values": [3, 9, 50]}}})
    assert cases.holders(cases.Space(caps, ("shamir.share",))) == [9, 50]
    assert cases.holders(cases.Space(caps, ("shamir.share",)), spare=5) == [50]
    assert not caps.declares("shamir.share", {"t": 4, "n": 9})
    assert caps.declares("shamir.share", {"t": 5, "n": 9})
    for operation in ("sample_field", "shamir_reconstruct"):
        with pytest.raises(AdapterUnusable, match="no ranged parameter 'n'"):
            declared(**{operation: {"ranges": {"n": {"min": 2}}}})


@pytest.mark.parametrize("ranges", [{"t": {"max": 1}}, {"t": {"min": 7}, "n": {"max": 6}}, {"n": {"min": 2**16 + 1}}])
def test_ranges_without_a_sharing_are_refused(ranges: dict[str, Any]) -> None:
    with pytest.raises(AdapterUnusable, match="leave no parameters that the text allows"):
        declared(shamir_share={"ranges": ranges})


def test_shares_of_the_text_are_66_bytes_and_below_p() -> None:
    """A share that is one byte longer, or not reduced, is seen also where nothing else is compared."""
    for change in (
        lambda text: text + "00",
        lambda text: (int.from_bytes(bytes.fromhex(text), "little") + shamir.PRIME).to_bytes(66, "little").hex(),
    ):
        made = reference.build()
        right = made._handlers["shamir.share"]
        made.operation("shamir.share")(
            lambda right=right, change=change, **given: {"shares": [change(text) for text in right(**given)["shares"]]}
        )
        outcomes = {outcome.check.id: outcome for outcome in judged(made, "shamir/any-shares", 3)}
        assert outcomes["shamir/any-shares"].verdict == "wrong_value"
