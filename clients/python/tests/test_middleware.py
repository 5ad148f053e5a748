"""The middleware of every framework, by the shared list, over real connections.

`sdk/test/middleware-scenarios.ts` says what the members of the list mean.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django
import fastapi
import flask
import httpx
import pytest
import uvicorn
import werkzeug.serving
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, JsonResponse
from django.test import override_settings
from django.urls import path
from scenarios import arguments, has_members, load, snake, substitute
from service import ROOT_KEY, URL, Network, network

import latchkey.django
import latchkey.fastapi
import latchkey.flask
from latchkey import AsyncLatchkey, Latchkey, Secret

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of a test")
django.setup()

OnKey = Callable[[Any], None]
Options = dict[str, dict[str, Any]]


class Framework:
    """Builds an application with the route `/documents/…` behind the middleware."""

    route: str
    is_asgi = False
    client: type[Latchkey] | type[AsyncLatchkey] = Latchkey

    def header(self, request: Any, name: str) -> str | None:
        value: str | None = request.headers.get(name)
        return value

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        raise NotImplementedError


class FastApi(Framework):
    route = "path=/documents/{id}"
    is_asgi = True
    client = AsyncLatchkey

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        app = fastapi.FastAPI()
        app.add_exception_handler(latchkey.fastapi.Rejected, latchkey.fastapi.answer_rejected)
        verify = latchkey.fastapi.Verify(**options["verify"]) if "verify" in options else lambda: None
        limits = [latchkey.fastapi.Ratelimit(**options["ratelimit"])] if "ratelimit" in options else []

        # Dependencies of the route come before those of the function.
        dependencies = [fastapi.Depends(verify), *map(fastapi.Depends, limits)]

        @app.api_route("/documents/{id}", methods=["GET", "POST", "DELETE"], dependencies=dependencies)
        async def documents(id: int, key: Any = fastapi.Depends(verify)) -> dict[str, int]:  # noqa: B008
            on_key(key)
            return {"id": id}

        yield app


class Flask(Framework):
    route = "path=/documents/<int:id>"

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        app = flask.Flask(__name__)

        def documents(id: int) -> dict[str, int]:
            on_key(flask.g.get("latchkey"))
            return {"id": id}

        view = documents
        if "ratelimit" in options:
            view = latchkey.flask.ratelimit(**options["ratelimit"])(view)
        if "verify" in options:
            view = latchkey.flask.verify(**options["verify"])(view)
        app.add_url_rule("/documents/<int:id>", view_func=view, methods=["GET", "POST", "DELETE"])
        yield app


class FlaskApplication(Framework):
    route = "path=/documents/<int:id>"

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        app = flask.Flask(__name__)
        if "verify" in options:
            latchkey.flask.verify(**options["verify"]).protect(app)
        if "ratelimit" in options:
            latchkey.flask.ratelimit(**options["ratelimit"]).protect(app)

        @app.route("/documents/<int:id>", methods=["GET", "POST", "DELETE"])
        def documents(id: int) -> dict[str, int]:
            on_key(flask.g.get("latchkey"))
            return {"id": id}

        yield app


django_view: Any = None


def _django_view(request: HttpRequest, id: int) -> Any:
    return django_view(request, id)


async def _django_view_async(request: HttpRequest, id: int) -> Any:
    return await django_view(request, id)


urlpatterns = [path("documents/<int:id>", _django_view), path("async/documents/<int:id>", _django_view_async)]


class Django(Framework):
    route = "path=/documents/<int:id>"

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        global django_view

        def documents(request: HttpRequest, id: int) -> JsonResponse:
            on_key(getattr(request, "latchkey", None))
            return JsonResponse({"id": id})

        django_view = documents
        if "ratelimit" in options:
            django_view = latchkey.django.ratelimit(**options["ratelimit"])(django_view)
        if "verify" in options:
            django_view = latchkey.django.verify(**options["verify"])(django_view)
        yield WSGIHandler()


class DjangoAsync(Framework):
    route = "path=/async/documents/<int:id>"
    is_asgi = True

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        global django_view

        async def documents(request: HttpRequest, id: int) -> JsonResponse:
            on_key(getattr(request, "latchkey", None))
            return JsonResponse({"id": id})

        django_view = documents
        if "ratelimit" in options:
            django_view = latchkey.django.ratelimit(**options["ratelimit"])(django_view)
        if "verify" in options:
            django_view = latchkey.django.verify(**options["verify"])(django_view)
        yield ASGIHandler()


class DjangoMiddleware(Framework):
    route = "path=/documents/<int:id>"

    @contextmanager
    def app(self, options: Options, on_key: OnKey) -> Iterator[Any]:
        global django_view

        def documents(request: HttpRequest, id: int) -> JsonResponse:
            on_key(getattr(request, "latchkey", None))
            return JsonResponse({"id": id})

        django_view = documents
        with override_settings(LATCHKEY=options, MIDDLEWARE=["latchkey.django.LatchkeyMiddleware"]):
            yield ASGIHandler() if self.is_asgi else WSGIHandler()


class DjangoMiddlewareAsync(DjangoMiddleware):
    is_asgi = True


FRAMEWORKS = [FastApi, Flask, FlaskApplication, Django, DjangoAsync, DjangoMiddleware, DjangoMiddlewareAsync]


class Servers:
    """A server for WSGI and one for ASGI. Both run `app`."""

    def __init__(self) -> None:
        self.app: Any = None
        self._wsgi = werkzeug.serving.make_server("127.0.0.1", 0, self._run_wsgi, threaded=True)
        self._asgi = uvicorn.Server(
            uvicorn.Config(
                self._run_asgi, port=0, interface="asgi3", lifespan="off", proxy_headers=False, log_level="warning"
            )
        )
        self._asgi_thread = threading.Thread(target=self._asgi.run)
        self._wsgi_thread = threading.Thread(target=self._wsgi.serve_forever)
        started = threading.Event()
        startup = self._asgi.startup

        async def start(*args: Any, **kwargs: Any) -> None:
            await startup(*args, **kwargs)
            started.set()

        self._asgi.startup = start  # type: ignore[method-assign]
        self._asgi_thread.start()
        self._wsgi_thread.start()
        assert started.wait(10)

    def port(self, is_asgi: bool) -> int:
        port: int = self._asgi.servers[0].sockets[0].getsockname()[1] if is_asgi else self._wsgi.server_port
        return port

    def close(self) -> None:
        self._asgi.should_exit = True
        self._asgi_thread.join()
        self._wsgi.shutdown()
        self._wsgi_thread.join()
        self._wsgi.server_close()

    def _run_wsgi(self, environ: Any, start_response: Any) -> Any:
        return self.app(environ, start_response)

    async def _run_asgi(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    opened = Servers()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def api_ids() -> dict[type[Framework], str]:
    with Latchkey(URL, ROOT_KEY) as latchkey:
        return {each: latchkey.apis.create_api(name=each.__name__).data.api_id for each in FRAMEWORKS}


@pytest.fixture
def disturbed() -> Iterator[Network]:
    with network() as opened:
        yield opened


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("scenario", load("middleware-scenarios.json"), ids=lambda scenario: scenario["name"])
def test_scenario(
    scenario: dict[str, Any],
    framework: type[Framework],
    servers: Servers,
    api_ids: dict[type[Framework], str],
    disturbed: Network,
) -> None:
    saved = {"apiId": api_ids[framework]}
    for original in scenario["steps"]:
        step = substitute(original, saved)
        if "call" in step:
            _call(step, saved)
        else:
            _ask(framework(), step, saved, servers, disturbed)


def _call(step: dict[str, Any], saved: dict[str, str]) -> None:
    namespace, verb = map(snake, step["call"].split("."))
    with httpx.Client(verify=False) as http_client:
        latchkey = Latchkey(URL, step.get("rootKey", ROOT_KEY), http_client=http_client)
        data = getattr(getattr(latchkey, namespace), verb)(**arguments(step["input"])).data
    for member, name in step.get("save", {}).items():
        value = getattr(data, snake(member))
        saved[name] = value.reveal() if isinstance(value, Secret) else value


def _ask(
    framework: Framework, step: dict[str, Any], saved: dict[str, str], servers: Servers, disturbed: Network
) -> None:
    sent: list[dict[str, Any]] = []
    errors: list[Exception] = []
    given: list[Any] = []

    def record(request: httpx.Request) -> None:
        sent.append(json.loads(request.content))

    async def record_async(request: httpx.Request) -> None:
        record(request)

    # Connections that stay open would outlive their step.
    limits = httpx.Limits(max_keepalive_connections=0)
    http_client: Any = (
        httpx.AsyncClient(verify=False, event_hooks={"request": [record_async]}, limits=limits)
        if framework.client is AsyncLatchkey
        else httpx.Client(verify=False, event_hooks={"request": [record]}, limits=limits)
    )
    latchkey: Any = framework.client(
        disturbed.url,
        step.get("rootKey", ROOT_KEY),
        timeout=step.get("timeout", 10_000) / 1_000,
        http_client=http_client,
    )
    common = {"latchkey": latchkey, "on_error": lambda error, _request: errors.append(error)}
    options: Options = {
        name: {**common, **_options(step[name], framework)} for name in ("verify", "ratelimit") if name in step
    }
    disturbed.disturbance = step.get("network")
    with framework.app(options, given.append) as servers.app:
        answer = _send(servers.port(framework.is_asgi), framework, step["request"])
    disturbed.disturbance = None

    _check(step, answer, given)
    error_code = step.get("error", {}).get("code")
    assert bool(errors) == (error_code == "UNDECIDED" or ("verified" in step and step["verified"] is None)), errors
    if "calls" in step:
        assert len(sent) == step["calls"]
    if "sent" in step:
        assert has_members(sent[-1], step["sent"]), sent
    if "verify" in step and "path" not in step["verify"] and sent:
        assert sent[0]["tags"] == [framework.route, f"method={step['request']['method']}"]
    assert saved.get("key", "without a key") not in repr((answer, errors))


def _options(members: dict[str, Any], framework: Framework) -> dict[str, Any]:
    return {
        snake(name): _reads_header(framework, value["header"]) if isinstance(value, dict) else value
        for name, value in members.items()
    }


def _reads_header(framework: Framework, name: str) -> Callable[[Any], str | None]:
    return lambda request: framework.header(request, name)


Answer = tuple[int, dict[str, str], str]


def _send(port: int, framework: Framework, request: dict[str, Any]) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    prefix = "/async" if isinstance(framework, DjangoAsync) else ""
    connection.putrequest(request["method"], prefix + request["path"])
    for name, values in request["headers"].items():
        for value in values if isinstance(values, list) else [values]:
            connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    answer = (response.status, {name.lower(): value for name, value in response.getheaders()}, response.read().decode())
    connection.close()
    return answer


def _check(step: dict[str, Any], answer: Answer, given: list[Any]) -> None:
    status, headers, text = answer
    assert status == step["status"], text
    for name, expected in step.get("headers", {}).items():
        actual = headers.get(name.lower())
        if isinstance(expected, dict):
            assert re.search(expected["matches"], actual or ""), (name, actual)
        else:
            assert actual == expected, name
    if status != 401:
        assert "www-authenticate" not in headers
    error = step.get("error")
    assert headers.get("x-latchkey-code") == (error["code"] if error else None)
    if error is None:
        assert len(given) == 1
        assert has_members(given[0], step["verified"]) if step.get("verified") else given[0] is None
        return
    assert not given
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-store"
    body = json.loads(text)
    assert body["error"].keys() == {"code", "detail", "status", "title", "type"}
    assert has_members(body["error"], {**error, "status": status, "type": "about:blank"})
    assert body["meta"].get("requestId", "req_").startswith("req_")
