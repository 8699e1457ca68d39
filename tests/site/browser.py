"""A browser without a window, driven over a pipe, and a server of the site for it: no package is needed for either."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-site-isolation-trials",
    "--disable-features=BackForwardCache,IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
FORGET = "try { localStorage.clear(); } catch (error) { }"
"""A page would remember the colour scheme of the visit before."""
WIDTH = """(async () => {
  const root = document.documentElement;
  for (let frame = 0; frame < 200; frame++) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (const moving of document.getAnimations()) {
      try { moving.finish(); } catch { moving.cancel(); }
    }
    if (frame && root.scrollWidth <= innerWidth) break;
  }
  return root.scrollWidth;
})()"""
"""When a window changes its size, boxes of the theme move to their new place in some frames more."""
WAIT = 300.0
"""So many seconds may a page be silent when something is asked of it."""


_INDEX = "/search/search_index.json"


def program() -> str | None:
    """Return the path of a browser, None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class _Quiet(SimpleHTTPRequestHandler):
    """Logs nothing, and lets the browser keep what all pages load: scripts, styles, the index of the search.

    Each page that is opened builds the search anew, which takes a second; so the index has no entries unless
    `searched`.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, searched: bool, **options: Any) -> None:
        self._searched = searched
        super().__init__(*arguments, **options)

    def translate_path(self, path: str) -> str:
        without = Path(__file__).with_name("search_index.json")
        return os.fspath(without) if path == _INDEX and not self._searched else super().translate_path(path)

    def end_headers(self) -> None:
        kept = not self.path.endswith(("/", ".html"))
        self.send_header("Cache-Control", "max-age=3600" if kept else "no-store")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path, *, searched: bool = False) -> Iterator[str]:
    """Serve a folder on this machine, with its index of the search where that is asked for, and give its address."""
    handler = functools.partial(_Quiet, directory=str(folder), searched=searched)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Program:
    """A browser that runs; what it says is kept for the page that it is about."""

    def __init__(self, path: str, profile: Path) -> None:
        to_browser, from_browser = os.pipe(), os.pipe()
        ends = (f"/dev/fd/{to_browser[0]}", f"/dev/fd/{from_browser[1]}")
        command = ["sh", "-c", f'exec "$@" 3<{ends[0]} 4>{ends[1]}', "sh", path, *OPTIONS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._out, self._in = os.fdopen(to_browser[1], "wb"), os.fdopen(from_browser[0], "rb")
        self._writing = threading.Lock()
        self._said: defaultdict[str, SimpleQueue[dict[str, Any] | None]] = defaultdict(SimpleQueue)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Hand each message to the page that it is about; None says that the browser has ended."""
        rest = b""
        while more := os.read(self._in.fileno(), 1 << 20):
            *messages, rest = (rest + more).split(b"\0")
            for message in map(json.loads, messages):
                self._said[message.get("sessionId", "")].put(message)
        for queue in list(self._said.values()):
            queue.put(None)

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message."""
        with self._writing:
            self._out.write(json.dumps(message).encode() + b"\0")
            self._out.flush()

    def next(self, session: str) -> dict[str, Any]:
        """Return the next message about a page; one that is silent too long has failed."""
        message = self._said[session].get(timeout=WAIT)
        assert message is not None, "the browser has ended"
        return message

    def end(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait(WAIT)
        self._reader.join(WAIT)
        self._in.close()
        with contextlib.suppress(BrokenPipeError):
            self._out.close()


class Browser:
    """One page of a browser; it keeps what the page asked for, and what it complained of.

    Parameters
    ----------
    path : str
        The program.
    profile : Path
        An empty folder for what the program keeps.
    """

    def __init__(self, path: str, profile: Path) -> None:
        self._begin(_Program(path, profile))

    def _begin(self, program: _Program) -> None:
        self._program, self._count, self._session = program, 0, ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank", newWindow=True)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=FORGET)

    def another(self) -> Browser:
        """Return one more page of the same browser; it ends with the first."""
        page = Browser.__new__(Browser)
        page._begin(self._program)
        return page

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.end()

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._count += 1
        message: dict[str, object] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._program.send(message)
        while (answer := self._next()).get("id") != self._count:
            self._note(answer)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        return self._program.next(self._session)

    def _note(self, event: Mapping[str, Any]) -> None:
        """Keep what an event says of requests and of errors."""
        given = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.complaints.append(" ".join(str(one.get("value")) for one in given["args"]))
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")

    def show(self, width: int, height: int, scheme: str) -> None:
        """Set the size of the window and the colour scheme, ``"light"`` or ``"dark"``."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def begin(self) -> None:
        """Begin anew: a window for a desk, light, with scripts, and nothing noted."""
        self.scripts(on=True)
        self.show(1280, 900, "light")
        self.requests.clear()
        self.complaints.clear()

    def scripts(self, on: bool) -> None:
        """Let pages run scripts, or not."""
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def open(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        for url in ("about:blank", address):
            self._loaded = False
            self.call("Page.navigate", url=url)
            while not self._loaded:
                self._note(self._next())

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page; of a promise, what it comes to."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def width(self) -> int:
        """Return how many pixels the page is wide at rest: more than the window has where it never fits."""
        wide: int = self.run(WIDTH)
        return wide

    def press(self, key: str, code: int) -> None:
        """Press a key, such as ``"Tab"``, 9."""
        typed = {"text": chr(code)} if key == "Enter" else {}
        for kind, more in (("keyDown", typed), ("keyUp", {})):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Store a picture of what is seen, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def elsewhere(self) -> list[str]:
        """Return the addresses off this machine that were asked for."""
        hosts = {"127.0.0.1", "", None}
        return [url for url in self.requests if urlsplit(url).hostname not in hosts]
