"""Environments are made whole and by seed, and their tools answer by hand as in an episode."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_contracts.agents import EnvironmentManifest
from trellis_contracts.environments import EXIT_BAD_REQUEST, MANIFEST_FILE, CallAnswer
from trellis_recipes.environment_plugins import find_plugins
from trellis_recipes.environments import check_parameters
from trellis_train.agents import environments
from trellis_train.agents.environments import BadRequest

SMALL = {"profiles": 120, "train": 12, "eval": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("environment") / "linksearch"
    environments.make("linksearch", path, SMALL)
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trellis_train.agents.environments", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_every_kind_of_the_platform_is_a_plug_in_that_can_make_and_call() -> None:
    plugins = find_plugins()

    assert plugins.problems == []
    assert set(plugins.kinds) == {"linksearch", "linksearch_database", "maths", "own_tools", "toolbox"}
    for plugin in plugins.kinds.values():
        module = importlib.import_module(plugin.module)
        assert callable(module.make)
        assert callable(module.call)


def test_the_same_parameters_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    again = environments.make("linksearch", tmp_path / "again", SMALL)
    other = environments.make("linksearch", tmp_path / "other", {**SMALL, "seed": 7})

    assert again == environments.read_manifest(folder)
    assert other.sha256 != again.sha256


def test_the_manifest_names_tools_counts_and_rows_of_both_splits(folder: Path) -> None:
    manifest = environments.read_manifest(folder)

    assert [tool.name for tool in manifest.tools if tool.ends_episode] == ["return_results"]
    assert manifest.counts == {"profiles": 120, "train_queries": 12, "eval_queries": 4}
    rows = {
        split: [json.loads(line) for line in (folder / file).read_text().splitlines()]
        for split, file in manifest.datasets.items()
    }
    assert {split: len(found) for split, found in rows.items()} == {"train": 12, "eval": 4}
    assert {row["extra_info"]["split"] for row in rows["eval"]} == {"eval"}
    assert MANIFEST_FILE not in manifest.sha256


def test_a_folder_is_an_environment_only_when_all_of_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments.make("linksearch", tmp_path / "e", SMALL)

    def die(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("trellis_train.agents.linksearch.environment._write_rows", die)
    with pytest.raises(OSError, match="disk"):
        environments.make("linksearch", tmp_path / "e", {**SMALL, "seed": 3})

    with pytest.raises(BadRequest, match=MANIFEST_FILE):
        environments.read_manifest(tmp_path / "e")


def test_a_tool_answers_with_rows_and_their_number(folder: Path) -> None:
    answer = environments.call(folder, "search_profile", {"sql": "SELECT name FROM profiles", "max_rows": 3})

    assert (answer.error, answer.result_count) == (None, 3)
    assert len(answer.result["rows"]) == 3


@pytest.mark.parametrize(
    ("sql", "code"),
    [("DROP TABLE profiles", "NOT_SELECT"), ("SELECT * FROM sqlite_master", "DENIED"), ("SELECT", "SYNTAX")],
)
def test_a_hostile_statement_gives_its_code_and_changes_nothing(folder: Path, sql: str, code: str) -> None:
    before = (folder / "profiles.db").read_bytes()

    answer = environments.call(folder, "search_profile", {"sql": sql})

    assert answer.error == code
    assert answer.result["error"]["code"] == code
    assert (folder / "profiles.db").read_bytes() == before


def test_the_tool_that_ends_an_episode_says_so(folder: Path) -> None:
    assert environments.call(folder, "return_results", {"results": ["ada"]}).ends_episode
    assert not environments.call(folder, "return_results", {"results": 3}).ends_episode


def test_the_commands_print_json_and_load_no_torch(folder: Path, tmp_path: Path) -> None:
    made = run("make", "linksearch", str(tmp_path / "e"), "--parameters", json.dumps(SMALL))
    called = run("call", str(folder), "read_profile", '{"linkedin_handle": "nobody"}')

    assert EnvironmentManifest.model_validate_json(made.stdout).counts["profiles"] == 120
    assert CallAnswer.model_validate_json(called.stdout).error == "NOT_FOUND"
    loaded = "import sys, trellis_train.agents.linksearch.environment; print('torch' in sys.modules)"
    checked = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert checked.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("make", "linksearch", "e", "--parameters", '{"profiles": 1}'), "at least 20"),
        (("make", "linksearch", "e", "--parameters", '{"people": 1}'), "no parameter 'people'"),
        (("make", "linksearch", "e", "--parameters", "[1]"), "JSON object"),
        (
            (
                "make",
                "linksearch",
                "e",
                "--parameters",
                '{"profiles": 20, "train": 5000, "most_constraints": 1}',
            ),
            "or generate more",
        ),
        (("make", "castle", "e"), "Unknown environment kind"),
        (("call", "nowhere", "search_profile", "{}"), "is not an environment"),
    ],
)
def test_bad_input_leaves_with_a_sentence(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    left = run(*arguments)

    assert left.returncode == EXIT_BAD_REQUEST
    assert said in left.stderr
    assert "Traceback" not in left.stderr


def test_parameters_get_their_defaults_and_every_fault_is_named() -> None:
    values, none = check_parameters("linksearch", {"seed": 3.0})
    _, issues = check_parameters("linksearch", {"profile": 3, "train": "many", "eval": 0})

    assert (values["seed"], values["profiles"], none) == (3, 2000, [])
    assert [(issue.field, issue.suggestion) for issue in issues] == [
        ("parameters.profile", "profiles"),
        ("parameters.train", None),
        ("parameters.eval", None),
    ]
