"""The clients on their own: what they print, send, retry and bound."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gzip
import json
import logging
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service import ROOT_KEY as SERVICE_ROOT_KEY
from service import URL

from latchkey import UNSET, AsyncLatchkey, Attempt, AttemptEnd, Latchkey, LatchkeyError, Secret
from latchkey.types import CreateKeyOutput

ROOT_KEY = "lk_root_of_a_test"
KEY = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp"

Answer = Callable[[httpx.Request], httpx.Response]


def success(data: Any, headers: dict[str, str] | None = None, **members: Any) -> Answer:
    return lambda _: httpx.Response(
        200, json={"meta": {"requestId": "req_1"}, "data": data, **members}, headers=headers
    )


def failure(status: int, type_: str, headers: dict[str, str] | None = None) -> Answer:
    error = {"title": "", "detail": "No.", "status": status, "type": f"https://keys.test/errors/{type_}"}
    return lambda _: httpx.Response(status, json={"meta": {"requestId": "req_2"}, "error": error}, headers=headers)


def lost(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("The connection was cut.", request=request)


class Service:
    """Answers in turn; the last answer is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self.sent: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        return (self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])(request)

    def client(self, **options: Any) -> Latchkey:
        http_client = httpx.Client(transport=httpx.MockTransport(self))
        return Latchkey("https://keys.test", ROOT_KEY, http_client=http_client, **options)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.sent]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times between attempts, which do not pass."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def error_of(call: Callable[[], object]) -> LatchkeyError:
    with pytest.raises(LatchkeyError) as caught:
        call()
    return caught.value


class TestSecret:
    secret = Secret(KEY)

    def test_prints_as_redacted(self, caplog: pytest.LogCaptureFixture) -> None:
        created = CreateKeyOutput(key_id="key_1", key=self.secret)
        logging.getLogger().error("%s %r", self.secret, created)
        printed = [str(self.secret), repr(created), f"{self.secret:}", caplog.text, str(dataclasses.asdict(created))]
        for text in printed:
            assert KEY not in text
            assert "[redacted]" in text

    def test_cannot_be_stored(self) -> None:
        assert copy.deepcopy(self.secret) == self.secret
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(self.secret)
        with pytest.raises(TypeError):
            json.dumps(self.secret)

    def test_equals_its_text_only_in_a_secret(self) -> None:
        assert self.secret == Secret(KEY) != Secret("other")
        assert self.secret != KEY
        assert len({self.secret, Secret(KEY)}) == 1

    def test_is_what_answers_have(self) -> None:
        service = Service(success({"keyId": "key_1", "key": KEY}))
        assert service.client().keys.create_key(api_id="api_1").data.key.reveal() == KEY

    def test_is_revealed_to_the_service_and_not_in_metadata(self) -> None:
        service = Service(success({"keyId": "key_1", "key": KEY}))
        service.client().keys.create_key(api_id="a", name=self.secret, meta={"secret": self.secret})  # type: ignore[arg-type]
        assert service.bodies == [{"apiId": "a", "name": KEY, "meta": {"secret": "[redacted]"}}]

    def test_hides_the_root_key(self) -> None:
        latchkey = Service(lost).client(retries=0)
        error = error_of(lambda: latchkey.keys.verify_key(key=KEY))
        for value in (latchkey, vars(latchkey), error, vars(error), latchkey.keys._caller._settings):
            assert ROOT_KEY not in repr(value)
            assert KEY not in repr(value)
        with pytest.raises(ValueError, match="root_key") as caught:
            Latchkey("https://keys.test", f"{ROOT_KEY} x")
        assert ROOT_KEY not in str(caught.value)


