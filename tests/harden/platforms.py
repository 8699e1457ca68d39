"""Other machines: what Python, numpy, locale, terminal, disk and clock may be like, with the same results."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.harden.killed import CLI, ROOT, copied

REMOVED = {
    *("asynchat", "asyncore", "distutils", "imp", "smtpd"),  # 3.12
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis", "nntplib"),
    *("ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),  # 3.13
}
"""Modules of the standard library that Python 3.12 and 3.13 removed; 3.14 removed none."""
REMOVED_NAMES = {
    *("Bytes", "NameConstant", "Num", "Str", "find_loader", "get_loader", "ImpImporter", "ImpLoader", "findTestCases"),
    *("getTestCaseNames", "makeSuite", "readfp", "resetlocale", "SafeConfigParser", "suspicious", "wrap_socket"),
}
"""Names of its modules that they removed, and that nothing here has for itself."""
NUMPYS = ("1.26.0", "")
"""The oldest numpy that ``pyproject.toml`` allows, and the newest."""
_TESTS = tuple(f"tests/{layer}" for layer in ("arithmetic", "crypto", "protocols", "selection"))
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "python -O": {"PYTHONOPTIMIZE": "1"},
    "hashes of another seed": {"PYTHONHASHSEED": "4242"},
    "locale C, without UTF-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "another zone": {"TZ": "Pacific/Kiritimati"},
    "20 columns": {"COLUMNS": "20"},
    "a terminal that can do nothing": {"TERM": "dumb", "NO_COLOR": "1"},
}


def run(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command of the checkout."""
    given = os.environ | {"PYTHONPATH": str(cwd / "reference")} | environment
    return subprocess.run([*CLI, *words], cwd=cwd, env=given, capture_output=True, check=False)


def verdicts(environment: Mapping[str, str]) -> object:
    """Return what a conformance run of the reference reports, without its times."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ("conform", "--target", "reference", "-k", "lightsecagg", "--fuzz", "10", "--json", str(report))
        done = subprocess.run([*CLI, *words], cwd=ROOT, env=os.environ | environment, capture_output=True, check=False)
        if done.returncode:
            return f"code {done.returncode}: {done.stderr[-200:]!r}"
        return json.loads(report.read_bytes())["targets"]


def settings() -> Iterator[str]:
    """Yield where a run judges otherwise under another setting of the process."""
    usual = verdicts({})
    for name, environment in _SETTINGS.items():
        if (found := verdicts(environment)) != usual:
            yield f"{name}: {str(found)[:200]}"


def numpys() -> Iterator[str]:
    """Yield with which numpy the tests of arithmetic, cryptography and protocols fail."""
    for version in NUMPYS:
        with tempfile.TemporaryDirectory() as folder:
            wanted = f"numpy=={version}" if version else "numpy"
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--target", folder]
            subprocess.run([*pip, "--only-binary=:all:", wanted], check=True)
            path = os.pathsep.join((folder, str(ROOT / "reference")))
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "-p", "no:cacheprovider", *_TESTS],
                cwd=ROOT, env=os.environ | {"PYTHONPATH": path, "HYPOTHESIS_PROFILE": "quick"},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                yield f"{wanted}: {done.stdout.strip().splitlines()[-1]}"


def later_pythons() -> Iterator[str]:
    """Yield which files name what Python 3.12 to 3.14 removed; what 3.11 warns of is an error in every test."""
    for path in (ROOT / "reference").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            yield from (f"{path.name} imports {name}" for name in names if name.partition(".")[0] in REMOVED)
            if isinstance(node, ast.Attribute) and node.attr in REMOVED_NAMES:
                yield f"{path.name}:{node.lineno} uses {node.attr}"


def troubles() -> Iterator[str]:
    """Yield where a full disk, a closed pipe, a folder without permission or a strange path is not met by one line."""
    with tempfile.TemporaryDirectory(prefix="ä b ") as folder:
        tree = copied(Path(folder) / "ö ü")
        for words in (
            ("claims",),
            ("explain", "LSA-09"),
            ("simulate", "secagg"),
            ("plan", "--users", "100", "--dimension", "10"),
        ):
            done = run(*words, cwd=tree)
            if done.returncode:
                yield f"{words[0]} in a folder of another alphabet: code {done.returncode}"
            with open("/dev/full", "wb") as full:
                said = subprocess.run([*CLI, *words], cwd=tree, stdout=full, stderr=subprocess.PIPE, check=False)
            if said.returncode != 2 or len(said.stderr.splitlines()) != 1:
                yield f"{words[0]} on a full disk: code {said.returncode}, {said.stderr[-200:]!r}"
            with subprocess.Popen([*CLI, *words], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stdout
                process.stdout.close()
                assert process.stderr
                left = process.stderr.read()
            if b"Traceback" in left:
                yield f"{words[0]} into a closed pipe: {left[-200:]!r}"
        for refused in (
            ("conform", "--target", "reference", "-k", "field.add", "--json", "/dev/full"),
            ("conform", "--target", "reference", "-k", "field.add", "--json", "/proc/none/report.json"),
            ("selection", "--users", "12", "--per-round", "4", "--privacy", "2", "--json", "/dev/full"),
            ("reproduce", "heterosag-fig5", "--preset", "tiny", "--out", "/proc/none"),
            ("init", "--lang", "python", "--into", "/proc/none"),
        ):
            done = run(*refused, cwd=tree)
            lines = [
                line
                for line in done.stderr.decode().splitlines()
                if "Traceback" in line or line.startswith("secagg-spec")
            ]
            if done.returncode not in (2, 3) or len(lines) != 1:
                yield f"{' '.join(refused)}: code {done.returncode}, {done.stderr[-200:]!r}"
