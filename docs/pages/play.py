"""The modules with which the page "Play a round" plays: those of the Node implementation, in one file for a browser.

A module is put into the file as it stands; what it needs of Node is in ``docs/assets/play-stand-ins.js``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docs.pages.common import PACKAGE, SiteError

PAGE = "tutorials/play-a-round.md"
DATA = "assets/play-modules.js"
MODULES = PACKAGE / "conformance" / "targets" / "node"
ROOTS = ("lightsecagg", "secagg", "heterosag")
SCRIPTS = ("play-stand-ins.js", "play-modules.js", "play-round.js", "play.js")
"""The scripts of the page, in the order in which it loads them."""
_REQUIRED = re.compile(r"\brequire\('([^']+)'\)")
_LOADER = """\
globalThis.playModules = (({ Buffer, crypto }) => {
  const loaded = { "node:crypto": crypto };
  const require = (path) => {
    const name = path.replace("./", "");
    if (!loaded[name]) {
      const module = { exports: {} };
      written[name](module, require, Buffer);
      loaded[name] = module.exports;
    }
    return loaded[name];
  };
  const written = {
%s
  };
  return require;
})(globalThis.playStandIns);
"""


def write(out: Path) -> None:
    """Write the modules for the scripts of the page."""
    (out / DATA).write_text(bundle(), encoding="utf-8")


def bundle() -> str:
    """Return the modules that the page needs, as one script that defines ``playModules(name)``."""
    texts = {name: (MODULES / f"{name}.js").read_text(encoding="utf-8") for name in needed()}
    return _LOADER % "\n".join(f"{name}(module, require, Buffer) {{\n{text}}}," for name, text in texts.items())


def needed() -> Iterator[str]:
    """Yield the names of all modules that the page needs.

    Raises
    ------
    SiteError
        A module needs a part of Node for which there is no stand-in.
    """
    waiting, found = [*ROOTS], set[str]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        yield name
        for path in _REQUIRED.findall((MODULES / f"{name}.js").read_text(encoding="utf-8")):
            if path.startswith("./"):
                waiting.append(path.removeprefix("./"))
            elif path != "node:crypto":
                raise SiteError(f"{name}.js needs {path}, for which docs/assets/play-stand-ins.js has nothing")
