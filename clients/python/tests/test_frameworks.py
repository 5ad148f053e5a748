"""What is special in a framework, besides the scenarios that all of them share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import fastapi
import flask
import httpx
import pytest
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views import View
from service import URL, Workspace

import latchkey.django
import latchkey.fastapi
import latchkey.flask
from latchkey import AsyncLatchkey, Latchkey, Secret
from latchkey.flask import Rejection


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return Workspace.create("frameworks")


@pytest.fixture(scope="module")
def client(workspace: Workspace) -> Iterator[Latchkey]:
    with Latchkey(URL, workspace.root_key) as opened:
        yield opened


@pytest.fixture(scope="module")
def key(workspace: Workspace, client: Latchkey) -> Secret:
    return client.keys.create_key(api_id=workspace.api_id).data.key


class FastApiApp:
    """Sends each request in an event loop of its own."""

    def __init__(self, app: fastapi.FastAPI, calls: AsyncLatchkey) -> None:
        self._transport = httpx.ASGITransport(app)
        self._calls = calls

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        async def get() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://app.test") as client:
                response = await client.get(path, headers=headers)
            await self._calls.close()
            return response

        return asyncio.run(get())


def fastapi_app(workspace: Workspace, **options: Any) -> FastApiApp:
    calls = AsyncLatchkey(URL, workspace.root_key)
    app = fastapi.FastAPI()
    verify = latchkey.fastapi.Verify(api_id=workspace.api_id, latchkey=calls, **options)

    @app.get("/documents")
    async def documents(key: Any = fastapi.Depends(verify)) -> str | None:  # noqa: B008
        found: str | None = key.key_id
        return found

    return FastApiApp(app, calls)


def test_fastapi_answers_in_its_own_form(workspace: Workspace, key: Secret) -> None:
    app = fastapi_app(workspace)
    rejected = app.get("/documents")
    assert (rejected.status_code, rejected.headers["www-authenticate"]) == (401, 'Bearer realm="api"')
    assert rejected.json() == {"detail": "The request has no API key in the header Authorization."}
    assert app.get("/documents", headers={"Authorization": f"Bearer {key.reveal()}"}).status_code == 200


@pytest.mark.parametrize(
    ("options", "scheme"),
    [
        ({}, {"type": "http", "scheme": "bearer"}),
        ({"header": "X-Api-Key"}, {"type": "apiKey", "in": "header", "name": "X-Api-Key"}),
        ({"key": lambda connection: connection.cookies.get("key")}, {"type": "http", "scheme": "ApiKey"}),
    ],
)
def test_fastapi_documents_where_the_key_is(
    options: dict[str, Any], scheme: dict[str, str], workspace: Workspace
) -> None:
    document = fastapi_app(workspace, **options).get("/openapi.json").json()
    assert document["components"]["securitySchemes"] == {"ApiKey": scheme}
    assert document["paths"]["/documents"]["get"]["security"] == [{"ApiKey": []}]


def test_fastapi_joins_the_limits_with_headers_of_the_handler(workspace: Workspace, client: Latchkey) -> None:
    limit: Any = {"name": "requests", "limit": 100, "duration": 3_600_000, "auto_apply": True}
    key = client.keys.create_key(api_id=workspace.api_id, ratelimits=[limit]).data.key
    calls = AsyncLatchkey(URL, workspace.root_key)
    app = fastapi.FastAPI()
    app.add_middleware(latchkey.fastapi.HoldMiddleware)
    depends = [fastapi.Depends(latchkey.fastapi.Verify(api_id=workspace.api_id, latchkey=calls))]
    for member in ("owner", "address"):
        limiter: Any = latchkey.fastapi.Ratelimit(
            namespace=member, limit=9, duration=60_000, identifier=lambda _: "all", latchkey=calls
        )
        depends.append(fastapi.Depends(limiter))

    @app.get("/streamed", dependencies=depends)
    async def streamed() -> fastapi.Response:
        return fastapi.Response("hello", headers={"X-Own": "1"})

    @app.get("/own", dependencies=depends)
    async def own() -> fastapi.Response:
        return fastapi.Response("hello", headers={"RateLimit": '"own";r=1'})

    @app.get("/replaced", dependencies=depends)
    async def replaced(response: fastapi.Response) -> str:
        response.headers["RateLimit"] = '"own";r=1'
        return "hello"

    names = '"requests";r=[^"]*"owner";r=[^"]*"address";r=[^"]*'
    for path, expected in (("/streamed", names), ("/own", names + '"own";r=1'), ("/replaced", names + '"own";r=1')):
        headers = FastApiApp(app, calls).get(path, headers={"Authorization": f"Bearer {key.reveal()}"}).headers
        assert re.fullmatch(expected, headers["RateLimit"]), (path, headers)
        assert headers["RateLimit-Policy"].count("q=") == 3


def flask_app(guard: latchkey.flask.Guard) -> Any:
    app = flask.Flask(__name__)
    app.get("/documents")(guard(lambda: flask.g.latchkey.key_id))
    return app.test_client()


def test_a_key_can_be_found_elsewhere(workspace: Workspace, client: Latchkey, key: Secret) -> None:
    app = flask_app(
        latchkey.flask.verify(
            api_id=workspace.api_id, latchkey=client, key=lambda request: request.args.get("key", type=str)
        )
    )
    assert app.get(f"/documents?key={key.reveal()}").status_code == 200
    for query, code, error in (("", "MISSING", ""), ("?key=a%20b", "MALFORMED", ', error="invalid_request"')):
        rejected = app.get(f"/documents{query}")
        assert (rejected.status_code, rejected.headers["X-Latchkey-Code"]) == (401, code)
        assert rejected.headers["WWW-Authenticate"] == f'ApiKey realm="api"{error}'


def test_an_answer_can_be_changed(workspace: Workspace, client: Latchkey) -> None:
    def on_reject(rejection: Rejection, _request: flask.Request) -> Rejection:
        return Rejection(status=418, headers={}, code=rejection.code, detail="", body=b"teapot")

    guard = latchkey.flask.verify(api_id=workspace.api_id, latchkey=client, on_reject=on_reject)
    rejected = flask_app(guard).get("/documents")
    assert (rejected.status_code, rejected.text) == (418, "teapot")


def test_a_hook_that_returns_nothing_lets_no_request_pass(workspace: Workspace, client: Latchkey) -> None:
    reached: list[object] = []

    def on_reject(_rejection: Rejection, _request: HttpRequest) -> Any:
        return None

    @latchkey.django.verify(api_id=workspace.api_id, latchkey=client, on_reject=on_reject)
    def view(request: HttpRequest) -> Any:
        reached.append(request)

    request = HttpRequest()
    request.method = "GET"
    assert view(request).status_code == 401
    assert reached == []


def test_a_class_with_async_handlers_can_be_decorated(workspace: Workspace, client: Latchkey) -> None:
    limit: Any = {"name": "requests", "limit": 1, "duration": 3_600_000, "auto_apply": True}
    key = client.keys.create_key(api_id=workspace.api_id, ratelimits=[limit]).data.key
    guard: Any = method_decorator(latchkey.django.verify(api_id=workspace.api_id, latchkey=client), name="dispatch")

    @guard
    class Documents(View):
        async def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse(b"read", content_type="text/plain")

    async def answer() -> HttpResponse:
        request = HttpRequest()
        request.method = "GET"
        request.META["HTTP_AUTHORIZATION"] = f"Bearer {key.reveal()}"
        found: Any = Documents.as_view()(request)
        response: HttpResponse = await found
        return response

    passed, rejected = asyncio.run(answer()), asyncio.run(answer())
    assert (passed.status_code, passed.headers["RateLimit"][:12]) == (200, '"requests";r')
    assert rejected.status_code == 429


def test_invented_keys_do_not_open_an_application_that_fails_open(workspace: Workspace) -> None:
    problem = {"type": "/errors/application/lookups_exhausted", "detail": "too many", "status": 503}
    body = {"meta": {"requestId": "req_1"}, "error": problem}
    transport = httpx.MockTransport(lambda _: httpx.Response(503, json=body))
    with Latchkey("http://service.test", retries=0, http_client=httpx.Client(transport=transport)) as exhausted:
        guard = latchkey.flask.verify(api_id=workspace.api_id, latchkey=exhausted, fail_open=True)
        rejected = flask_app(guard).get("/documents", headers={"Authorization": "Bearer prod_invented"})
    assert rejected.status_code == 503


def test_options_can_be_functions_and_must_return_something(
    workspace: Workspace, client: Latchkey, key: Secret, caplog: pytest.LogCaptureFixture
) -> None:
    guard = latchkey.flask.verify(
        api_id=workspace.api_id,
        latchkey=client,
        fail_open=True,
        permissions=lambda request: request.args.get("permission", ""),
    )
    app = flask_app(guard)
    headers = {"Authorization": f"Bearer {key.reveal()}"}
    assert app.get("/documents?permission=a.b", headers=headers).status_code == 403
    assert app.get("/documents", headers=headers).status_code == 503
    assert "`permissions`" in caplog.text
    assert key.reveal() not in caplog.text


def test_an_async_view_of_flask_is_guarded(workspace: Workspace, client: Latchkey, key: Secret) -> None:
    app = flask.Flask(__name__)

    @app.get("/documents")
    @latchkey.flask.verify(api_id=workspace.api_id, latchkey=client)
    async def documents() -> str:
        await asyncio.sleep(0)
        return "ok"

    assert app.test_client().get("/documents").status_code == 401
    assert app.test_client().get("/documents", headers={"Authorization": f"Bearer {key.reveal()}"}).text == "ok"


def test_a_service_over_its_limit_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[httpx.Request] = []

    def answer(_: object, request: httpx.Request) -> httpx.Response:
        sent.append(request)
        error = {"type": "/errors/user/too_many_requests", "detail": "Too many.", "status": 429}
        body = {"meta": {"requestId": "req_1"}, "error": error}
        return httpx.Response(429, json=body, headers={"Retry-After": "2"}, request=request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    monkeypatch.setenv("LATCHKEY_URL", "http://keys.test")
    app = flask_app(latchkey.flask.verify(api_id="api_1", fail_open=True))
    rejected = app.get("/documents", headers={"Authorization": "Bearer a"})
    assert (rejected.status_code, rejected.headers["Retry-After"], len(sent)) == (503, "2", 1)
    assert rejected.json["meta"] == {"requestId": "req_1"}


@pytest.mark.parametrize("make", [latchkey.flask.verify, latchkey.django.verify, latchkey.fastapi.Verify])
def test_options_that_cannot_be_used_are_errors(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATCHKEY_URL", "http://keys.test")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "api_id"),
        ({"api_id": []}, "api_id"),
        ({"api_id": ["a", ""]}, "api_id"),
        ({"api_id": "a", "header": "a b"}, "header"),
        ({"api_id": "a", "keys": 1}, "keys"),
        ({"api_id": "a", "header": "X-Api-Key", "key": lambda _: None}, "key"),
    ]
    for options, name in wrong:
        with pytest.raises(ValueError, match=f"`{name}`"):
            make(**options)
    monkeypatch.delenv("LATCHKEY_URL")
    with pytest.raises(ValueError, match="LATCHKEY_URL"):
        make(api_id="a")


def test_options_of_limits_that_cannot_be_used_are_errors() -> None:
    good: dict[str, Any] = {"namespace": "a", "limit": 1, "duration": 1_000, "identifier": "address"}
    for name in good:
        with pytest.raises(ValueError, match=f"`{name}` is missing"):
            latchkey.flask.ratelimit(**{other: good[other] for other in good if other != name})
    with pytest.raises(ValueError, match="`identifier`"):
        latchkey.flask.ratelimit(**{**good, "identifier": "key"})