class TestOptions:
    def test_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LATCHKEY_URL", "http://environment.test/base/\n")
        monkeypatch.setenv("LATCHKEY_ROOT_KEY", "lk_root_environment\n")
        service = Service(success([], pagination={"hasMore": False}))
        Latchkey(http_client=httpx.Client(transport=httpx.MockTransport(service))).apis.list_apis()
        assert str(service.sent[0].url) == "http://environment.test/base/v2/apis.listApis"
        assert service.sent[0].headers["authorization"] == "Bearer lk_root_environment"

    def test_are_rejected_with_their_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("LATCHKEY_URL", raising=False)
        with pytest.raises(ValueError, match=r"`url`.*LATCHKEY_URL"):
            Latchkey()
        for url in (
            "keys.test",
            "ftp://keys.test",
            "http://a:b@keys.test",
            "http://keys.test?a",
            "http://[",
            "http://",
        ):
            with pytest.raises(ValueError, match="`url`"):
                Latchkey(url)
        wrong: list[dict[str, Any]] = [
            {"timeout": 0},
            {"timeout": float("nan")},
            {"retries": 11},
            {"retry_wait_max": -1},
        ]
        for options in wrong:
            for client in (Latchkey, AsyncLatchkey):
                with pytest.raises(ValueError, match=f"`{min(options)}`"):
                    client("https://keys.test", **options)

    def test_of_a_call_are_checked(self) -> None:
        latchkey = Service(success({})).client()
        for options in ({"timeout": -1}, {"retries": True}, {"idempotency_key": "a b"}, {"idempotencyKey": "a"}):
            with pytest.raises(ValueError, match=f"`{min(options)}`"):
                latchkey.apis.delete_api(api_id="a", options=options)  # type: ignore[arg-type]


class TestInput:
    def test_tells_omitted_from_none(self) -> None:
        service = Service(success({}))
        service.client().keys.update_key(key_id="a", name=None, expires=UNSET, credits={"refill": None})
        assert service.bodies == [{"keyId": "a", "name": None, "credits": {"refill": None}}]

    def test_has_the_names_of_the_service_except_in_metadata(self) -> None:
        service = Service(success({"keyId": "key_1", "key": KEY}))
        service.client().keys.create_key(
            api_id="a",
            meta={"plan_name": {"external_id": 1}},
            credits={"remaining": 1, "refill": {"interval": "monthly", "amount": 1, "refill_day": 2}},
            ratelimits=({"name": "a_b", "limit": 1, "duration": 1_000, "auto_apply": True},),
        )
        assert service.bodies == [
            {
                "apiId": "a",
                "meta": {"plan_name": {"external_id": 1}},
                "credits": {"remaining": 1, "refill": {"interval": "monthly", "amount": 1, "refillDay": 2}},
                "ratelimits": [{"name": "a_b", "limit": 1, "duration": 1_000, "autoApply": True}],
            }
        ]

    def test_can_be_a_list(self) -> None:
        service = Service(success({"passed": True, "limits": []}))
        service.client().ratelimits.multi_limit([{"namespace": "a", "identifier": "b", "limit": 1, "duration": 1_000}])
        assert service.bodies == [[{"namespace": "a", "identifier": "b", "limit": 1, "duration": 1_000}]]

    def test_that_is_no_json_is_an_error(self) -> None:
        for meta in ({"a": object()}, {"a": float("nan")}):
            with pytest.raises((TypeError, ValueError)):
                Service(success({})).client().keys.create_key(api_id="a", meta=meta)


