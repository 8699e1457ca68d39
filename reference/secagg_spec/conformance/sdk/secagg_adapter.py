"""Write an adapter in about 20 lines of Python. This single file needs only the standard library; copy it anywhere.

    from secagg_adapter import Adapter, Reject, pack, unpack

    adapter = Adapter("my-library", "1.2.3")

    @adapter.operation("field.add")
    def add(q, a, b):
        return {"value": pack([(x + y) % int(q) for x, y in zip(unpack(a), unpack(b))])}

    if __name__ == "__main__":
        adapter.run()

A handler receives the members of ``params`` by name and, if its operation takes randomness, ``rand`` as one argument,
which an adapter that draws itself (the grade ``none``) may leave out.
Their form has already been checked: types, hex digits, decimal digits. The implementation must refuse the rest.
The handler returns the members of ``result`` or raises `Reject`; any other exception becomes an ``error``.
If it repairs what the implementation gives, it returns `repaired` of both, and its operation is declared with ``raw``.
Text that the implementation prints goes to standard error.

Source: spec/adapter.md.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import struct
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, BinaryIO, Final, NoReturn

PROTOCOL: Final = (1, 1)
MAX_LINE: Final = 67_108_864
_DECIMAL: Final = re.compile("-?(0|[1-9][0-9]*)")
_DIGITS: Final = 40
_DIGITS_OF_WIDE: Final = 160
_NOT_HEX: Final = re.compile("[^0-9a-f]")

OPERATIONS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {}
"""Each operation of the adapter protocol: the members of ``params``, and the names of its sampled values.

