"""Lets the processes that Flower starts for messages begin as copies of one that has imported everything.

    python -m tests.engine.forks SOCKET

A SuperNode starts the command ``flwr-clientapp`` for each message, and most of a second of it is imports. `install`
puts a command of that name in a folder that stands first in ``PATH``: it asks this process for a copy of itself, which
runs Flower's own command with the same arguments. The copy ends when the command that asked for it does, however that
ends, so killing a node kills what it started.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

COMMAND = "flwr-clientapp"
_ASKING = """\
#!{python} -ISs
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.connect({path!r})
given = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(asked, [b"%8d" % len(given)], [0, 1, 2])
asked.sendall(given)
sys.exit(0 if asked.recv(1) == b"0" else 1)
"""


def install(folder: Path, path: Path) -> None:
    """Write the command that asks the process behind a socket for a copy of itself."""
    folder.mkdir()
    command = folder / COMMAND
    command.write_text(_ASKING.format(python=sys.executable, path=str(path)), encoding="utf-8")
    command.chmod(0o755)


def _received(connection: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    """Return the arguments, the folder, the environment and the open files of the command that asks."""
    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    argv, folder, environment = json.loads(connection.recv(int(length), socket.MSG_WAITALL))
    return argv, folder, environment, files


def _become(connection: socket.socket) -> None:
    """Run Flower's command in place of the one that asks, and end with it."""
    argv, folder, environment, files = _received(connection)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv

    def follow() -> None:  # both ends of the connection are open until one of the two processes ends
        connection.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)

    from flwr.supernode.cli import flwr_clientapp

    code = b"1"
    try:
        threading.Thread(target=follow, daemon=True).start()
        flwr_clientapp()
        code = b"0"
    except SystemExit as end:
        code = b"1" if end.code else b"0"
    finally:
        connection.send(code)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def main(path: str) -> None:
    """Serve for ever."""
    import numpy  # noqa: F401
    from flwr.client import NumPyClient  # noqa: F401
    from flwr.server.workflow import DefaultWorkflow  # noqa: F401
    from flwr.supernode.cli import flwr_clientapp  # noqa: F401

    import secagg_spec.flower  # noqa: F401

    assert threading.active_count() == 1, "a process with threads cannot be copied"
    gc.freeze()  # a copy shares all memory that it does not write to
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a copy
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(64)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _become(connection)
            connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
