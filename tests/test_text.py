"""The text, the reference and the tests say the same: numbers, tables, clauses; and two lints of the source."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg_spec
from secagg_spec import errors, resources
from secagg_spec.conformance.adapter.codes import REJECT_CODES
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.ledger import entries
from secagg_spec.protocols import codec
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import PRESETS, TABLE

TESTS = Path(__file__).parent
LIBRARY = Path(secagg_spec.__file__).parent
SPEC = resources.root("spec")
PAGES = sorted(SPEC.glob("*.md"))
PREFIXES = (
    "MOD",
    "MDS",
    "QNT",
    "MSG",
    "RND",
    "SES",
    "ERR",
    "LSA",
    "BAA",
    "SIG",
    "PRG",
    "KEY",
    "SEA",
    "SHM",
    "MSK",
    "SAG",
    "STL",
    "FBF",
    "BSA",
    "ABE",
    "HSA",
    "MRA",
    "CNF",
    "EXP",
    "PLN",
    "FLW",
    "TRC",
    "CLM",
)
ID = re.compile(rf"\b(?:ADP|{'|'.join(PREFIXES)})-\d\d\b")


def page(name: str) -> str:
    """The text of a page."""
    return (SPEC / name).read_text(encoding="utf-8")


def rows(text: str, *header: str) -> list[list[str]]:
    """The cells of the table whose header starts with the given cells."""
    lines = iter(text.splitlines())
    start = "| " + " | ".join(header) + " |"
    assert any(line.startswith(start) for line in lines), f"there is no table {start}"
    next(lines)
    found: list[list[str]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def code(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


# -------------------------------------------------------------------------------------------- numbers in the prose

OPERATORS: MappingProxyType[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: operator.pow,
    }
)
NUMBER = re.compile(r"`([^`\n]+)`\s+\(= (-?\d+)\)")


def evaluate(expression: str) -> int:
    """The value of an expression of integers and + - * // % **, and of nothing else."""
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError(f"not an expression of integers: {ast.unparse(node)}")


def numbers() -> Iterator[tuple[str, str, int]]:
    """Every expression in the text with its stated value."""
    for path in PAGES:
        for expression, value in NUMBER.findall(path.read_text(encoding="utf-8")):
            yield path.name, expression, int(value)