For ``session.new`` and ``session.again``, the sampled values depend on the party: see `PARTIES`.
"""

RESULTS: Final[dict[str, dict[str, str]]] = {}
"""For each operation, the members of its result, and their types."""

RANGED: Final[dict[str, tuple[str, ...]]] = {}
"""For each operation, the parameters that may have a range."""

NUMBERS: Final[dict[str, tuple[str, ...]]] = {}
"""For each protocol with sessions, its parameters: the members of ``numbers``."""

PARTIES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {}
"""The parties that ``session.new`` can open: the members of ``setup``, and the names of the sampled values."""

DRAWING: Final = {"pair.agree", "pair.seal", "secagg.sum", "secagg.view", "secagg.coalition"}
"""The operations that draw if they get no sampled values; these draw in every call."""

DECIMALS: Final = ("q", "R", "level", "round", "c_l", "c_g", "start", "tau")
"""The numbers that are decimal strings; other members without a type are integers."""

WIDE: Final = ("field.", "mds.", "prg.", "quantizer.")
"""What the names of the operations begin with whose moduli may be declared above 2**32, up to 2**521."""

_FORMS: Final[dict[str, dict[str, str]]] = {}


def declare(line: str) -> None:
    """Add an operation: its name, params, rand and result, as a line of the table below has them."""
    name, params, rand, result = _parts(line)
    OPERATIONS[name], _FORMS[name] = (tuple(params), tuple(rand)), {**params, **rand}
    RESULTS[name] = result
    RANGED[name] = tuple(part[1:].partition(":")[0] for part in line.split() if part.startswith("*"))
    if rand:
        DRAWING.add(name)


def declare_party(line: str) -> None:
    """Add a party, and the operation that plays its scripts: its name, numbers, setup and rand, as a line has them."""
    party, numbers, setup, rand = _parts(line)
    NUMBERS[party.partition(".")[0]], PARTIES[party] = tuple(numbers), (tuple(setup), tuple(rand))
    _, numbered, given, drawn = (part.strip() for part in line.split("|"))
    declare(
        f"{party.replace('-', '_')} | {numbered} session:bytes round {given} steps:[step] | {drawn} | steps:[entry]"
    )


def _parts(line: str) -> tuple[str, dict[str, str], dict[str, str], dict[str, str]]:
    """Return the name in a line of a table, and the members of its three parts with their types."""
    name, *parts = line.split("|")
    first, second, third = ([member.strip("*").partition(":") for member in part.split()] for part in parts)
    return name.strip(), _typed(first), _typed(second), _typed(third)


def _typed(members: list[tuple[str, str, str]]) -> dict[str, str]:
    return {name: type or ("decimal" if name in DECIMALS else "integer") for name, _, type in members}


# The tables of spec/adapter.md; secagg-spec text --regenerate writes these lines.
_OPERATIONS: Final = """
echo | data:json | | data:json
field.add | *q a:vector b:vector | | value:vector
field.subtract | *q a:vector b:vector | | value:vector
field.multiply | *q a:vector b:vector | | value:vector
field.inverse | *q a:vector | | value:vector
field.matmul | *q rows inner columns a:vector b:vector | | value:vector
sample.field | *q n bytes:bytes | | value:vector
mds.encode | *q *N *U *T mask:vector | noise:vector | shares:[vector]
mds.decode | *q *N *U *T d users:[integer] shares:[vector] | | mask:vector
quantizer.quantize | *q *level *weight *x:binary64 | rounding:binary64 | value:vector
quantizer.dequantize | *q *level *format:text value:vector | | x:formatted
lightsecagg.mask | *q update:vector mask:vector | | masked:vector
lightsecagg.aggregate_shares | *q *N *T surviving:[integer] held:[(integer,vector)] | | share:vector
lightsecagg.recover | *q *N *D *U *T d surviving:[integer] masked:[vector] users:[integer] shares:[vector] | | aggregate:vector
lightsecagg.round | *q *N *D *U *T d updates:[vector] drop:{share:[integer],upload:[integer],recover:[integer]} | masks:[vector] noises:[vector] | aggregate:vector contributors:[integer]
prg.expand | *q *key:bytes *n | | value:vector
key.agree | private:bytes public:bytes | | secret:bytes
key.derive | protocol:text parameters:[(text,decimal)] secret:bytes session:bytes round sender receiver sender_key:bytes receiver_key:bytes | | key:bytes binding:bytes
seal.close | *q *N *D *U *T d session:bytes round sender private:bytes roster:[bytes] type plaintexts:[(integer,bytes)] | | payloads:[bytes]
seal.open | *q *N *D *U *T d session:bytes round sender receiver private:bytes roster:[bytes] type payload:bytes | | plaintext:bytes
pair.agree | | | first:bytes second:bytes public:[bytes]
pair.seal | plaintext:bytes sender receiver alter:alteration | | opened:bytes payload:bytes
message.encode | type session:bytes round sender:party receiver:party fields:object | | bytes:bytes
message.decode | type bytes:bytes | | session:bytes round sender:party receiver:party fields:object
signature.sign | protocol:text parameters:[(text,decimal)] session:bytes round purpose:text type signer content:[bytes] private:bytes | | signature:bytes signed:bytes
signature.verify | protocol:text parameters:[(text,decimal)] session:bytes round purpose:text type signer content:[bytes] public:bytes signature:bytes | |
shamir.share | *t *n *secret:bytes | coefficients:bytes | shares:[bytes]
shamir.reconstruct | *t users:[integer] shares:[bytes] | | secret:bytes
session.new | handle:text protocol:text role:text numbers:object session:bytes round setup:object | |
session.step | handle:text phase:text inbox:[bytes] | | outbox:[bytes] aggregate:vector
session.again | handle:text round setup:object | |
session.free | handle:text | |
basecagg.rounds | *q *N *D *U *T d K c_l c_g tau_max kind:text numerator denominator start round updates:[vector] schedule:[event] | masks:[vector] noises:[vector] roundings:[binary64] | buffers:[buffer]
secagg.average | *R *N *t *k *clip *level *max_weight weights:[integer] x:[binary64] drop:{advertise_keys:[integer],share_keys:[integer],masked_input:[integer],unmasking:[integer]} | rounding:[binary64] | average:binary64 contributors:[integer]
secagg.unmasking | *N *t *k drop:{advertise_keys:[integer],share_keys:[integer],masked_input:[integer]} user requests:[{survivors:[integer],dropped:[integer]}] | | answers:[released]
secagg.recovery | *R *N *t *k *clip *level *max_weight weights:[integer] x:[binary64] drop:{advertise_keys:[integer],share_keys:[integer],masked_input:[integer],unmasking:[integer]} user owner kind:text | rounding:[binary64] | average:binary64 contributors:[integer]
secagg.sum | *R *N *t updates:[bytes] drop:{setup:[integer],input:[integer],answer:[integer]} | | sum:bytes contributors:[integer]
secagg.view | *R *N *t updates:[bytes] drop:{setup:[integer],input:[integer],answer:[integer]} viewer:party | | vectors:[bytes] strings:[bytes]
secagg.coalition | *R *N *t updates:[bytes] drop:{setup:[integer],input:[integer],answer:[integer]} *T viewers:[party] | | vectors:[bytes] strings:[bytes]
staleness.weight | kind:text numerator denominator start *level tau | rounding:binary64 | weight:decimal
basecagg.encode | *q K c_l c_g x:binary64 | rounding:binary64 | value:vector
basecagg.mask | *q K c_g update:vector mask:vector | | masked:vector
basecagg.combine | *q *N *T K c_g tau_max kind:text numerator denominator start round users:[integer] stamps:words weights:words held:[(integer,decimal,vector)] | | share:vector
basecagg.recover | *q *N *U *T d c_l weights:vector masked:[vector] users:[integer] shares:[vector] | | sum:vector average:binary64
basa.mask | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text session:bytes round position accepted:[integer] before:[bytes] seeds:bytes weight update:vector | | masked:vector
basa.seal | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text session:bytes round sender from to purpose:text public:bytes seed:bytes | box_key:bytes | box:bytes
basa.open | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text session:bytes round sender from to purpose:text private:bytes box:bytes | | seed:bytes
basa.recover | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text session:bytes round accepted:[integer] weights:vector masked:[vector] own:[bytes] skipped:[(integer,integer,bytes)] | | sum:vector average:binary64
basa.epochs | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text session:bytes round updates:[vector] schedule:[visit] | roundings:binary64 | epochs:[epoch]
quantize.levels | *levels:decimal range:binary64 clip:flag x:binary64 | rounding:binary64 | value:vector
segment.plan | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text | | members:[[integer]] lengths:[integer] matrix:[[integer]] levels:[[integer]] moduli:[[decimal]]
heterosag.average | range:binary64 levels:[integer] counts:[integer] sums:[vector] method:text trim | | segment:binary64
heterosag.request | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text requests:[[integer]] | | answers:[answered]
heterosag.mask | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text session:bytes round user self_seed:bytes keys:[bytes] secrets:[(integer,bytes)] update:vector | | segments:bytes
heterosag.unmask | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text session:bytes round keys:[bytes] survivors:[integer] segments:[bytes] self_seeds:[bytes] secrets:[(integer,integer,bytes)] | | sums:[vector]
heterosag.round | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text clip:flag x:[binary64] method:text trim drop:{advertise_keys:[integer],share_keys:[integer],masked_input:[integer],unmasking:[integer]} | rounding:[binary64] | sums:[vector] aggregate:binary64 contributors:[integer]
select.family | *N *K *T | | size:decimal sets:[[integer]]?
select.batch | *N *K *T *strategy:text frequencies:[integer] available:[integer] | draws:[integer] | chosen:[integer]?
select.session | *N *K *T session:bytes round chosen:[integer] | | session:bytes
select.complete | *N *K *T c arrived:[integer] | | survivors:[integer]
select.request | *N *K *T c user chosen:[integer] survivors:[integer] | |
audit.privacy | N rounds:[[integer]] | | recoverable:[recoverable] strong weak:(integer,integer) gap:(decimal,decimal) cardinality:(decimal,decimal)
"""  # noqa: E501
_PARTIES: Final = """
lightsecagg.user | *q *N *D *U *T d | user channel:channel update:vector | mask:vector noise:vector
lightsecagg.server | *q *N *D *U *T d | |
lightsecagg-active.user | *q *N *D *U *T d W | user private:bytes signing:bytes roster:[bytes] verification:[bytes] update:vector | mask:vector noise:vector
lightsecagg-active.server | *q *N *D *U *T d W | roster:[bytes] verification:[bytes] |
secagg.user | R N D T t k d | user order:[integer] update:vector | sealing_key:bytes masking_key:bytes self_seed:bytes key_coefficients:bytes seed_coefficients:bytes
secagg.server | R N D T t k d | order:[integer] |
secagg-active.user | R N D T t k d | user signing:bytes verification:[bytes] update:vector | sealing_key:bytes masking_key:bytes self_seed:bytes key_coefficients:bytes seed_coefficients:bytes
secagg-active.server | R N D T t k d | verification:[bytes] |
basecagg.user | q N D U T d K c_l c_g tau_max kind:text numerator denominator start | user channel:channel updates:[vector] | masks:[vector] noises:[vector]
basecagg.server | q N D U T d K c_l c_g tau_max kind:text numerator denominator start | | roundings:[binary64]
basecagg-active.user | q N D U T d K c_l c_g tau_max kind:text numerator denominator start W | user private:bytes signing:bytes roster:[bytes] verification:[bytes] updates:[vector] | masks:[vector] noises:[vector]
basecagg-active.server | q N D U T d K c_l c_g tau_max kind:text numerator denominator start W | roster:[bytes] verification:[bytes] | roundings:[binary64]
basa.user | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text | user signing:bytes authority:bytes verification:[bytes] updates:[vector] stamps:words | seeds:[bytes] box_keys:[bytes] roundings:binary64
basa.server | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text | authority:bytes verification:[bytes] |
basa.authority | R N T d K S c_l c_g tau_max kind:text numerator denominator start timeouts:text | signing:bytes verification:[bytes] | pair_keys:[bytes] self_keys:[bytes]
heterosag.user | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text | user past:[[integer]] update:vector | sealing_key:bytes masking_key:bytes self_seed:bytes key_coefficients:bytes seed_coefficients:bytes
heterosag.server | N D T t d sizes:[integer] subgroups:[integer] levels:[integer] range:binary64 matrix:text | past:[[integer]] |
"""  # noqa: E501
# End of the tables.

for _line in _OPERATIONS.strip().splitlines():
    declare(_line)
for _line in _PARTIES.strip().splitlines():
    declare_party(_line)


REMEMBERED: Final = ("user", "past")
"""The members of ``setup`` that a party keeps, so that a later round does not pass them again."""

WITHOUT_ROUNDS: Final = ("basecagg", "basecagg-active", "basa")
"""The protocols whose parties do not continue from round to round."""


def form(operation: str, member: str) -> str:
    """Return the type of a member of an operation or of a party; an unknown member may be any JSON value."""
    return _FORMS.get(operation.replace("-", "_"), {}).get(member, "seed" if member == "seed" else "json")


class Reject(Exception):
    """The implementation refuses on purpose. `code` is one of the reject codes of the adapter protocol.

    `blamed` are the parties that the refusal of a step blames: users by number, ``"server"``, ``"authority"``.
    """

    def __init__(self, code: str, message: str = "", blamed: Sequence[int | str] = ()) -> None:
        super().__init__(message or code)
        self.code = code
        self.blamed = list(blamed)

    def answer(self) -> dict[str, Any]:
        """Return the member ``reject`` of an answer."""
        return {"code": self.code, "message": str(self), **({"blamed": self.blamed} if self.blamed else {})}


class Unsupported(Exception):
    """These parameters are outside the adapter's declaration."""


