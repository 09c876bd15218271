"""One verb for one thing in all groups of `trellis`: old names warn, work that takes long has `--wait`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from trellis_cli.errors import ExitCode
from trellis_cli.main import app
from trellis_testing.commands import trellis
from trellis_tools.bench.light_platform import LightPlatform
from typer.testing import CliRunner

RUNNER = CliRunner()
#: What a verb does. A command has one of these verbs, or is a noun of `NOUNS`.
VERBS = {
    "submit": "starts work on the platform: jobs, evaluations, data pipelines, workflows, sweeps",
    "stop": "ends what waits or runs; what it did so far is kept",
    "resume": "continues what was stopped or failed",
    "rerun": "does a stage again although nothing changed",
    "delete": "removes for good",
    "list": "shows many",
    "show": "shows one",
    "create": "makes something on the platform that has a name of its own",
    "upload": "sends files of this machine to the platform",
    "download": "brings files of the platform to this machine",
    "import": "reads a hub's dataset, or a script's settings",
    "install": "brings the files of a benchmark to the platform",
    "get": "brings a model of the catalogue to the platform",
    "register": "makes weights known that are there",
    "push": "sends a model to a hub",
    "export": "makes a model of a checkpoint",
    "save": "stores a version of a pipeline",
    "start": "serves a model until `stop`",
    "compare": "puts runs side by side",
    "clone": "makes a copy that can be launched",
    "edit": "changes name, notes, tags and options",
    "preview": "shows what would happen",
    "watch": "follows what was submitted before",
    "keep": "pins a checkpoint",
    "prune": "deletes the files of a checkpoint, which stays in the history",
    "call": "calls a tool",
    "add": "adds a version to a registered model",
    "promote": "points an alias to a version",
    "rollback": "goes back to an earlier version",
    "tag": "names a version",
    "branch": "makes a line of versions",
    "commit": "stores a folder as a version",
    "checkout": "writes a version to a folder",
    "diff": "compares two versions",
    "verify": "checks stored files against their hashes",
    "gc": "removes stored files that no version needs",
    "detect": "guesses a format",
    # On this machine, without a platform.
    "run": "runs a pipeline or a training here",
    "search": "runs a sweep here, or asks a trained retriever",
    "train": "trains here",
    "evaluate": "measures here",
    "generate": "makes rows here",
    "validate": "checks files and settings before a run",
}
#: Commands that show what their name says, or make it.
NOUNS = {
    "data log", "data operators", "data stats", "agent pairs",
    "agent pipeline", "datasets rows", "datasets samples", "datasets versions", "engines compat",
    "environments kinds", "evaluations history", "evaluations leaderboard", "evaluations manifest",
    "evaluations matrix", "evaluations samples", "job-pipelines templates", "jobs checkpoints",
    "jobs logs", "jobs rollouts", "jobs tensorboard", "jobs timing",
    "models card", "models catalogue", "models gguf", "models lineage",
    "pipelines operators", "registry history", "rewards dry-run", "rewards dry-runs",
    "votes dataset", "votes win-rates",
}  # fmt: skip
#: Old names of commands, what they are called with here, and the verb that they have now.
OLD = {
    "environments make": ("x", "create"),
    "evaluations run": ("--model x --benchmarks gsm8k", "submit"),
    "evaluations cancel": ("x", "stop"),
    "evaluations retry": ("x", "resume"),
    "job-pipelines start": ("x", "resume"),
    "linksearch check": ("--config missing.yaml", "validate"),
    "linksearch eval": ("--config missing.yaml", "evaluate"),
    "pipelines run": ("x --dataset x", "submit"),
    "pipelines cancel": ("x", "stop"),
    "rewards files add": (__file__, "upload"),
    "rewards files remove": ("x", "delete"),
    "transfers cancel": ("x", "stop"),
    "agent-code retry": ("x", "resume"),
}
#: Verbs of work that the platform carries out after its answer.
TAKES_LONG = {
    "submit", "stop", "resume", "rerun", "create", "upload", "import", "install", "get", "register", "push",
    "export", "start",
}  # fmt: skip
#: Those that are done with the answer, or that run here.
DONE_AT_ONCE = {"agent export", "data import", "jobs import", "models stop", "rewards files upload"}
#: Commands without a group: the platform itself, its chat, and its check of GPU machines.
TOP_LEVEL = {
    "chat", "demo", "doctor", "down", "gpu-check", "install-service", "login", "logout", "logs", "replay",
    "status", "supervise", "up",
}  # fmt: skip


#: Old names of groups, and what they are called now: a group has the name of its page, in the plural.
OLD_GROUPS = {"eval": "evaluations", "sweep": "sweeps", "workflows": "agent-code"}


def _walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, each in command.commands.items():
        if not (hasattr(each, "commands") and each.hidden):
            yield from _walk(each, (*path, name))


ROOT: Any = typer.main.get_command(app)
COMMANDS = {" ".join(path): command for path, command in _walk(ROOT)}
SHOWN = {name: command for name, command in COMMANDS.items() if not command.hidden}


def test_a_command_has_a_known_verb() -> None:
    grouped = {name for name in SHOWN if " " in name}

    strange = {name for name in grouped if name.rpartition(" ")[2] not in VERBS} - NOUNS
    assert strange == set(), "use a verb of VERBS; a new verb is added there with what it does"
    assert {name for name in SHOWN if " " not in name} == TOP_LEVEL


def test_no_entry_of_the_tables_is_left_over() -> None:
    used = {name.rpartition(" ")[2] for name in SHOWN}

    assert set(VERBS) <= used
    assert set(SHOWN) >= NOUNS
    assert set(SHOWN) >= DONE_AT_ONCE


@pytest.mark.parametrize("name", [name for name in SHOWN if name.rpartition(" ")[2] in TAKES_LONG])
def test_work_that_takes_long_can_be_waited_for(name: str) -> None:
    options = {option for parameter in SHOWN[name].params for option in parameter.opts}

    assert ("--wait" in options) != (name in DONE_AT_ONCE)


def test_hidden_commands_are_old_names() -> None:
    assert {name for name, command in COMMANDS.items() if command.hidden} == set(OLD)


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_warns_and_does_the_same(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TRELLIS_TOKEN", "t")
    arguments, verb = OLD[old]
    group = old.rpartition(" ")[0]

    before = RUNNER.invoke(app, [*old.split(), *arguments.split()])
    now = RUNNER.invoke(app, [*group.split(), verb, *arguments.split()])

    warning, *rest = before.stderr.splitlines()
    assert warning.endswith(f"{old}' is deprecated; use '{warning.split(chr(39))[3]}'")
    assert warning.split("'")[3].endswith(f"{group} {verb}")
    assert rest == now.stderr.splitlines()
    assert (before.exit_code, str(before.exception)) == (now.exit_code, str(now.exception))
    assert [each.name for each in COMMANDS[old].params] == [
        each.name for each in COMMANDS[f"{group} {verb}"].params
    ]


def test_hidden_groups_are_old_names() -> None:
    hidden = {name for name, each in ROOT.commands.items() if hasattr(each, "commands") and each.hidden}

    assert hidden == set(OLD_GROUPS)


@pytest.mark.parametrize("old", OLD_GROUPS)
def test_an_old_group_warns_and_has_the_same_commands(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TRELLIS_TOKEN", "t")
    now = OLD_GROUPS[old]

    warning, *before = RUNNER.invoke(app, [old, "show", "x"]).stderr.splitlines()
    help_text = RUNNER.invoke(app, [old, "--help"]).stdout

    assert warning == f"warning: '{_root()} {old}' is deprecated; use '{_root()} {now}'"
    assert before == RUNNER.invoke(app, [now, "show", "x"]).stderr.splitlines()
    assert f"Deprecated; use 'trellis {now}'" in help_text
    assert list(ROOT.commands[old].commands) == list(ROOT.commands[now].commands)


def test_two_old_names_at_once_lead_to_the_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TRELLIS_TOKEN", "t")

    told = RUNNER.invoke(app, ["eval", "cancel", "x"]).stderr.splitlines()

    assert told[0].endswith(f"use '{_root()} evaluations'")
    assert told[1].endswith(f"use '{_root()} evaluations stop'")


def _root() -> str:
    """The program's name as the runner of commands gives it."""
    return str(RUNNER.get_default_prog_name(ROOT))


