"""The command ``secagg-spec init``: a first adapter in some language, ready to run and to edit."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secagg_spec import __version__
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.errors import UsageError
from secagg_spec.system import write_new

STARTERS = Path(__file__).parents[1] / "conformance" / "starters"
JOB = Path(".github/workflows/secagg.yml")
_ABOUT = "starter.toml"
_FIRST = "lightsecagg.mask"
_EPILOG = """init overwrites nothing: if one of its files exists already, it writes none.

exit codes:
  0  done
  2  wrong usage, a file that exists already, or a folder that cannot be
     written"""


@dataclass(frozen=True)
class Starter:
    """A first adapter in one language (``starter.toml`` in its folder).

    Attributes
    ----------
    language : str
        The language that its `hello` declares.
    toolchain : list of str
        Commands that must be on the path.
    build, adapter : list of str
        The commands that build the adapter, if any, and that start it, run in its folder.
    edit : str
        The file to edit.
    also : list of str
        Files from elsewhere in the kit, relative to the folder of the starter.
    setup, with_
        The step of the CI job that installs the toolchain, and its inputs.
    """

    folder: Path
    language: str
    toolchain: list[str]
    build: list[str]
    adapter: list[str]
    edit: str
    also: list[str]
    setup: str
    given: dict[str, str]

    def files(self) -> dict[Path, bytes]:
        """Return the files to write, by their path in the new folder."""
        own = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != _ABOUT]
        copied = {path.relative_to(self.folder): path for path in own if "__pycache__" not in path.parts}
        copied |= {Path(path.name): path for path in (self.folder / name for name in self.also)}
        copied[Path("expectations.toml")] = STARTERS / "expectations.toml"
        return {place: path.read_bytes() for place, path in copied.items()} | {JOB: self._job().encode()}

    def _job(self) -> str:
        setup = f"      - uses: {self.setup}\n" if self.setup else ""
        if self.given:
            setup += "        with: {" + ", ".join(f'{name}: "{value}"' for name, value in self.given.items()) + "}\n"
        build = f"      - name: build\n        run: {shlex.join(self.build)}\n" if self.build else ""
        pieces = {"SETUP": setup, "BUILD": build, "ADAPTER": shlex.join(self.adapter), "VERSION": __version__}
        text = (STARTERS / JOB.name).read_text(encoding="utf-8")
        for name, piece in pieces.items():
            text = text.replace(f"@{name}@", piece)
        return text


def languages() -> list[str]:
    """Return the languages that have a starter."""
    return sorted(path.parent.name for path in STARTERS.glob(f"*/{_ABOUT}"))


def _about(language: str) -> dict[str, Any]:
    return tomllib.loads((STARTERS / language / _ABOUT).read_text(encoding="utf-8"))


def _others(language: str) -> list[str]:
    return list(_about(language).get("aliases", ()))


def _listed() -> str:
    """Return all languages, each with its other names in brackets."""
    return ", ".join(f"{one} ({', '.join(_others(one))})" if _others(one) else one for one in languages())


def starter(name: str) -> Starter:
    """Return the starter for a language, by its name or another name of it.

    Raises
    ------
    UsageError
        The language has no starter.
    """
    known = {other: language for language in languages() for other in (language, *_others(language))}
    if name not in known:
        raise UsageError(f"--lang {shown(name)}: the languages are {_listed()}")
    about = {"also": [], "setup": "", "with": {}, **_about(known[name])}
    about.pop("aliases", None)
    return Starter(STARTERS / known[name], given=about.pop("with"), **about)


def add_parser(commands: Any) -> None:
    """Add ``init`` to the commands."""
    parser = commands.add_parser(
        "init",
        description="Write a first adapter into a folder: the adapter to edit, its helper in one file,\n"
        f"a file of expectations, and a job for continuous integration, {JOB}.",
        epilog=_EPILOG,
    )
    parser.add_argument("--lang", required=True, metavar="LANG", help=f"one of {_listed()}")
    parser.add_argument(
        "--into", type=Path, default=Path(), metavar="DIR", help="the folder, made if absent (this one)"
    )
    parser.set_defaults(run=main)


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    chosen = starter(given.lang)
    values.writable_folder("--into", given.into)
    files = chosen.files()
    write_all(given.into, files)
    print(f"wrote {', '.join(sorted(str(path) for path in files))} into {shown(str(given.into))}")
    print("\n".join(_next(chosen, given.into)))
    return 0


def write_all(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Write files, by their paths in a folder, or none of them; touch no existing file.

    Raises
    ------
    UsageError
        One of the files exists already or cannot be written; the files written before it are removed.
    """
    _refuse_existing(folder, files)
    with contextlib.ExitStack() as undo:
        for place, content in files.items():
            _write(folder / place, content, undo)
        undo.pop_all()


def _refuse_existing(folder: Path, files: Mapping[Path, bytes]) -> None:
    for place in files:
        if os.path.lexists(folder / place):
            raise UsageError(f"{folder / place} exists already; nothing was written")


def _write(path: Path, content: bytes, undo: contextlib.ExitStack) -> None:
    """Write a new file and its parent folders, and register how to undo it."""
    try:
        for above in [folder for folder in reversed(path.parents) if not folder.exists()]:
            above.mkdir()
            undo.callback(above.rmdir)
        write_new(path, content)
        undo.callback(path.unlink)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}; nothing was written") from None


def _next(chosen: Starter, folder: Path) -> list[str]:
    """Return the lines that say what to do next."""
    adapter = shlex.join(chosen.adapter)
    absent = [name for name in chosen.toolchain if shutil.which(name) is None]
    missing = f"   (not on your path: {', '.join(absent)})" if absent else ""
    place = f"./{folder}" if str(folder).startswith("-") else str(folder)
    return [
        f"1. enter   {f'cd {shlex.quote(place)}' if folder != Path() else 'nothing to do'}",
        f"2. write   {_FIRST} in {chosen.edit}, between the two marks; until then lines 4 and 5 end in `error`",
        f"3. build   {shlex.join(chosen.build) or 'nothing to do'}{missing}",
        f"4. check   secagg-spec check -- {adapter}",
        f"5. judge   secagg-spec conform -k {_FIRST} -- {adapter}",
        f"6. keep    give KIT in {JOB} a wheel of the kit, and let CI judge every change",
    ]
