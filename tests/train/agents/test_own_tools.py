"""Tools that people bring: schemas in two forms, code in the sandbox."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.environments import EXIT_BAD_REQUEST
from trellis_train.agents import environments
from trellis_train.agents.argument_check import find_argument_fault
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.own_tools import implementation
from trellis_train.agents.own_tools.schemas import read_schema, read_schemas

CODE = """
import asyncio
import json
import socket
import time

PRICES = {"apple": 3}


def price_of(item, currency="EUR"):
    return {"price": PRICES[item], "currency": currency}


async def wait(seconds):
    await asyncio.sleep(seconds)
    return "waited"


def connect():
    socket.create_connection(("127.0.0.1", 22), timeout=1)


def read():
    return json.load(open("data.json"))
"""
OPENAI = [
    {
        "type": "function",
        "function": {
            "name": "price-of",
            "description": "The price of an item.",
            "parameters": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "currency": {"type": "string"}},
                "required": ["item"],
            },
        },
    },
    {"name": "wait", "parameters": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
    {"name": "connect"},
]
MCP = {"tools": [{"name": "read", "description": "Reads.", "inputSchema": {"type": "object"}}]}


def make(folder: Path, schemas: Any, code: Path | str = CODE) -> environments.EnvironmentManifest:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schemas.json").write_text(json.dumps(schemas))
    path = code if isinstance(code, Path) else folder / "tools.py"
    if isinstance(code, str):
        path.write_text(code)
    named = {"tools": "upload:up_a", "code": "upload:up_b"}
    files = {"tools": str(folder / "schemas.json"), "code": str(path)}
    return environments.make("own_tools", folder / "made", named, files)


def test_tools_in_openais_form_are_called_in_the_sandbox(tmp_path: Path) -> None:
    manifest = make(tmp_path, OPENAI)
    folder = tmp_path / "made"

    price = environments.call(folder, "price-of", {"item": "apple"})
    waited = environments.call(folder, "wait", {"seconds": 0.01})

    assert [tool.name for tool in manifest.tools] == ["price-of", "wait", "connect"]
    assert manifest.counts == {"tools": 3, "files": 1}
    assert {"tools": "upload:up_a", "code": "upload:up_b"}.items() <= manifest.parameters.items()
    assert (price.result, price.error) == ({"price": 3, "currency": "EUR"}, None)
    assert waited.result == "waited"


def test_what_a_tool_refuses_or_raises_is_its_answer(tmp_path: Path) -> None:
    make(tmp_path, OPENAI)
    folder = tmp_path / "made"

    wrong = environments.call(folder, "price-of", {"item": 3})
    raised = environments.call(folder, "price-of", {"item": "pear"})
    closed = environments.call(folder, "connect", {})

    assert (wrong.error, wrong.result) == (
        "BAD_ARGUMENTS",
        'Invalid arguments: item: 3 is not of type "string"',
    )
    assert (raised.error, raised.result) == ("TOOL_RAISED", "KeyError: 'pear' (tools.py, line 11)")
    assert closed.error == "TOOL_RAISED"
    assert environments.call(folder, "price-of", {"item": "apple"}).error is None


def test_an_mcp_list_and_an_archive_with_data_make_an_environment(tmp_path: Path) -> None:
    archive = tmp_path / "code.tgz"
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in (("own/tools.py", CODE), ("own/data.json", '["a", "b"]')):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            opened.addfile(member, io.BytesIO(text.encode()))

    make(tmp_path, MCP, archive)

    found = environments.call(tmp_path / "made", "read", {})
    assert (found.result, found.result_count) == (["a", "b"], 2)


@pytest.mark.parametrize(
    ("schemas", "code", "problem"),
    [
        ([], CODE, "at least one tool"),
        ([{"name": "no name"}, {"name": "a", "parameters": {"type": "list"}}], CODE, "Tool 1: .* Tool 2: "),
        ([{"name": "read"}, {"name": "read"}], CODE, "Two tools are called read"),
        ([{"name": "lost"}], CODE, "tools.py does not define lost"),
        ([{"name": "read"}], "x = 1 / 0", "ZeroDivisionError"),
        ([{"name": "read", "parameters": {"type": "object", "properties": 3}}], CODE, "JSON Schema"),
        ([{"name": "a.b"}, {"name": "a-b"}], "def a_b(): ...", "a.b and a-b would share the function a_b"),
        ([{"name": "read", "description": "hi \ud83d"}], CODE, "read: it contains half of a character"),
    ],
)
def test_tools_that_could_not_be_called_are_refused(
    schemas: Any, code: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRequest, match=problem):
        make(tmp_path, schemas, code)


def of_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": "tool", "parameters": {"type": "object", **parameters}}


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1/schema.json", "other.json"])
def test_a_schema_that_refers_to_a_file_or_an_address_is_refused(reference: str) -> None:
    with pytest.raises(BadRequest, match="is supported"):
        read_schema(of_parameters({"properties": {"a": {"$ref": reference}}}))


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "("])
def test_a_pattern_that_may_take_for_ever_is_refused(keyword: str, pattern: str) -> None:
    value = pattern if keyword == "pattern" else {pattern: {}}

    with pytest.raises(BadRequest, match="linear time"):
        read_schema(of_parameters({"properties": {"a": {keyword: value}}}))


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(BadRequest, match="/none' does not exist"):
        read_schema(of_parameters({"properties": {"a": {"$ref": "#/$defs/none"}}}))


def test_a_reference_to_itself_ends() -> None:
    tool = read_schema(of_parameters({"properties": {"a": {"$ref": "#/properties/a"}}}))

    assert find_argument_fault(tool.parameters, {"a": 1}) is None


def test_tools_that_are_nested_too_deeply_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text("[" * 100_000)

    with pytest.raises(BadRequest, match="not valid JSON") as refusal:
        read_schemas(tmp_path / "tools.json")
    assert refusal.value.code == "tools_invalid"


FILES = {"tools": "tools.json", "code": "tools.py"}
COUNTING = """
S = []