class _Repaired(str):
    """The text of a value that an adapter repaired; `raw` is what the implementation gave."""

    __slots__ = ("raw",)
    raw: Any


def repaired(answer: str, raw: Sequence[int] | bytes) -> str:
    """Return a vector or bytes as hex digits, for a result, together with what the implementation gave for it.

    `answer` is the value after the adapter reduced it, cut it or filled it up; `raw` are the numbers, or the bytes,
    before. They may be of any size and number, and may not need a repair.
    """
    if not isinstance(answer, str):
        raise TypeError(f"answer = {_short(answer)}: must be the hex digits of a vector or of bytes")
    if not hasattr(raw, "__len__"):
        raise TypeError(f"raw = {_short(raw)}: must be a list of integers, or bytes")
    text = _Repaired(answer)
    text.raw = raw.hex() if isinstance(raw, (bytes, bytearray)) else [str(_whole(number)) for number in raw]
    return text


def _whole(number: Any) -> int:
    try:
        whole = int(number)
        fits = whole == number
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise TypeError(f"{_short(number)} is no integer: the raw values of a vector are, and those of bytes are bytes")
    return whole


def _raw(name: str, value: Any) -> Any:
    """Return what the implementation gave for a member of a result."""
    if isinstance(value, list):
        return [_raw(name, entry) for entry in value]
    if not isinstance(value, _Repaired):
        raise TypeError(f"{name} is declared as raw: return repaired(...) of its answer and of what was repaired")
    return value.raw