class TestAnswer:
    def test_has_data_request_id_and_limit(self) -> None:
        headers = {"RateLimit-Limit": "100", "RateLimit-Remaining": "99", "RateLimit-Reset": "30"}
        answer = Service(success({"id": "a", "apiId": "a", "name": "n"}, headers)).client().apis.get_api(api_id="a")
        assert (answer.data.api_id, answer.data.prefix, answer.request_id) == ("a", None, "req_1")
        assert answer.rate_limit is not None
        assert (answer.rate_limit.limit, answer.rate_limit.remaining, answer.rate_limit.reset) == (100, 99, 30)

    def test_of_a_newer_service_is_read(self) -> None:
        data = {"valid": False, "code": "NEWER", "unknownMember": {"a": 1}}
        found = Service(success(data)).client().keys.verify_key(key="a").data
        assert (found.valid, str(found.code)) == (False, "NEWER")

    @pytest.mark.parametrize(
        "body", ["<html>", "null", "[]", '"data"', "{}", '{"data":{}}', '{"error":{"type":7}}', "[" * 100_000, "\xff"]
    )
    def test_of_another_service_is_an_error(self, body: str) -> None:
        latchkey = Service(lambda _: httpx.Response(200, content=body.encode("latin-1"))).client()
        error = error_of(latchkey.apis.list_apis)
        assert (error.type, error.status) == ("invalid_answer", 200)

    @pytest.mark.parametrize(
        "data", [{"code": "VALID"}, {"valid": "yes", "code": "VALID"}, {"valid": 1, "code": "VALID"}, [], None]
    )
    def test_of_another_shape_is_an_error(self, data: Any) -> None:
        error = error_of(lambda: Service(success(data)).client().keys.verify_key(key="a"))
        assert error.type == "invalid_answer"
        assert "data" in error.detail

    def test_that_is_compressed_is_not_read(self) -> None:
        content = gzip.compress(json.dumps({"meta": {"requestId": "req_1"}, "data": {}}).encode())
        answer = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(content))
        error = error_of(lambda: Service(lambda _: answer).client().apis.delete_api(api_id="a"))
        assert error.type == "invalid_answer"

    def test_can_be_pickled_if_it_is_an_error(self) -> None:
        error = error_of(lambda: Service(failure(404, "data/key_not_found")).client().keys.get_key(key_id="a"))
        again = pickle.loads(pickle.dumps(error))
        assert (again.type, again.status, str(again)) == (error.type, 404, str(error))

    def test_that_redirects_leads_the_root_key_nowhere(self) -> None:
        service = Service(lambda _: httpx.Response(307, headers={"Location": "https://other.test/"}))
        http_client = httpx.Client(transport=httpx.MockTransport(service), follow_redirects=True)
        error = error_of(Latchkey("https://keys.test", ROOT_KEY, http_client=http_client).apis.list_apis)
        assert (error.type, error.status, len(service.sent)) == ("invalid_answer", 307, 1)
        assert "redirects" in error.detail


class RawServer:
    """Answers each connection with pieces of bytes until the client closes it."""

    def __init__(self, first: bytes, piece: bytes, pause: float) -> None:
        self._pieces = (first, piece, pause)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.closed = threading.Event()
        self.bytes = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        first, piece, pause = self._pieces
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(first)
            try:
                while not self.closed.wait(pause):
                    self.bytes += connection.send(piece)
            except OSError:
                self.closed.set()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def raw_server() -> Iterator[Callable[[bytes, bytes, float], RawServer]]:
    opened: list[RawServer] = []

    def open_server(first: bytes, piece: bytes, pause: float) -> RawServer:
        opened.append(RawServer(first, piece, pause))
        return opened[-1]

    yield open_server
    for each in opened:
        each.close()


def call(client: type[Latchkey] | type[AsyncLatchkey], url: str, **options: Any) -> LatchkeyError:
    async def call_async() -> None:
        async with AsyncLatchkey(url, retries=0, **options) as latchkey:
            await latchkey.apis.list_apis()

    def call_sync() -> None:
        with Latchkey(url, retries=0, **options) as latchkey:
            latchkey.apis.list_apis()

    return error_of(call_sync if client is Latchkey else lambda: asyncio.run(call_async()))


@pytest.mark.parametrize("client", [Latchkey, AsyncLatchkey])
class TestBounds:
    @staticmethod
    def head(length: int) -> bytes:
        return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()

    def test_an_answer_without_an_end_is_not_read_to_its_end(self, client: Any, raw_server: Any) -> None:
        server = raw_server(self.head(10**9), b" " * 2**20, 0)
        error = call(client, server.url, timeout=30)
        assert (error.type, error.detail) == ("invalid_answer", "The answer is longer than 16 MiB.")
        assert server.closed.wait(10)
        assert server.bytes < 64 * 2**20

    def test_an_answer_that_arrives_slowly_is_a_timeout(self, client: Any, raw_server: Any) -> None:
        # It would be complete after 2 s.
        server = raw_server(self.head(100), b" ", 0.02)
        error = call(client, server.url, timeout=0.2)
        assert (error.type, error.status) == ("timeout", None)
        assert "0.2 s" in error.detail
        assert server.closed.wait(10)


