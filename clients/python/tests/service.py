"""The service under test, and a network that can be disturbed."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from latchkey import Latchkey, Secret

URL = os.environ["LATCHKEY_TEST_URL"]
ROOT_KEY = os.environ["LATCHKEY_TEST_ROOT_KEY"]

Disturbance = Literal["cut", "silent", "away"]


@dataclass(frozen=True)
class Workspace:
    """A workspace of its own, so that nothing is counted together with other tests."""

    root_key: Secret
    api_id: str

    @staticmethod
    def create(name: str) -> Workspace:
        with Latchkey(URL, ROOT_KEY) as administrator:
            root_key = administrator.workspaces.create_workspace(name=name).data.key
        with Latchkey(URL, root_key) as latchkey:
            return Workspace(root_key, latchkey.apis.create_api(name=name).data.api_id)


class Network:
    """A proxy in front of the service.

    `cut`: the first connection is closed after the service has executed a call, before its answer. `silent`: what is
    sent disappears. `away`: connections are closed at once.
    """

    def __init__(self) -> None:
        self.disturbance: Disturbance | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            for each in self._open:
                _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.disturbance == "away":
                client.close()
                continue
            target = urlsplit(URL)
            server = socket.create_connection((target.hostname or "", target.port or 80))
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if is_request and self.disturbance == "silent":
                    continue
                if not is_request and self.disturbance == "cut":
                    self.disturbance = None
                    break
                sink.sendall(data)
        for each in (source, sink):
            _end(each)
            each.close()
        with self._lock:
            self._open -= {source, sink}


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    opened = Network()
    try:
        yield opened
    finally:
        opened.close()
