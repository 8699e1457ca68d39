"""What an adapter declares in its `hello`: operations, ranges, grade of randomness, policies (spec/adapter.md, 2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from secagg_spec.arithmetic import quantizer
from secagg_spec.arithmetic.levels import MAX_LEVELS
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.wide import MAX_WIDE
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, Request, holds
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import MAX_LINE, OPERATIONS, PARTIES, PROTOCOL, WIDE
from secagg_spec.selection.strategies import STRATEGIES

Grade = Literal["explicit", "seeded", "none"]
GRADES = ("explicit", "seeded", "none")
POLICIES: Mapping[str, tuple[str, ...]] = {
    "mds.code": ("vandermonde", "other"),
    "quantizer.rounding": ("stochastic", "nearest", "floor"),
    "quantizer.middle": ("positive", "negative"),
    "prg.stream": ("aes-ctr", "other"),
    "shamir.field": ("mersenne521", "other"),
    "pair.sealing": ("chacha20-poly1305", "other"),
    "average.weights": ("exact", "quantised"),
    "unmasking.own_share": ("held", "none"),
}
INTEGER_RANGES = ("N", "D", "U", "K", "T", "weight", "t", "n", "k", "clip", "max_weight")
DECIMAL_RANGES = ("q", "level", "R", "levels")
WIDENED = ("q", "level")
"""What may be declared above 2**32, of the operations whose names begin with `WIDE`."""
SET_MEMBERS = ("N", "D", "U", "K", "T", "t", "k", "n")
FORMATS: tuple[str, ...] = get_args(quantizer.Format)
TEXT_RANGES: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "format": lambda: FORMATS,
    "strategy": lambda: tuple(STRATEGIES),
    "x": lambda: FORMATS,
}
"""Parameters that are text, and what they may be."""
LENGTH_RANGES = ("key", "secret")
"""Parameters of bytes: their range is one of lengths."""
SIZES = (("prg.expand", "key"), ("prg.expand", "n"), ("shamir.share", "secret"))
"""Parameters that are a number of bytes or of elements, and are asked for up to `MOST_SIZE`."""
MOST_SIZE = 2**19
RANGED = (*INTEGER_RANGES, *DECIMAL_RANGES, *TEXT_RANGES, *LENGTH_RANGES)
_SUMS = ("secagg.sum", "secagg.view", "secagg.coalition")
WITHOUT_RAW = ("heterosag.", "session.step", "secagg.view", "secagg.coalition")
"""What the names of the operations begin with whose results are never given raw."""
HELLO = Request("hello", {"protocol": list(PROTOCOL), "max_line": MAX_LINE})


def ranged(operation: str) -> tuple[str, ...]:
    """Return the parameters of an operation that may have a range."""
    return tuple(name for name in RANGED if name in secagg_adapter.RANGED[operation])


def rawable(operation: str) -> dict[str, str]:
    """Return the members of an operation's result that may be given raw (ADP-55), and the type of each."""
    if operation.startswith(WITHOUT_RAW):
        return {}
    types = ("bytes", "[bytes]", *(("vector", "[vector]") if {"q", "R"} & {*OPERATIONS[operation][0]} else ()))
    found = {name: type for name, type in secagg_adapter.RESULTS[operation].items() if type in types}
    return {"sum": "vector"} if operation == "secagg.sum" else found


@dataclass(frozen=True)
class Range:
    """The allowed values of one parameter: bounds, or a list."""

    low: int | None = None
    high: int | None = None
    values: tuple[Any, ...] | None = None
    multiple: int = 1

    def __contains__(self, value: Any) -> bool:
        if self.values is not None:
            return value in self.values
        if self.multiple > 1 and value % self.multiple:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def up_to(self, most: int) -> Range:
        """Return the values of this range up to a number."""
        if self.values is not None:
            return replace(self, values=tuple(value for value in self.values if value <= most))
        return self if self.high is None or self.high <= most else replace(self, high=most)


EVERYTHING = Range()
MOST_VALUES = 1000
"""The largest number of values, or of parameter sets, in a declaration."""
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_DIGITS = 160


