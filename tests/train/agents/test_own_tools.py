"""Tools that people bring: schemas in two forms, code in the sandbox."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from trellis_train.agents import environments
from trellis_train.agents.argument_check import find_argument_fault
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.own_tools.schemas import read_schema

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
