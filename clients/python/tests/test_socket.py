"""The clients of docs/local.md, over the Unix socket of an edge."""

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest

from latchkey import AsyncLatchkey, Latchkey

ANSWER = b'{"meta":{"requestId":"req_1"},"data":{"valid":true,"code":"VALID"}}'


class Edge(BaseHTTPRequestHandler):
    """Answers each verification."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        is_asked = self.path == "/v2/keys.verifyKey" and self.headers["authorization"] == "Bearer root_1"
        self.send_response(200 if is_asked else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a peer on a Unix socket has no address."""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "edge.sock")
    with socketserver.UnixStreamServer(path, Edge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


def test_client_over_unix_socket(path: str) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=path)) as http_client:
        client = Latchkey("http://edge", "root_1", http_client=http_client)
        assert client.keys.verify_key(key="key_1").data.valid


def test_async_client_over_unix_socket(path: str) -> None:
    async def verify() -> bool:
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path)) as http_client:
            client = AsyncLatchkey("http://edge", "root_1", http_client=http_client)
            return (await client.keys.verify_key(key="key_1")).data.valid

    assert asyncio.run(verify())