@dataclass(frozen=True)
class Capabilities:
    """The content of a valid `hello`."""

    name: str
    version: str
    language: str
    operations: Mapping[str, Mapping[str, Any]]
    randomness: Grade
    policies: Mapping[str, str]
    reject_map: Mapping[str, str]
    hello: Mapping[str, Any] = field(default_factory=dict)
    """The whole result, as the adapter sent it."""
    left_out: tuple[str, ...] = ()
    """What it declares and the text forbids, so that it is not judged."""
    wide: bool = field(default=True, compare=False)
    """Whether moduli and levels above 2**32 count; they do not for a check that cannot judge them."""
    kept: dict[Any, dict[Any, Any]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What the kit derives from the declaration and uses again, each kind under a key of its own."""
    _parsed: dict[tuple[str, str], Range] = field(default_factory=dict, init=False, compare=False, repr=False)

    def offers(self, *operations: str) -> bool:
        """Return whether the adapter declares all these operations."""
        return all(operation in self.operations for operation in operations)

    def grade(self, operation: str) -> Grade:
        """Return the randomness grade of an operation."""
        owner = "session.new" if operation == "session.again" else operation
        grade: Grade = self.operations.get(owner, {}).get("randomness", self.randomness)
        return grade

    def composed(self, operation: str) -> bool:
        """Return whether the adapter composes the operation from several functions of the implementation."""
        return bool(self.operations.get(operation, {}).get("composed", False)) or bool(self.raw(operation))

    def raw(self, operation: str) -> tuple[str, ...]:
        """Return the members of the operation's result that the adapter also gives raw."""
        return tuple(self.operations.get(operation, {}).get("raw", ()))

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties that `session.new` opens; empty if the operation is not declared."""
        return tuple(self.operations.get("session.new", {}).get("parties", ()))

    def policy(self, name: str) -> str:
        """Return the declared choice of a policy, or the default, which is the first choice."""
        return self.policies.get(name, POLICIES[name][0])

    def range(self, operation: str, parameter: str) -> Range:
        """Return the declared range of a parameter; without a declaration, all values are allowed."""
        declared = self.operations[operation].get("ranges", {}).get(parameter)
        if declared is None:
            return EVERYTHING
        key = operation, parameter
        if key not in self._parsed:
            parsed = _parse_range(operation, parameter, declared)
            if parameter in WIDENED:
                parsed = parsed.up_to(self._most(operation))
            elif key in SIZES:
                parsed = replace(parsed, high=MOST_SIZE if parsed.high is None else parsed.high).up_to(MOST_SIZE)
            self._parsed[key] = parsed
        return self._parsed[key]

    def _most(self, operation: str) -> int:
        """Return the largest modulus that an operation may have: streams above 2**32 are those of another generator."""
        own = operation != "prg.expand" or self.policy("prg.stream") == "other"
        return MAX_WIDE if self.wide and own and operation.startswith(WIDE) else MAX_MODULUS

    @property
    def narrow(self) -> Capabilities:
        """The declaration without moduli and levels above 2**32."""
        if "narrow" not in self.kept:
            cut = replace(self, wide=False)
            given = {name: set(body.get("ranges", {})) for name, body in self.operations.items()}
            ranges = [(name, parameter) for name in given for parameter in given[name].intersection(WIDENED)]
            alike = all(cut.range(*one) == self.range(*one) for one in ranges)
            self.kept["narrow"] = {"caps": self if alike else cut}
        narrow: Capabilities = self.kept["narrow"]["caps"]
        return narrow

    def declares(self, operation: str, params: Mapping[str, Any]) -> bool:
        """Return whether the ranged parameters of a request lie within the declaration of its operation."""
        for name in RANGED:
            allowed = self.range(operation, name)
            if name in params and allowed != EVERYTHING and not _inside(name, params[name], allowed):
                return False
        sets = self.parameter_sets(operation)
        return not sets or any(all(params.get(name) == value for name, value in chosen.items()) for chosen in sets)

    def parameter_sets(self, operation: str) -> tuple[Mapping[str, int], ...]:
        """Return the declared combinations of parameters; empty if none are declared."""
        return tuple(self.operations[operation].get("parameter_sets", ()))


def shake_hands(answer: Answer) -> Capabilities:
    """Return the capabilities that the answer to `hello` declares (ADP-07).

    Raises
    ------
    AdapterUnusable
        A member of the answer is missing or invalid; the message names it.
    """
    if answer.kind != "result":
        raise AdapterUnusable(f"hello was answered by {answer.kind}: {answer.message}")
    body = answer.value
    protocol = _member(body, "protocol", list)
    if protocol and type(protocol[0]) is int and protocol[0] != PROTOCOL[0]:
        raise AdapterUnusable(f"the adapter speaks protocol {protocol}; this kit speaks {PROTOCOL[0]}.x")
    if len(protocol) != 2 or any(type(number) is not int or number < 0 for number in protocol):
        raise AdapterUnusable(f"hello: 'protocol' is {protocol}; it must be two integers from 0 on, as {[*PROTOCOL]}")
    _refuse_unknown("hello", body, _REQUIRED | {"policy", "reject_map"})
    about = _member(body, "implementation", dict)
    _refuse_unknown("hello: 'implementation'", about, {"name", "version", "language"})
    operations = _member(body, "operations", dict)
    policies = _optional(body, "policy")
    for name, declaration in operations.items():
        _check_operation(name, declaration, policies)
    for name, choice in policies.items():
        if not isinstance(choice, str) or choice not in POLICIES.get(name, ()):
            raise AdapterUnusable(f"policy {name!r} = {choice!r}: policies are {listed(POLICIES)}")
    operations, left_out = _without_forbidden(operations)
    caps = Capabilities(
        name=_name(about),
        version=str(_member(about, "version", str)),
        language=str(_member(about, "language", str)),
        operations=operations,
        randomness=_grade(body),
        policies=policies,
        reject_map=_reject_map(_optional(body, "reject_map")),
        hello=body,
    )
    return replace(caps, left_out=(*left_out, *_too_large(caps)))


def greet(ask: Any) -> Capabilities:
    """Say hello through `ask` and return what the adapter declares; any failure raises `AdapterUnusable`."""
    try:
        return shake_hands(ask(HELLO))
    except AdapterBroken as broken:
        raise AdapterUnusable(f"no usable answer to hello ({broken.verdict}): {broken}") from None


def _inside(name: str, value: Any, allowed: Range) -> bool:
    """Return whether a member of a request has the right type and lies in a declared range."""
    if name == "x":
        return isinstance(value, str) and any(holds(format, value) for format in allowed.values or ())
    if name in TEXT_RANGES:
        return isinstance(value, str) and value in allowed
    if name in LENGTH_RANGES:
        return isinstance(value, str) and len(value) // 2 in allowed
    number = _decimal(value) if name in DECIMAL_RANGES else value
    return type(number) is int and number in allowed


def _decimal(value: Any) -> int | None:
    """Return a modulus or a level, given as a decimal string or as an integer; otherwise None."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, str) and len(value) < _DIGITS and _DECIMAL.fullmatch(value) else None


_REQUIRED = {"protocol", "implementation", "randomness", "operations"}
_JSON: Mapping[type, str] = {dict: "object", list: "array", str: "string"}
"""What JSON calls Python's types."""


def _member(body: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(body.get(name), kind):
        found = repr(body[name]) if name in body else "missing"
        raise AdapterUnusable(f"hello: {name!r} is {found}; it must be a JSON {_JSON[kind]}")
    return body[name]


def _name(about: Mapping[str, Any]) -> str:
    name = str(_member(about, "name", str))
    if not name.strip():
        raise AdapterUnusable(f"hello: 'name' is {name!r}; it must be the name of the implementation")
    return name


def _refuse_unknown(where: str, body: Mapping[str, Any], known: set[str]) -> None:
    """Refuse a member that the protocol does not have, since it may be meant for one that it has (ADP-07)."""
    if unknown := sorted(set(body) - known):
        raise AdapterUnusable(f"{where} has the unknown member {unknown[0]!r}; it may have {', '.join(sorted(known))}")


def _optional(body: Mapping[str, Any], name: str, of: str = "") -> dict[str, Any]:
    value = body.get(name, {})
    if not isinstance(value, dict):
        raise AdapterUnusable(f"hello: {name!r}{of} is {value!r}; it must be a JSON object")
    return value


def _reject_map(declared: dict[str, Any]) -> dict[str, str]:
    for text, code in declared.items():
        if not text:
            raise AdapterUnusable("hello: reject_map has an empty text, which every message contains")
        if not isinstance(code, str) or code not in ALL_CODES:
            wrong = f"the code {code!r}, which is not one of the protocol's"
            raise AdapterUnusable(f"hello: reject_map gives {text!r} {wrong}")
    return declared


def _grade(body: Mapping[str, Any], of: str = "") -> Grade:
    value = body.get("randomness")
    if value not in GRADES:
        found = f"randomness{of} = {value!r}" if "randomness" in body else "'randomness' is missing"
        raise AdapterUnusable(f"hello: {found}; it must be one of {', '.join(GRADES)}")
    grade: Grade = value
    return grade


def _check_operation(name: str, declaration: Any, policies: Mapping[str, Any]) -> None:
    if name not in OPERATIONS:
        raise AdapterUnusable(f"hello declares {name!r}, which the adapter protocol does not have (ADP-07)")
    if not isinstance(declaration, dict):
        raise AdapterUnusable(f"hello: the declaration of {name!r} is not an object")
    own = {"parties"} if name == "session.new" else set()
    drawn = set() if name == "session.again" else {"randomness"}
    _refuse_unknown(f"hello: {name!r}", declaration, {"ranges", "parameter_sets", "composed", "raw"} | own | drawn)
    if "randomness" in declaration:
        _grade(declaration, f" of {name!r}")
    _check_composed(name, declaration)
    if own:
        _check_parties(name, declaration.get("parties"))
    _check_sets(name, declaration)
    for parameter, declared in _optional(declaration, "ranges", f" of {name!r}").items():
        if parameter == "key" and policies.get("prg.stream") != "other":
            raise AdapterUnusable(f"hello: {name!r} has a range of 'key', and the policy prg.stream is not 'other'")
        if parameter == "secret" and policies.get("shamir.field") != "other":
            lacks = "the policy shamir.field is not 'other'"
            raise AdapterUnusable(f"hello: {name!r} has a range of 'secret', and {lacks}")
        if parameter not in ranged(name):
            raise AdapterUnusable(f"hello: {name!r} has no ranged parameter {parameter!r}")
        _refuse_members(name, parameter, declared)
        _parse_range(name, parameter, declared)


def _check_composed(name: str, declaration: Mapping[str, Any]) -> None:
    """Refuse what an operation says of repairs unless it has the right types, lists members of it, and agrees."""
    if type(declaration.get("composed", False)) is not bool:
        raise AdapterUnusable(f"hello: 'composed' of {name!r} is {declaration['composed']!r}; it must be true or false")
    if "raw" not in declaration:
        return
    raw = declaration["raw"]
    known = isinstance(raw, list) and all(isinstance(one, str) and one in rawable(name) for one in raw)
    if not known or not raw:
        may = f"is a list with some of {', '.join(rawable(name))}" if rawable(name) else "has to be absent here"
        raise AdapterUnusable(f"hello: 'raw' of {name!r} is {raw!r}; it {may}")
    if len(set(raw)) < len(raw):
        raise AdapterUnusable(f"hello: 'raw' of {name!r} is {raw!r}; it names a member twice")
    if not declaration.get("composed", True):
        raise AdapterUnusable(f"hello: 'composed' of {name!r} is false beside 'raw', which says that it is composed")


def _check_parties(name: str, parties: Any) -> None:
    """Refuse parties that are not a list of party names of the protocol."""
    known = isinstance(parties, list) and all(isinstance(party, str) and party in PARTIES for party in parties)
    if not known or not parties:
        raise AdapterUnusable(f"hello: parties of {name!r} is {parties!r}; it lists some of {', '.join(PARTIES)}")
    if len(set(parties)) < len(parties):
        raise AdapterUnusable(f"hello: parties of {name!r} is {parties!r}; it names a party twice")


def _check_sets(name: str, declaration: Mapping[str, Any]) -> None:
    """Refuse parameter sets unless they are a list of objects with the operation's numbers, allowed by the text."""
    if "parameter_sets" not in declaration:
        return
    sets = declaration["parameter_sets"]
    wanted = set(SET_MEMBERS).intersection(ranged(name))
    if not wanted & {"N", "n"}:
        lacks = "a set has N or n, and this operation has neither; other numbers have ranges"
        raise AdapterUnusable(f"hello: {name!r} has no parameter_sets: {lacks}")
    if isinstance(sets, list) and len(sets) > MOST_VALUES:
        raise AdapterUnusable(f"hello: parameter_sets of {name!r} has more than {MOST_VALUES} entries")
    if not isinstance(sets, list) or not sets:
        raise AdapterUnusable(f"hello: parameter_sets of {name!r} must be a list with at least one entry")
    for entry in sets:
        if not isinstance(entry, dict) or set(entry) != wanted or any(type(n) is not int for n in entry.values()):
            must = f"must give {sorted(wanted)} as integers"
            raise AdapterUnusable(f"hello: the parameter set {entry!r} of {name!r} {must}")
    if not any(_allowed_set(name, entry) for entry in sets):
        raise AdapterUnusable(f"hello: the text allows no parameter set of {name!r} ({_clause(name)})")


def _without_forbidden(operations: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return operations without the parameter sets that the text forbids, and what was left out, with its clause."""
    kept, left_out = dict(operations), []
    for name, declared in operations.items():
        sets = declared.get("parameter_sets", ())
        forbidden = [entry for entry in sets if not _allowed_set(name, entry)]
        if forbidden:
            kept[name] = {**declared, "parameter_sets": [entry for entry in sets if entry not in forbidden]}
            left_out += [f"the parameter set {entry} of {name}, which {_clause(name)} forbids" for entry in forbidden]
    return kept, tuple(left_out)


def _too_large(caps: Capabilities) -> Iterator[str]:
    """Yield each modulus, level and number of levels in a declared range that is larger than any the text allows."""
    for name, declared in caps.operations.items():
        ranges = declared.get("ranges", {})
        for parameter in (one for one in DECIMAL_RANGES if one in ranges):
            whole = _parse_range(name, parameter, ranges[parameter])
            most = MAX_LEVELS if parameter == "levels" else MAX_WIDE if name.startswith(_SUMS) else caps._most(name)
            end = f"of {name}: the largest that is allowed is 2**{most.bit_length() - 1}"
            yield from (f"{parameter} = {value} {end}" for value in whole.values or () if value > most)
            if whole.high is not None and whole.high > most:
                yield f"{parameter} up to {whole.high} {end}"


def _clause(name: str) -> str:
    """Return the clauses that say which parameter sets of an operation are allowed."""
    starts = {"secagg.sum": "ADP-42", "secagg.view": "ADP-42", "secagg.coalition": "ADP-42 or ADP-47"}
    starts |= {"secagg.": "SAG-02", "shamir.": "SHM-01", "mds.": "MDS-01", "select.": "MRA-01 or MRA-17"}
    starts |= {"basecagg": "BSA-01", "lightsecagg_active.": "LSA-01 or LSA-19"}
    return next((clause for start, clause in starts.items() if name.startswith(start)), "LSA-01")


def graph_allows(N: int, t: int, k: int) -> bool:
    """Return whether SAG-01 and SAG-02 allow a threshold on a graph: T = t - 2 if it is complete, else T = 1."""
    if k == N - 1:
        return 3 <= t <= N
    return 2 <= k < N - 1 and k * N % 2 == 0 and 2 <= t <= k + 1


def _batches_fit(name: str, N: int, K: int, T: int) -> bool:
    """Return whether MRA-01 allows these numbers, and MRA-17 where there may be colluders."""
    least = 3 if name in ("select.complete", "select.request") else 1
    return least <= T <= K <= N and N % T == K % T == 0


_ALLOWED: Mapping[frozenset[str], Callable[..., bool]] = {
    frozenset(("N", "t", "k")): graph_allows,
    frozenset(("N", "t")): lambda N, t: 1 <= t <= N >= 2,
    frozenset(("N", "t", "T")): lambda N, t, T: 1 <= T < t <= N,
    frozenset(("n", "t")): lambda n, t: 2 <= t <= n,
}
"""Which numbers the text allows, where their names decide it."""


def _allowed_set(name: str, entry: dict[str, int]) -> bool:
    if frozenset(entry) in _ALLOWED:
        return _ALLOWED[frozenset(entry)](**entry)
    if "K" in entry:
        return _batches_fit(name, **entry)
    N, T, U, D = entry.get("N", 2), entry.get("T", 1), entry.get("U"), entry.get("D", 0)
    enough = T + 2 if name.startswith(("seal.", "lightsecagg.", "lightsecagg_active.")) else T + 1
    if name.startswith("basecagg."):
        return T >= 1 and D >= 0 and T + 2 <= N and (U is None or T < U <= N - D)
    agreed = not name.startswith("lightsecagg_active.") or 2 * (N - D) > N + T
    return T >= 1 and D >= 0 and enough <= N - D and (U is None or T < U <= N - D) and agreed


def _refuse_members(operation: str, parameter: str, declared: Any) -> None:
    """Refuse a range that is no object with some of the members that the parameter's range may have."""
    bounds = () if parameter in TEXT_RANGES else ("min", "max")
    multiples = ("multiple",) if (operation, parameter) == ("prg.expand", "n") else ()
    names = (*bounds, *multiples, "values")
    known = " or ".join((", ".join(names[:-1]), names[-1])) if bounds else "values"
    what = f"hello: the range {declared!r} of {parameter!r} of {operation!r}"
    if not isinstance(declared, dict) or not declared:
        raise AdapterUnusable(f"{what} needs {known}")
    if unknown := sorted(set(declared).difference(names)):
        raise AdapterUnusable(f"{what} has {unknown[0]!r}; it may have {known}")


def _parse_range(operation: str, parameter: str, declared: Any) -> Range:
    what = f"{parameter!r} of {operation!r}"
    if "values" in declared and (not isinstance(declared["values"], list) or not declared["values"]):
        must = "must be a list with at least one entry"
        raise AdapterUnusable(f"hello: the values {declared['values']!r} of {what} {must}")
    if "values" in declared and len(declared["values"]) > MOST_VALUES:
        raise AdapterUnusable(f"hello: the range of {what} lists more than {MOST_VALUES} values")
    if "values" in declared and len(declared) > 1:
        other = next(name for name in declared if name != "values")
        raise AdapterUnusable(f"hello: the range {declared!r} of {what} has {other} beside values")
    multiple = declared.get("multiple", 1)
    if type(multiple) is not int or multiple < 1:
        raise AdapterUnusable(f"hello: multiple in the range {declared!r} of {what} must be a number from 1 on")
    said = f"hello: the range {declared!r} of {what}"
    values = tuple(_bound(said, parameter, value) for value in declared["values"]) if "values" in declared else None
    low, high = (_bound(said, parameter, declared[end]) if end in declared else None for end in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise AdapterUnusable(f"hello: the range {declared!r} of {what} is empty")
    return Range(low, high, values, multiple)


def _bound(said: str, parameter: str, value: Any) -> Any:
    """Convert one bound or value of a declared range, which errors name as `said`, to the type that `Range` uses."""
    if parameter in TEXT_RANGES:
        if value not in (allowed := TEXT_RANGES[parameter]()):
            known = ", ".join(allowed)
            raise AdapterUnusable(f"{said} has {value!r}; it may have {known}")
        return value
    number = _decimal(value) if parameter in DECIMAL_RANGES else value
    if type(number) is not int:
        strings = f"decimal strings of fewer than {_DIGITS} digits"
        written = f"integers, as numbers or as {strings}" if parameter in DECIMAL_RANGES else "integers"
        raise AdapterUnusable(f"{said} has {value!r}; it may have {written}")
    if parameter in LENGTH_RANGES and number < 1:
        raise AdapterUnusable(f"{said} has {value}; lengths begin at 1 byte")
    return number


def listed(policies: Mapping[str, tuple[str, ...]]) -> str:
    """Return policies with the choices of each, in one line."""
    return "; ".join(f"{name}: {', '.join(choices)}" for name, choices in policies.items())