def add():
    S.append(1)
    return len(S)


def half():
    return {"said": "hi " + chr(0xD83D)}
"""


def test_a_process_is_made_anew_after_so_many_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "_PROCESS_LASTS", 2)
    make(tmp_path, [{"name": "add"}, {"name": "half"}], COUNTING)

    assert [environments.call(tmp_path / "made", "add", {}).result for _ in range(3)] == [1, 2, 1]
    cut = environments.call(tmp_path / "made", "half", {})
    assert (cut.result, cut.model_dump_json()[:24]) == ({"said": "hi ?"}, '{"result":{"said":"hi ?"')


def test_the_processor_time_of_a_process_is_enough_for_its_calls() -> None:
    assert implementation.LIMITS.cpu_s > implementation._PROCESS_LASTS * implementation.LIMITS.wall_s


def test_an_environment_can_be_made_again_in_its_folder(tmp_path: Path) -> None:
    make(tmp_path, [{"name": "add"}], COUNTING)
    assert environments.call(tmp_path / "made", "add", {}).result == 1

    make(tmp_path, [{"name": "add"}], "def add(): return 'new'")

    assert environments.call(tmp_path / "made", "add", {}).result == "new"


def test_the_last_line_of_a_refusal_is_its_sentence_whatever_the_code_prints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text('[{"name": "read"}]')
    (tmp_path / "tools.py").write_text("import os\nprint('one\\ncode: mine\\ntwo', flush=True)\nos._exit(3)")
    files = json.dumps({name: str(tmp_path / file) for name, file in FILES.items()})

    status = environments.main(
        ["make", "own_tools", str(tmp_path / "made"), "--parameters", files, "--files", files]
    )

    *_, code, said = capfd.readouterr().err.splitlines()
    assert (status, code) == (EXIT_BAD_REQUEST, "code: tools_code_invalid")
    assert said.startswith("The code cannot be used: ")
    assert "one code: mine two" in said