def test_a_data_pipeline_run_is_stopped_and_resumed_by_its_pipelines_name(
    platform: LightPlatform, tmp_path: Path
) -> None:
    file = tmp_path / "clean.yaml"
    file.write_text("name: verbs\nsteps: [{operator: length, params: {unit: characters, minimum: 1}}]\n")
    submitted = trellis(
        platform, "pipelines", "submit", str(file), "--dataset", "addition", "--no-wait", "--json"
    )
    assert submitted.returncode == 0, submitted.stderr

    stopped = trellis(platform, "pipelines", "stop", "verbs", "--wait", "--json")
    again = trellis(platform, "pipelines", "stop", "verbs")
    resumed = trellis(platform, "pipelines", "resume", "verbs", "--no-wait", "--json")

    run = json.loads(submitted.stdout)["task"]["id"]
    assert json.loads(stopped.stdout)["state"] == "cancelled", stopped.stderr
    assert (again.returncode, "no such run of 'verbs'" in again.stderr) == (ExitCode.REFUSED, True)
    assert (
        json.loads(resumed.stdout)["task"] | {"id": run, "state": "queued"}
        == json.loads(resumed.stdout)["task"]
    )
    platform.client.post(f"/data-tasks/{run}/cancel")


def test_a_saved_pipeline_is_deleted_by_its_name(platform: LightPlatform, tmp_path: Path) -> None:
    file = tmp_path / "kept.yaml"
    file.write_text("name: kept\nsteps: [{operator: length, params: {unit: characters, minimum: 1}}]\n")
    assert trellis(platform, "pipelines", "save", str(file)).returncode == 0

    deleted = trellis(platform, "pipelines", "delete", "kept")
    unknown = trellis(platform, "pipelines", "delete", "kept")

    assert (deleted.returncode, deleted.stderr) == (0, "")
    assert "no pipeline named 'kept'" in unknown.stderr