@pytest.mark.parametrize("client", [Latchkey, AsyncLatchkey])
@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_connection_that_is_lost_is_no_timeout(client: Any, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                # Otherwise the end resets the connection, and with it the answer.
                while not connection.recv(65_536).endswith(b"}"):
                    pass
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        error = call(client, f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30)
    assert (error.type, error.status) == ("network_error", None)
    assert re.match(r"The service at http://127\.0\.0\.1:\d+ cannot be reached: ", error.detail), error.detail


def test_a_program_that_leaves_asynchronous_clients_open_ends_in_silence() -> None:
    program = """
import asyncio
from latchkey import AsyncLatchkey
client = AsyncLatchkey()
async def main():
    print((await client.keys.verify_key(key="unknown")).data.code)
for _ in range(2):
    asyncio.run(main())
"""
    environment = {**os.environ, "LATCHKEY_URL": URL, "LATCHKEY_ROOT_KEY": SERVICE_ROOT_KEY}
    command = [sys.executable, "-W", "default", "-c", program]
    ran = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[1] / "src", capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("NOT_FOUND\nNOT_FOUND\n", "")


def test_the_asynchronous_client_ends_an_attempt_of_an_http_client_without_timeouts() -> None:
    cancelled = 0

    async def never_answer(_: httpx.Request) -> httpx.Response:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        finally:
            cancelled += 1
        raise AssertionError

    async def call_async() -> None:
        http_client = httpx.AsyncClient(transport=httpx.MockTransport(never_answer))
        latchkey = AsyncLatchkey("https://keys.test", retries=1, timeout=0.05, http_client=http_client)
        # Without the bound, the test fails instead of waiting for ever.
        await asyncio.wait_for(latchkey.apis.list_apis(), 10)

    error = error_of(lambda: asyncio.run(call_async()))
    assert (error.type, error.detail) == ("timeout", "The service did not answer within 0.05 s.")
    assert cancelled == 2


class TestRetry:
    def test_has_the_key_of_the_first_attempt(self) -> None:
        service = Service(lost, success({"keyId": "a", "key": KEY}))
        latchkey = service.client()
        latchkey.keys.create_key(api_id="a")
        latchkey.keys.create_key(api_id="a")
        first, second, third = [request.headers["idempotency-key"] for request in service.sent]
        assert first == second != third

    def test_uses_the_key_of_the_caller(self) -> None:
        service = Service(success({"keyId": "a", "key": KEY}))
        service.client().keys.create_key(api_id="a", options={"idempotency_key": "order-104217"})
        assert service.sent[0].headers["idempotency-key"] == "order-104217"

    @pytest.mark.parametrize(
        ("attempts", "call", "answer"),
        [
            (3, lambda latchkey: latchkey.apis.list_apis(), lost),
            (3, lambda latchkey: latchkey.keys.verify_key(key="a", options={"retry_charges": True}), lost),
            (3, lambda latchkey: latchkey.keys.verify_key(key="a", options={"idempotency_key": "a"}), lost),
            (1, lambda latchkey: latchkey.keys.verify_key(key="a"), lost),
            (3, lambda latchkey: latchkey.keys.create_key(api_id="a"), failure(503, "application/service_unavailable")),
            (3, lambda latchkey: latchkey.apis.list_apis(), lambda _: httpx.Response(502, text="<html>")),
            (1, lambda latchkey: latchkey.keys.delete_key(key_id="a"), lost),
            (1, lambda latchkey: latchkey.keys.delete_key(key_id="a"), failure(503, "application/service_unavailable")),
            (1, lambda latchkey: latchkey.keys.delete_key(key_id="a", options={"idempotency_key": "a"}), lost),
            (3, lambda latchkey: latchkey.holds.settle_hold(hold_id="a", credits=1), lost),
            (
                3,
                lambda latchkey: latchkey.holds.release_hold(hold_id="a"),
                failure(503, "application/service_unavailable"),
            ),
            (3, lambda latchkey: latchkey.holds.extend_hold(hold_id="a", ttl=1000), lost),
            (3, lambda latchkey: latchkey.keys.delete_key(key_id="a"), failure(429, "user/too_many_requests/x")),
            (1, lambda latchkey: latchkey.keys.verify_key(key="a"), failure(400, "application/invalid_input")),
            (
                1,
                lambda latchkey: latchkey.keys.create_key(api_id="a"),
                failure(409, "application/idempotency_in_progress"),
            ),
            (1, lambda latchkey: latchkey.apis.list_apis(), failure(500, "application/unexpected_error")),
            (1, lambda latchkey: latchkey.apis.list_apis(options={"retries": 0}), lost),
        ],
    )
    def test_is_made_only_where_it_is_safe(
        self, attempts: int, call: Callable[[Latchkey], Any], answer: Answer
    ) -> None:
        service = Service(answer)
        error_of(lambda: call(service.client()))
        assert len(service.sent) == attempts

    def test_waits_while_the_first_attempt_is_being_executed(self) -> None:
        service = Service(
            lost, failure(409, "application/idempotency_in_progress"), success({"keyId": "a", "key": KEY})
        )
        assert service.client().keys.create_key(api_id="a").data.key_id == "a"
        assert len(service.sent) == 3

    def test_waits_for_retry_after_up_to_a_maximum(self, waits: list[float]) -> None:
        busy = failure(503, "application/service_unavailable", {"Retry-After": "4"})
        Service(busy, success([], pagination={"hasMore": False})).client().apis.list_apis()
        assert len(waits) == 1
        assert 4.05 <= waits[0] <= 4.1
        service = Service(busy)
        error = error_of(service.client(retry_wait_max=3.9).apis.list_apis)
        assert (error.retry_after, error.request_id, len(service.sent)) == (4, "req_2", 1)


def test_hooks_see_every_attempt_without_the_root_key(waits: list[float]) -> None:
    ends: list[AttemptEnd] = []

    def on_request(attempt: Attempt) -> None:
        assert "authorization" not in attempt.headers
        attempt.headers["traceparent"] = f"{attempt.operation} {attempt.attempt}"
        attempt.headers["authorization"] = "Bearer other"

    service = Service(lost, success({"valid": True, "code": "VALID"}))
    latchkey = service.client(retry_charges=True, on_request=on_request, on_response=ends.append)
    latchkey.keys.verify_key(key=KEY)
    assert [request.headers["traceparent"] for request in service.sent] == ["keys.verifyKey 1", "keys.verifyKey 2"]
    assert service.sent[0].headers["authorization"] == f"Bearer {ROOT_KEY}"
    seen = [(end.attempt, end.status, end.request_id, end.error and end.error.type) for end in ends]
    assert seen == [(1, None, None, "network_error"), (2, 200, "req_1", None)]
    assert ends[0].retry_in == waits[0]
    assert 0.05 <= waits[0] <= 0.1


def test_a_list_does_not_repeat_one_page_for_ever() -> None:
    api = {"id": "a", "apiId": "a", "name": "n"}
    service = Service(success([api], pagination={"hasMore": True, "cursor": "a"}))
    entries = service.client().apis.list_apis.all()
    assert [next(entries).api_id, next(entries).api_id] == ["a", "a"]
    assert error_of(lambda: next(entries)).type == "invalid_answer"
    assert len(service.sent) == 2


def test_an_async_client_serves_several_event_loops_and_ends_a_cancelled_call() -> None:
    from service import ROOT_KEY, URL

    latchkey = AsyncLatchkey(URL, ROOT_KEY)

    async def use() -> None:
        await latchkey.apis.list_apis()
        pending = asyncio.create_task(latchkey.apis.list_apis())
        await asyncio.sleep(0)
        pending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pending
        await latchkey.close()

    for _ in range(2):
        asyncio.run(use())