class Adapter:
    """The operations of one implementation, and the loop that answers requests.

    Parameters
    ----------
    name, version, language : str
        The implementation under test.
    randomness : {"explicit", "seeded", "none"}
        The randomness grade of the operations that take randomness.
    policy, reject_map : dict, optional
        As in the adapter protocol, section 2.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        language: str = "python",
        randomness: str = "explicit",
        policy: dict[str, str] | None = None,
        reject_map: dict[str, str] | None = None,
    ) -> None:
        self.hello: dict[str, Any] = {
            "protocol": list(PROTOCOL),
            "implementation": {"name": name, "version": version, "language": language},
            "randomness": randomness,
            "operations": {},
            "policy": policy or {},
            "reject_map": reject_map or {},
        }
        self._handlers: dict[str, Callable[..., dict[str, Any]]] = {}
        self._parties: dict[str, str] = {}

    def operation(self, name: str, **declaration: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare an operation; `declaration` may hold ``ranges``, ``parameter_sets``, ``randomness``, ``composed``.

        It may hold ``raw``: the members of the result that the handler makes by `repaired`. The declaration of
        ``session.new`` has ``parties``, a list of names from `PARTIES`. It replaces an earlier one of the same name.
        """
        if name not in OPERATIONS:
            raise ValueError(f"{name!r} is not an operation of the adapter protocol: {', '.join(OPERATIONS)}")

        def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
            self.hello["operations"][name] = declaration
            self._handlers[name] = handler
            return handler

        return declare

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the answer to one request, given as the JSON value of its line, or ``None`` if it is not JSON."""
        if not is_request(request):
            return {"id": None, "reject": {"code": "malformed", "message": "a request is an object with an integer id"}}
        try:
            return {"id": request["id"], "result": self._result(request)}
        except Reject as reject:
            return {"id": request["id"], "reject": reject.answer()}
        except Unsupported:
            return {"id": request["id"], "unsupported": True}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as SystemExit, of a library that calls exit
            return {"id": request["id"], "error": {"message": _said(error), "trace": traceback.format_exc()}}

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        check_members(request)
        listed = self.hello["operations"].get(request["op"], {}).get("raw", [])
        if "raw" in request and (request["raw"] is not True or not listed):
            raise Reject("malformed", "raw is true, where the operation declares raw values")
        if request["op"] == "hello":
            return self.hello
        if request["op"] not in self._handlers:
            raise Unsupported
        given = self._handlers[request["op"]](**self._arguments(request["op"], request))
        if not isinstance(given, Mapping):
            said = f"the handler of {request['op']} returns the members of a result by name"
            raise TypeError(f"{said}, not {given!r:.40}")
        result = dict(given)
        if "raw" in request:
            result["raw"] = {name: _raw(name, result.get(name)) for name in listed}
        self._note_sessions(request["op"], request["params"])
        return result

    def _note_sessions(self, operation: str, params: dict[str, Any]) -> None:
        """Record the party of each open session, to check the form of what ``session.again`` passes to it."""
        if operation == "session.new":
            self._parties[params["handle"]] = f"{params['protocol']}.{params['role']}"
        elif operation == "session.free":
            self._parties.pop(params["handle"], None)

    def _arguments(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        params, rand = request["params"], request.get("rand", {})
        names, drawn = OPERATIONS[operation]
        if set(params) != set(names):
            raise Reject("malformed", f"params of {operation} are {', '.join(names)}")
        wide = is_wide(self.hello["operations"][operation])
        width = wide_bytes(operation, params) if wide else 4
        for name, value in params.items():
            digits = _DIGITS_OF_WIDE if name == "R" or (wide and name in ("q", "level")) else _DIGITS
            check_form(name, value, sized(form(operation, name), width), digits)
        declared, owner = self.hello["operations"][operation], operation
        if operation == "session.new":
            drawn = check_party(params, declared.get("parties", ()))
            owner = f"{params['protocol']}.{params['role']}"
        elif operation == "session.again":
            declared, party = self.hello["operations"].get("session.new", {}), self._parties.get(params["handle"])
            drawn, owner = check_again(params, party), str(party)
        grade = declared.get("randomness", self.hello["randomness"])
        expected = {"explicit": set(drawn), "seeded": {"seed"} if drawn else set(), "none": set()}[grade]
        if set(rand) != expected:
            raise Reject("malformed", f"rand of {operation} has the names {sorted(expected)}")
        for name, value in rand.items():
            check_form(name, value, sized(form(owner, name), width))
        opening = operation in ("session.new", "session.again")
        wanted = (opening or drawn) and (rand or _takes_rand(self._handlers[operation]))
        return {**params, "rand": rand} if wanted else dict(params)

    def run(self, stdin: BinaryIO | None = None) -> None:
        """Answer requests until the end of input. Only answers go to the process's standard output."""
        source = stdin or sys.stdin.buffer
        with os.fdopen(os.dup(1), "wb", buffering=0) as out:
            os.dup2(2, 1)
            for line in source:
                out.write(_written(self.answer(_parse(line))).encode() + b"\n")