@pytest.mark.parametrize(("name", "expression", "value"), list(numbers()))
def test_the_numbers_in_the_text_are_right(name: str, expression: str, value: int) -> None:
    assert evaluate(expression) == value, f"{name}: {expression}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_number_in_the_text_is_missed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"\(= [^v]", text)) == len(NUMBER.findall(text))


@given(st.integers(-20, 20), st.integers(1, 20), st.sampled_from(["+", "-", "*", "//", "%"]))
def test_the_evaluator_computes(a: int, b: int, sign: str) -> None:
    assert evaluate(f"({a} {sign} {b}) * 2**3") == eval(f"({a} {sign} {b}) * 2**3")


@pytest.mark.parametrize("bad", ["N", "1.5", "1 / 2", "f(1)", "True", "'a'", "[1]", "1 if 1 else 2", "1 << 2", "x.y"])
def test_the_evaluator_takes_nothing_else(bad: str) -> None:
    with pytest.raises(ValueError, match="not an expression"):
        evaluate(bad)


# ----------------------------------------------------------------------------------------------------------- clauses


def outside_functions(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a module and of its classes; of a function and a class its decorators alone."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from node.decorator_list
            yield from outside_functions(node.body if isinstance(node, ast.ClassDef) else ())
        else:
            yield node


def marked_in(source: str) -> set[str]:
    """The ids in every ``pytest.mark.requirement(...)`` of a source, outside the bodies of its functions."""
    if "mark.requirement(" not in source:
        return set()
    parts = [node for part in outside_functions(ast.parse(source).body) for node in ast.walk(part)]
    calls = [node for node in parts if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    marks = [call for call in calls if ast.unparse(call.func) == "pytest.mark.requirement"]
    return {str(ast.literal_eval(argument)) for mark in marks for argument in mark.args}


@cache
def marked() -> set[str]:
    """The ids that tests are marked with."""
    return {name for path in TESTS.rglob("test_*.py") for name in marked_in(path.read_text(encoding="utf-8"))}


def checked() -> set[str]:
    """The ids that checks of the kit decide."""
    return {clause for check in REGISTRY.values() for clause in check.clauses}


def test_every_clause_is_decided_by_a_test_or_a_check() -> None:
    assert set(resources.clauses()) - marked() - checked() == set()


def test_every_clause_of_the_reference_has_a_test() -> None:
    ours = {name for name in resources.clauses() if name.startswith(PREFIXES)}
    assert ours
    assert ours - marked() == set()


def test_every_mark_and_every_check_names_a_clause() -> None:
    assert (marked() | checked()) - set(resources.clauses()) == set()


def test_marks_are_found_in_a_source() -> None:
    source = (
        '@pytest.mark.requirement("A-01", "B-02")\n@given(x)\ndef test(): ...\nT = pytest.mark.requirement("C-03")(U)'
    )
    assert marked_in(source) == {"A-01", "B-02", "C-03"}


@pytest.mark.parametrize("name", list(resources.clauses()))
def test_a_clause_is_one_sentence_with_a_normative_word(name: str) -> None:
    sentence = resources.clauses()[name]
    assert re.search(r"\b(MUST|SHOULD|MAY)\b", sentence)
    assert sentence.endswith(".")
    assert not re.search(r"[a-z)]\. [A-Z]", sentence)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_capitals_of_bcp_14_stand_in_clauses_alone(path: Path) -> None:
    text = re.sub(r"^- \[[A-Z]+-\d\d\] .*?(?=^- \[|^$|\Z)", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"(?<!\*)\b(?:MUST|SHOULD|MAY)\b(?! NOT\*|\*)", text) == []


def test_every_id_in_the_text_is_a_clause_once() -> None:
    defined = [
        name for path in PAGES for name in re.findall(r"^- \[([A-Z]+-\d+)\]", path.read_text(encoding="utf-8"), re.M)
    ]
    assert sorted(defined) == sorted(resources.clauses())
    cited = {name for path in PAGES for name in ID.findall(path.read_text(encoding="utf-8"))}
    assert cited - set(defined) == set()


def test_ids_in_the_reference_are_clauses() -> None:
    sources = [path.read_text(encoding="utf-8") for path in LIBRARY.rglob("*.py")]
    cited = {name for source in sources for name in ID.findall(source)}
    assert cited - set(resources.clauses()) == set()


# ------------------------------------------------------------------------------------------------------------ tables


@pytest.mark.requirement("ERR-02")
def test_files_that_the_reference_cites_are_there() -> None:
    cited = re.compile(r"\b(?:docs|spec|proofs)/[a-z][\w./-]*\.(?:md|toml|json|py)\b")
    written_when_needed = {"spec/vectors/findings.json"}
    found = {(file, path) for path in LIBRARY.rglob("*.py") for file in cited.findall(path.read_text(encoding="utf-8"))}
    assert found
    assert {
        (file, path.name)
        for file, path in found
        if file not in written_when_needed and not (SPEC.parent / file).is_file() and "NAME" not in file
    } == set()


def test_the_table_of_errors_is_that_of_the_reference() -> None:
    table = rows(page("conventions.md"), "reference", "reject code")
    stated = [(code(reference)[0], code(reject)[0]) for reference, reject, _, _ in table]
    assert stated == [(error.__name__, reject) for error, reject in REJECT_CODES.items()]
    for reference, _, kind, _ in table:
        error = getattr(errors, code(reference)[0])
        assert issubclass(error, {"misuse": errors.ParameterError, "outcome": errors.ProtocolError}[kind])


@pytest.mark.requirement("ERR-02")
def test_every_error_of_the_reference_has_a_code() -> None:
    kinds = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    assert kinds - {errors.ProtocolError, errors.UsageError} == set(REJECT_CODES)
    assert len(set(REJECT_CODES.values())) == len(REJECT_CODES)


FIELD_TYPES: dict[str, codec.FieldCodec] = {
    "u16": codec.Unsigned(2),
    "u32": codec.Unsigned(4),
    "bytes16": codec.FixedBytes(16),
    "opaque": codec.OpaqueBytes(),
    "users": codec.Words(tuple),
    "vector": codec.Words(np.ndarray),
}


def own_fields(kind: type[Message]) -> dict[str, codec.FieldCodec]:
    """The fields of a message after the header."""
    header = codec.field_codecs(Message)
    return {name: field for name, field in codec.field_codecs(kind).items() if name not in header}


@pytest.mark.requirement("MSG-01")
def test_the_header_is_that_of_the_reference() -> None:
    header = page("conventions.md").split("Header: ")[1].split(": `2 +")[0]
    stated = dict(re.findall(r"`(\w+)` \(`(\w+)`", header))
    assert FIELD_TYPES[stated.pop("type")] == codec.Unsigned(2)
    assert [(name, FIELD_TYPES[kind]) for name, kind in stated.items()] == list(codec.field_codecs(Message).items())
    assert [code(row[0]) for row in rows(page("conventions.md"), "field type")] == [
        ["u16", "u32"],
        *([name] for name in list(FIELD_TYPES)[2:]),
    ]


@pytest.mark.requirement("MSG-01")
def test_the_table_of_messages_is_that_of_the_reference() -> None:
    table = rows(page("lightsecagg.md"), "message", "type")
    kinds = [
        kind
        for kind in vars(lightsecagg).values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
    ]
    assert [code(name)[0] for name, _, _ in table] == [kind.__name__ for kind in kinds]
    for (_, number, fields), kind in zip(table, kinds, strict=True):
        assert int(number) == kind.TYPE
        name, field_type, *_ = code(fields)
        assert own_fields(kind) == {name: FIELD_TYPES[field_type]}


@pytest.mark.requirement("LSA-04", "LSA-05")
def test_the_table_of_phases_is_that_of_the_reference() -> None:
    table = rows(page("lightsecagg.md"), "phase", "role")
    stated = [(code(phase)[0], role, code(receives), code(sends)) for phase, role, receives, sends in table]
    assert stated == [
        (step.phase, step.role.value, [kind.__name__ for kind in step.receives], [kind.__name__ for kind in step.sends])
        for step in TABLE
    ]
    assert tuple(dict.fromkeys(step.phase for step in TABLE)) == lightsecagg.PHASES


@pytest.mark.requirement("LSA-01")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    table = rows(page("lightsecagg.md"), "symbol", "meaning", *PRESETS)
    for column, name in enumerate(PRESETS, start=2):
        assert {row[0]: int(row[column]) for row in table} == asdict(PRESETS[name])


@pytest.mark.requirement("RND-01", "RND-04")
def test_the_table_of_sampled_values_is_that_of_the_steps() -> None:
    table = rows(page("lightsecagg.md"), "name", "drawn by")
    assert [(name, "share") for step in TABLE for name in step.randomness] == [
        (code(row[0])[0], code(row[1])[0]) for row in table
    ]


WRONG = re.compile(
    r"^## \d+\. What the papers? leaves? open, or gets? wrong\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)


def corrections() -> Iterator[tuple[str, list[str]]]:
    """The claims of papers that each row of the tables of what the papers leave open, or get wrong, names."""
    book = entries.load()
    ours = {claim.id for claim in book.of(entries.OURS)}
    for path in PAGES:
        for line in "".join(WRONG.findall(path.read_text(encoding="utf-8"))).splitlines():
            named = {name for name in re.findall(r"\b[A-Z]+-[A-Z0-9]+\b", line) if name in book.claims} - ours
            if named:
                yield f"{path.name}: {line.split('|')[1].strip()}", sorted(named)


@pytest.mark.slow
def test_what_the_text_calls_open_or_wrong_is_so_by_the_ledger() -> None:
    rows = dict(corrections())
    errata = {claim.id for claim in entries.load().errata()}
    assert {row.partition(".")[0] for row in rows} == {"basa", "basecagg", "heterosag", "multi-round"}
    assert [row for row, named in rows.items() if errata.isdisjoint(named)] == []


# ------------------------------------------------------------------------------------------------------------- lints

SOURCES = {"random", "secrets", "os.urandom", "numpy.random", "np.random"}
REMAINDERS = {"mod", "fmod", "remainder", "divmod", "imod"}


def draws(source: str) -> list[int]:
    """The lines of a source that draw from anything but an argument."""
    return sorted({node.lineno for node in ast.walk(ast.parse(source)) if _draws(node)})  # type: ignore[attr-defined]


def _draws(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(_is_source(name.name) for name in names)
        case ast.ImportFrom(module=str(module), names=names):
            return _is_source(module) or any(_is_source(f"{module}.{name.name}") for name in names)
        case ast.Attribute():
            return ast.unparse(node) in SOURCES
        case ast.Call(func=ast.Attribute(attr="generate")):
            return True
    return False


def _is_source(name: str) -> bool:
    return any(name == source or name.startswith(source + ".") for source in SOURCES)


def remainders(source: str) -> list[int]:
    """The lines of a source that take a remainder of numbers."""
    return sorted({node.lineno for node in ast.walk(ast.parse(source)) if _divides(node)})  # type: ignore[attr-defined]


def _divides(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Mod()):
            return not (
                isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str))
            )
        case ast.AugAssign(op=ast.Mod()):
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in REMAINDERS
    return False


def modules(*folders: str) -> list[Path]:
    """The modules of some folders of the library."""
    return [path for folder in folders for path in sorted((LIBRARY / folder).rglob("*.py"))]


@pytest.mark.requirement("RND-01")
@pytest.mark.parametrize("path", modules("arithmetic", "protocols", "crypto"), ids=lambda path: path.stem)
def test_only_one_module_draws(path: Path) -> None:
    lines = draws(path.read_text(encoding="utf-8"))
    assert bool(lines) == (path.name == "entropy.py"), f"{path}: lines {lines}"


@pytest.mark.requirement("RND-01")
@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "import secrets as s",
        "import numpy.random",
        "import numpy.random.mtrand",
        "from random import choice",
        "from numpy import random",
        "from numpy.random import default_rng",
        "from os import urandom",
        "import os\nx = os.urandom(3)",
        "f = np.random.default_rng(1).integers",
        "def f():\n    return numpy.random.rand()",
        "key = X25519PrivateKey.generate()",
        "if x:\n    from secrets import token_bytes",
    ],
)
def test_the_lint_finds_planted_draws(planted: str) -> None:
    assert draws(planted)


@pytest.mark.requirement("RND-01")
@pytest.mark.parametrize(
    "clean", ["import os", "from os import path", "x.randomness", "generate(3)", "randomness = 1", "import numpy as np"]
)
def test_the_lint_lets_other_code_pass(clean: str) -> None:
    assert not draws(clean)


@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize("path", modules("protocols", "crypto"), ids=lambda path: path.stem)
def test_remainders_are_taken_in_the_arithmetic_only(path: Path) -> None:
    assert remainders(path.read_text(encoding="utf-8")) == []


@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize(
    "planted", ["x % q", "x %= q", "np.mod(x, q)", "divmod(x, q)", "(a - b) % q", "np.remainder(x, q)", "name % q"]
)
def test_the_lint_finds_planted_remainders(planted: str) -> None:
    assert remainders(planted) == [1]


@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize("clean", ["'%d' % 3", "f'{x} %s' % y", "x // q", "'a % b'", "x.modulus"])
def test_the_lint_lets_strings_pass(clean: str) -> None:
    assert remainders(clean) == []
