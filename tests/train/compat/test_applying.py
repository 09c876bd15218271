"""A change is installed where its symbol is the one it was written for, and refused loudly elsewhere."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from trellis_train.compat import applying, change, checking, records
from trellis_train.compat.__main__ import main
from trellis_train.compat.change import Change, EngineMoved
from trellis_train.compat.checking import ACCEPT_VARIABLE, check
from trellis_train.compat.records import Record
from trellis_train.compat.source import forget_sources

GROUP = "an example"


class Engine:
    """An engine of one function, which a change replaces."""

    def __init__(self, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self._folder, self._patch = name, folder, monkeypatch
        self.target = f"{name}.double"
        monkeypatch.syspath_prepend(str(folder))
        self.write("def double(x):\n    return 2 * x\n")
        self.entry = Change(
            target=self.target, kind="fix", way="assigned", group=GROUP, does="Triples.", without="Doubles.",
            versions="==1.0", tests=("here",), replace=lambda original: lambda x: original(x) + x,
        )  # fmt: skip
        self.set_version("1.0")
        record = records.record(self.entry)
        monkeypatch.setattr(checking, "read_records", lambda: {self.target: record})
        monkeypatch.setattr(applying, "list_changes", lambda *groups: [self.entry] if GROUP in groups else [])

    def write(self, code: str) -> None:
        (self._folder / f"{self.name}.py").write_text(code)
        forget_sources()

    def set_version(self, version: str | None) -> None:
        self._patch.setattr(checking, "find_version", lambda package: version)

    def use(self) -> Any:
        applying.apply.__wrapped__(GROUP)
        return import_module(self.name).double(10)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Engine:
    monkeypatch.delenv(ACCEPT_VARIABLE, raising=False)
    return Engine(tmp_path, f"engine_{abs(hash(request.node.name))}", monkeypatch)


def test_a_change_is_in_place_when_its_module_is_imported(engine: Engine) -> None:
    assert engine.use() == 30


def test_a_source_that_moved_ends_the_import_and_says_what_to_do(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record("0" * 16, "(x)")
    monkeypatch.setattr(checking, "read_records", lambda: {engine.target: record})

    with pytest.raises(EngineMoved) as caught:
        engine.use()

    said = str(caught.value)
    assert said.startswith("engine_moved: ")
    for part in (engine.target, "its source was 0000", "trellis engines compat", "docs/upgrading.md"):
        assert part in said
    assert f"{ACCEPT_VARIABLE}={engine.target}" in said


@pytest.mark.parametrize("accepted", ["all", "{target}", "another.one, {target}"])
def test_what_moved_is_used_where_that_is_accepted(
    engine: Engine, accepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "read_records", lambda: {engine.target: Record("0" * 16, "(x)")})
    monkeypatch.setenv(ACCEPT_VARIABLE, accepted.format(target=engine.target))

    assert check(engine.entry).state == "accepted"
    assert engine.use() == 30


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Record("0" * 16, "(x, y)"), r"its signature was \(x, y\) and is \(x\)"),
        (None, "nobody has recorded"),
    ],
)
def test_a_signature_that_moved_and_one_that_nobody_read_are_told(
    engine: Engine, record: Record | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "read_records", lambda: {engine.target: record} if record else {})

    with pytest.raises(EngineMoved, match=problem):
        engine.use()


@pytest.mark.parametrize(
    ("version", "state"), [("1.0+cpu", "ok"), ("1.0.1", "other_version"), (None, "absent")]
)
def test_versions_count_but_for_how_they_were_built(engine: Engine, version: str, state: str) -> None:
    engine.set_version(version)

    assert check(engine.entry).state == state


def test_a_symbol_that_is_gone_cannot_be_accepted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCEPT_VARIABLE, "all")
    engine.write("def treble(x):\n    return 3 * x\n")

    assert check(engine.entry).state == "gone"
    with pytest.raises(EngineMoved, match="has no double"):
        engine.use()


def test_a_group_is_checked_without_being_installed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    applying.require_group(GROUP)
    assert import_module(engine.name).double(10) == 20

    monkeypatch.setattr(checking, "read_records", dict)
    with pytest.raises(EngineMoved, match=engine.target):
        applying.require_group(GROUP)


def test_a_target_is_registered_once_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "_registered", {})
    register = change.change(target="a.b", kind="fix", group=GROUP, does="Acts.", without="Does not.")
    register(lambda original: original)

    with pytest.raises(ValueError, match="registered twice"):
        register(lambda original: original)


def test_the_command_tells_all_and_fails_where_one_moved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["state"] for row in rows} == {"ok"}

    known = dict(records.read_records()) | {"verl.utils.model.load_valuehead_model": Record("0" * 16, "()")}
    monkeypatch.setattr(checking, "read_records", lambda: known)
    assert main([]) == 1
    assert "moved: verl.utils.model.load_valuehead_model: its signature was ()" in capsys.readouterr().out


def test_only_known_targets_can_be_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write", "verl.nothing"]) == 2
    assert "verl.nothing" in capsys.readouterr().err


def test_the_command_imports_no_engine() -> None:
    code = (
        "import sys; from trellis_train.compat.__main__ import main; main([]);"
        "print(sorted({'torch', 'vllm', 'verl', 'ray', 'trl', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
