"""The package as it is published, in a virtual environment of its own. The programs of README.md use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from service import ROOT_KEY, URL, Workspace

from latchkey import Latchkey, __version__

FOLDER = Path(__file__).parents[1]
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)

# What asks the applications of README.md, and shows their answers.
ASK = """
import asyncio, httpx
transport = httpx.{transport}(app)
async def ask():
    async with httpx.AsyncClient(transport=transport, base_url="http://app.test") as client:
        for key in (None, KEY):
            headers = {{}} if key is None else {{"Authorization": f"Bearer {{key}}"}}
            answer = await client.get("/documents", headers=headers)
            print(answer.status_code, answer.text.strip())
asyncio.run(ask())
"""
ASK_WSGI = """
import httpx
with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://app.test") as client:
    for key in (None, KEY):
        answer = client.get("/documents", headers={} if key is None else {"Authorization": f"Bearer {key}"})
        print(answer.status_code, answer.text.strip())
"""
DJANGO = """
from django.conf import settings
settings.configure(ROOT_URLCONF="program", ALLOWED_HOSTS=["*"])
import django
django.setup()
"""
DJANGO_ASK = """
import sys
from django.urls import path
from django.core.handlers.wsgi import WSGIHandler
urlpatterns = [path("documents", documents)]
sys.modules["program"] = sys.modules["__main__"]
app = WSGIHandler()
"""

POST = """
print(app.test_client().post("/webhook").status_code)
"""

REJECTED = r"401 .*API key.*\n"
EXPECTED = [
    ("", "", r"rejected: NOT_FOUND\n"),
    ("", ASK.format(transport="ASGITransport"), REJECTED + r'200 \{"owner":null\}\n'),
    (DJANGO, DJANGO_ASK + ASK_WSGI, REJECTED + r'200 \{"key": "key_\w+"\}\n'),
    ("", ASK_WSGI, REJECTED + r'200 \{"key":"key_\w+"\}\n'),
    ("", ASK_WSGI, REJECTED + r"200 \{\}\n"),
    ("", ASK_WSGI.replace("/documents", "/chat"), REJECTED + r"200 42\n"),
    ("", "", r"rejected: NOT_FOUND\n"),
    ("", "", r"\[redacted\]\nkey_\w+ \w+\nTrue 99\n"),
    ("", "", r"readme\ndocuments\n"),
    ("", "", r"no such key req_\w+\n"),
    ('import os; os.environ["WEBHOOK_SECRET"] = "whsec_" + "AAAA" * 8\n', POST, r"401\n"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(FOLDER))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", str(folder))
    found = str(folder / "bin" / "python")
    wanted = f"{wheel}[django,fastapi,flask]"
    constraints = str(FOLDER / "requirements.txt")
    run(found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, wanted)
    return found


def run(*command: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LATCHKEY_", "PYTHON"))}
    ran = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_contains_the_package_and_its_license(wheel: Path) -> None:
    assert wheel.name == f"latchkey_sdk-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert (FOLDER / "LICENSE").read_text() == (FOLDER.parents[1] / "LICENSE").read_text()
    for name in ("latchkey/py.typed", "latchkey/types.py", f"latchkey_sdk-{__version__}.dist-info/licenses/LICENSE"):
        assert name in names
    assert not [name for name in names if not name.startswith(("latchkey/", "latchkey_sdk-"))]


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_runs_the_programs_of_the_readme(number: int, python: str, tmp_path: Path) -> None:
    assert len(PROGRAMS) == len(EXPECTED)
    workspace = Workspace.create("readme")
    with Latchkey(URL, workspace.root_key) as latchkey:
        key = latchkey.keys.create_key(api_id=workspace.api_id).data.key
        if number == 8:
            latchkey.apis.create_api(name="documents")
    before, after, expected = EXPECTED[number]
    program = tmp_path / "program.py"
    constants = f"API_ID, KEY = {workspace.api_id!r}, {key.reveal()!r}\n"
    program.write_text(constants + before + PROGRAMS[number] + after)
    output = run(python, str(program), LATCHKEY_URL=URL, LATCHKEY_ROOT_KEY=workspace.root_key.reveal())
    assert re.fullmatch(expected, output), output


def test_needs_no_framework(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path))
    found = str(tmp_path / "bin" / "python")
    constraints = str(FOLDER / "requirements.txt")
    run(
        found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, str(wheel)
    )
    program = f"from latchkey import Latchkey; print(Latchkey({URL!r}, {ROOT_KEY!r}).apis.list_apis().data != [])"
    assert run(found, "-c", program) == "True\n"