def _said(error: BaseException) -> str:
    """Return the class of an exception and its text, unless that cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _written(answer: dict[str, Any]) -> str:
    """Return an answer as JSON; one that is none, such as a result with a set or a number of NumPy, is an ``error``."""
    try:
        return json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the answer cannot be written as JSON: {error}"
        return json.dumps({"id": answer["id"], "error": {"message": message}})


def _takes_rand(handler: Callable[..., Any]) -> bool:
    """Return whether a handler has a parameter for sampled values; one of an adapter that draws itself needs none."""
    kinds = {name: one.kind for name, one in inspect.signature(handler).parameters.items()}
    return "rand" in kinds or inspect.Parameter.VAR_KEYWORD in kinds.values()


def _parse(line: bytes) -> Any:
    """Return the JSON value of a line, or ``None`` if it is not JSON."""
    try:
        return json.loads(line.decode(), parse_constant=_no_constant, parse_float=_real)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _real(number: str) -> float:
    """Return a number with a fraction or an exponent; one beyond binary64 would be answered as no JSON."""
    value = float(number)
    return value if math.isfinite(value) else _no_constant(number[:20])


def is_request(value: Any) -> bool:
    """Return whether a JSON value is a request: an object with an integer ``id``."""
    return isinstance(value, dict) and _is_integer(value.get("id"))


def check_members(request: dict[str, Any]) -> None:
    """Refuse a request with unknown or missing members, besides ``id``, or with members of the wrong type."""
    unknown = sorted(set(request) - {"id", "op", "params", "rand", "raw"})
    if unknown:
        raise Reject("malformed", f"a request has no member {unknown[0]!r}")
    if not isinstance(request.get("op"), str):
        raise Reject("malformed", "op is a string")
    if not isinstance(request.get("params"), dict) or not isinstance(request.get("rand", {}), dict):
        raise Reject("malformed", "params is an object, and so is rand where it is given")


def check_party(params: dict[str, Any], declared: Sequence[str]) -> tuple[str, ...]:
    """Check the form of a ``session.new``, and return the names of the sampled values of the party that it opens."""
    party = f"{params['protocol']}.{params['role']}"
    if party not in PARTIES:
        raise Reject("bad_param", f"protocol and role are {party!r}; parties are {', '.join(PARTIES)}")
    if party not in declared:
        raise Unsupported
    setup, drawn = PARTIES[party]
    _check_part("numbers", params["numbers"], party, NUMBERS[params["protocol"]])
    _check_part("setup", params["setup"], party, setup)
    return drawn


def check_again(params: dict[str, Any], party: str | None) -> tuple[str, ...]:
    """Return the names of the sampled values of a party that ``session.again`` takes to a later round.

    `party` is the name of the party whose session has the handle, or ``None`` if no session has it.
    """
    if party is None:
        raise Reject("bad_param", f"no session {params['handle']!r} is open")
    if party.partition(".")[0] in WITHOUT_ROUNDS:
        raise Unsupported
    setup, drawn = PARTIES[party]
    _check_part("setup", params["setup"], party, [name for name in setup if name not in REMEMBERED])
    return drawn


def _check_part(part: str, given: dict[str, Any], party: str, names: Sequence[str]) -> None:
    if set(given) != set(names):
        raise Reject("malformed", f"{part} of {party} are {', '.join(names)}")
    for name, value in given.items():
        check_form(f"{part}.{name}", value, form(party, name))


def check_form(name: str, value: Any, form: str, digits: int = _DIGITS) -> None:
    """Refuse, as ``malformed``, a member that does not have the form of the protocol."""
    if form == "decimal":
        _check_decimal(name, value, digits)
    elif not has_form(value, form):
        raise Reject("malformed", f"{name} does not have its form, {said(form)}")


def check_users(name: str, users: Sequence[int], N: int) -> None:
    """Refuse a list that names a user twice, or a user outside ``[0, N)``."""
    unknown = [user for user in users if not 0 <= user < N]
    if unknown:
        raise Reject("unknown_peer", f"{name} names user {unknown[0]}; users are in [0, {N})")
    if len(set(users)) != len(users):
        raise Reject("duplicate_id", f"{name} names a user twice")


def check_drop(drop: dict[str, list[int]], N: int) -> None:
    """Refuse dropouts that name a user twice, in one phase or in two, or a user outside ``[0, N)``."""
    check_users("drop", [user for users in drop.values() for user in users], N)


def _check_decimal(name: str, value: Any, digits: int) -> None:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise Reject("malformed", f"{name} is a decimal string")
    if len(value) > digits:
        raise Reject("bad_param", f"{name} has {len(value)} digits, and at most {digits} are read")


def has_form(value: Any, form: str, digits: int | None = _DIGITS) -> bool:
    """Return whether a value has a type of the protocol (section 3); a decimal string has at most so many digits."""
    if form.endswith("?"):
        return value is None or has_form(value, form[:-1], digits)
    if form[0] == "[":
        return _is_list(value, lambda entry: has_form(entry, form[1:-1], digits))
    if form[0] == "(":
        types = [type for _, type in members(form)]
        return (
            isinstance(value, list)
            and len(value) == len(types)
            and all(has_form(entry, type, digits) for entry, type in zip(value, types, strict=True))
        )
    if form[0] == "{":
        types_of = dict(members(form))
        return (
            isinstance(value, dict)
            and set(value) == set(types_of)
            and all(has_form(value[name], type, digits) for name, type in types_of.items())
        )
    if form == "decimal" or form.startswith("elements"):
        return _is_decimal(value, digits) if form == "decimal" else _is_hex(value, int(form[8:]))
    return _TYPES[form](value)


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _is_hex(value: Any, width: int) -> bool:
    return isinstance(value, str) and not len(value) % (2 * width) and not _NOT_HEX.search(value)


def _is_list(value: Any, is_entry: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_entry, value))


def _is_decimal(value: Any, digits: int | None = _DIGITS) -> bool:
    fits = isinstance(value, str) and (digits is None or len(value) <= digits)
    return fits and _DECIMAL.fullmatch(value) is not None


def _is_alteration(value: Any) -> bool:
    known = ({"byte", "mask"}, {"sender"}, {"receiver"})
    return isinstance(value, dict) and set(value) in known and all(map(_is_integer, value.values()))


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event"), str):
        return False
    if value["event"] == "recover":
        return set(value) == {"event", "users"} and has_form(value["users"], "[integer]")
    return value["event"] in EVENTS and set(value) == {"event", "user"} and _is_integer(value["user"])


def _is_visit(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event"), str) or value["event"] not in EPOCH_EVENTS:
        return False
    if set(value) != {"event", *EPOCH_EVENTS[value["event"]]} or type(value.get("keyed", True)) is not bool:
        return False
    return value["event"] == "close" or (_is_integer(value["user"]) and _is_decimal(value["stamp"]))


EVENTS: Final = ("start", "upload", "abandon", "recover")
EPOCH_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "upload": ("user", "stamp"),
    "expire": ("user", "stamp", "keyed"),
    "late": ("user", "stamp"),
    "close": (),
}
_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("json", "step", "channel"), lambda value: True),
    "integer": _is_integer,
    "flag": lambda value: type(value) is bool,
    "text": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "bytes": lambda value: _is_hex(value, 1),
    "seed": lambda value: _is_hex(value, 32) and len(value) == 64,
    "vector": lambda value: _is_hex(value, 4),
    "words": lambda value: _is_hex(value, 4),
    "binary32": lambda value: _is_hex(value, 4),
    "binary64": lambda value: _is_hex(value, 8),
    "party": lambda value: value in ("server", "authority") or _is_integer(value),
    "alteration": lambda value: value is None or _is_alteration(value),
    "event": _is_event,
    "visit": _is_visit,
}
"""The simple types; the implementation checks what a step and a channel are."""

_OF_RESULTS: Final = ("formatted", "entry", "released", "answered", "buffer", "epoch", "recoverable")
TYPES: Final = frozenset({*_TYPES, "decimal", *_OF_RESULTS})
"""All simple types; some are those of results alone."""

_WORDS: Final = {
    "integer": "a JSON integer",
    "flag": "true or false",
    "text": "a string",
    "object": "an object",
    "decimal": "a decimal string",
    "bytes": "lowercase hex digits",
    "seed": "64 lowercase hex digits",
    "vector": "lowercase hex digits, 8 for each element",
    "words": "lowercase hex digits, 8 for each number",
    "binary32": "lowercase hex digits, 8 for each number",
    "binary64": "lowercase hex digits, 16 for each number",
    "party": "a JSON integer, or the string 'server' or 'authority'",
    "alteration": "null, or an object with byte and mask, with sender, or with receiver",
    "event": "an object with event and user, or with event and users when the event is recover",
    "visit": "an object with event, and with what the table of this event has",
}


def members(form: str) -> list[tuple[str, str]]:
    """Return the types of the entries of a tuple, or those of the members of an object with their names."""
    found, depth = [""], 0
    for character in form[1:-1]:
        depth += (character in "[({") - (character in "])}")
        found[-1] += character
        if character == "," and not depth:
            found[-1] = found[-1][:-1]
            found.append("")
    return [(part.partition(":")[0], part.partition(":")[2]) if form[0] == "{" else ("", part) for part in found]


def said(form: str) -> str:
    """Return a type in words."""
    if form.endswith("?"):
        return f"{said(form[:-1])}; or null"
    if form[0] == "[":
        return f"a list, each entry of it {said(form[1:-1])}"
    if form[0] == "(":
        return "[" + "; ".join(said(type) for _, type in members(form)) + "]"
    if form[0] == "{":
        return "an object with " + " and ".join(f"{name} ({said(type)})" for name, type in members(form))
    if form.startswith("elements"):
        return f"lowercase hex digits, {2 * int(form[8:])} for each element"
    return _WORDS.get(form, form)


ROUND_PHASES: Final = tuple(name for name, _ in members(form("secagg.average", "drop")))
"""The phases of a round of SecAgg, in their order."""

SUM_PHASES: Final = tuple(name for name, _ in members(form("secagg.sum", "drop")))
"""The parts of a round of ``secagg.sum``, in their order."""


def element_bytes(R: int) -> int:
    """Return in how many bytes an element modulo R is written: in 4, or above ``2**32`` in as few as hold R - 1."""
    return max(4, ((R - 1).bit_length() + 7) // 8)


def is_wide(declared: Mapping[str, Any]) -> bool:
    """Return whether the declaration of an operation holds a modulus above 2**32."""
    allowed = declared.get("ranges", {}).get("q", {})
    return max(map(int, allowed.get("values", [allowed.get("max", 0)]))) > 2**32


def wide_bytes(operation: str, params: dict[str, Any]) -> int:
    """Return how many bytes each element of the vectors of a request has: 4, or more for a modulus above 2**32."""
    q = str(params.get("q"))
    wide = operation.startswith(WIDE) and _is_decimal(q, _DIGITS_OF_WIDE) and int(q) > 2**32
    return element_bytes(int(q)) if wide else 4


def sized(form: str, width: int) -> str:
    """Return a type whose vectors have elements of `width` bytes."""
    return form if width == 4 else form.replace("vector", f"elements{width}")


def unpack(text: str, width: int = 4) -> list[int]:
    """Return the unsigned integers of `width` bytes in a string of hex digits."""
    data = _unhex(text, _width(width))
    if width == 4:
        return list(struct.unpack(f"<{len(data) // 4}I", data))
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def pack(values: Sequence[int], width: int = 4) -> str:
    """Return a vector of elements, each of `width` bytes, as hex digits; an error names one that does not fit."""
    allowed = f"an integer in [0, 2**{8 * _width(width)})"
    if width == 4:
        return _packed(values, lambda some: struct.pack(f"<{len(some)}I", *some), allowed)
    return _packed(values, lambda some: b"".join(index(value).to_bytes(width, "little") for value in some), allowed)


def unpack_reals(text: str) -> list[float]:
    """Return the binary64 numbers in a string of hex digits."""
    data = _unhex(text, 8)
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def pack_reals(values: Sequence[float], format: str = "binary64") -> str:
    """Return numbers as hex digits, each in 8 bytes (``binary64``) or 4 (``binary32``)."""
    if format not in ("binary64", "binary32"):
        raise ValueError(f"format = {format!r}: must be binary64 or binary32")
    letter = "d" if format == "binary64" else "f"
    return _packed(values, lambda some: struct.pack(f"<{len(some)}{letter}", *some), f"a number that {format} can hold")


def _width(width: Any) -> int:
    if type(width) is not int or width < 1:
        raise ValueError(f"width = {_short(width)}: must be an integer, at least 1")
    return width


def _packed(values: Any, write: Callable[[Sequence[Any]], bytes], allowed: str) -> str:
    """Return what `write` makes of all values, as hex digits; the error names the value that it cannot write."""
    if not hasattr(values, "__len__"):
        raise TypeError(f"values = {_short(values)}: must be a list, each entry of it {allowed}")
    try:
        return write(values).hex()
    except _UNWRITTEN:
        for at, value in enumerate(values):
            try:
                write([value])
            except _UNWRITTEN:
                raise ValueError(f"values[{at}] = {_short(value)}: must be {allowed}") from None
        raise


_UNWRITTEN: Final = (TypeError, ValueError, OverflowError, struct.error)


def _short(value: Any) -> str:
    """Return the begin of a value's text, or its class where it has none, as an integer of thousands of digits."""
    try:
        return f"{value!r:.40}"
    except Exception:
        return type(value).__name__


def _unhex(text: Any, width: int) -> bytes:
    if not _is_hex(text, width):
        raise Reject("malformed", f"a vector is a string of lowercase hex digits, {2 * width} for each entry")
    return bytes.fromhex(text)