def test_a_reward_file_is_shown_and_deleted_by_its_name(platform: LightPlatform, tmp_path: Path) -> None:
    file = tmp_path / "short.py"
    file.write_text("def score(prompt, response, answer, row):\n    return 1.0\n")
    uploaded = trellis(platform, "rewards", "files", "upload", str(file))

    shown = trellis(platform, "rewards", "files", "show", "short")
    deleted = trellis(platform, "rewards", "files", "delete", "short")

    assert uploaded.returncode == 0, uploaded.stderr
    assert shown.stdout.strip() == file.read_text().strip()
    assert (deleted.returncode, deleted.stderr) == (0, "")


def test_a_transfer_is_stopped_by_its_models_name(platform: LightPlatform) -> None:
    started = trellis(platform, "models", "gguf", "starter", "--no-wait", "--json")
    assert started.returncode == 0, started.stderr

    stopped = trellis(platform, "transfers", "stop", "starter", "--wait", "--json")
    deleted = trellis(platform, "transfers", "delete", "starter")

    found = json.loads(stopped.stdout)
    assert (found["id"], found["state"]) == (json.loads(started.stdout)["id"], "cancelled")
    assert (deleted.returncode, deleted.stderr) == (0, "")


def test_an_evaluation_that_waits_for_its_slot_is_stopped_with_wait(platform: LightPlatform) -> None:
    rows = ["--model", "starter", "--benchmarks", "gsm8k", "--name", "verbs"]
    assert trellis(platform, "evaluations", "submit", *rows).returncode == 0

    stopped = trellis(platform, "evaluations", "stop", "verbs", "--wait", "--json")

    assert json.loads(stopped.stdout)["state"] == "stopped", stopped.stderr
