"""`./init.sh proof`: which proofs run, how long they take, and how their figures are shown."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_recipes.catalogue import list_recipes
from trellis_tools import proof

ROW = {
    "recipe": "grpo",
    "measure": "mean reward",
    "control": 0.25,
    "trained": 0.5,
    "error": 0.02,
    "seconds": 95.0,
}
RECIPES = {recipe.id for recipe in list_recipes()}
OF_AGENTS = {name for name in RECIPES if name.startswith("agent_")} | {"linksearch", "tune"}
#: Stands in for pytest: its one proof is named after what it was told to prove, and measures the options.
STAND_IN = f"""
import json, os, sys, time
time.sleep(0.2)
row = {ROW!r} | {{"recipe": os.environ["TRELLIS_PROOF"], "measure": sys.argv[1:]}}
open(os.environ["TRELLIS_PROOF_REPORT"], "w").write(json.dumps(row))
"""
#: Collects the proofs and runs none; its last line says which recipes they are of.
LIST_PROVEN = """
import json, sys
import pytest

class Proofs:
    def pytest_collection_finish(self, session):
        from trellis_testing.proven import proven_by
        promises = [item for item in session.items if item.get_closest_marker("variant") is None]
        self.proven = set().union(*map(proven_by, promises))

proofs = Proofs()
code = pytest.main([sys.argv[1], "--collect-only", "--quiet", "-p", "no:cacheprovider"], plugins=[proofs])
print("\\n" + json.dumps(sorted(proofs.proven)))
sys.exit(code)
"""


def _list_proven(folder: str) -> set[str]:
    """The recipes that the proofs of a folder are of, without their variants."""
    scopeless = {name: value for name, value in os.environ.items() if name != proof.SCOPE_VARIABLE}

    listed = subprocess.run(
        [sys.executable, "-c", LIST_PROVEN, folder],
        cwd=REPOSITORY_ROOT,
        env=scopeless,
        capture_output=True,
        text=True,
        check=False,
    )

    assert listed.returncode == 0, listed.stdout + listed.stderr
    return set(json.loads(listed.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [proof.FOLDER, proof.PRETRAINED_FOLDER])
def test_every_recipe_has_a_proof(folder: str) -> None:
    assert _list_proven(folder) == RECIPES


def test_without_a_name_the_recipes_of_algorithms_are_proven() -> None:
    chosen = proof.choose_recipes([])

    assert {"sft", "ppo", "simpo"} <= set(chosen)
    assert set(chosen) == RECIPES - OF_AGENTS


def test_agents_are_proven_where_they_or_all_are_named() -> None:
    assert proof.choose_recipes(["linksearch", "grpo"]) == ["linksearch", "grpo"]
    assert proof.choose_recipes(["all"]) == proof.choose_recipes(["grpo", "all"]) == ["all"]


def test_a_recipe_without_a_proof_is_a_wrong_use() -> None:
    with pytest.raises(Problem) as raised:
        proof.run_proofs(["dpo", "grop"], as_json=True)

    assert raised.value.exit_code == ExitCode.USAGE
    assert "grop" in raised.value.message
    assert "dpo" not in raised.value.message


@pytest.mark.parametrize(("bound_s", "is_within"), [(600, True), (0, False)])
def test_the_whole_set_is_held_against_its_bound(
    bound_s: int, is_within: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "BOUND_S", bound_s)

    report = _prove([], monkeypatch, capfd)

    assert report["passed"] is True
    assert report["proofs"][0]["recipe"].split(",") == proof.choose_recipes([])
    assert report["proofs"][0]["measure"][-2:] == ["-m", "not variant"]
    assert 0.2 <= report["seconds"] < 600
    assert (report["bound_s"], report["is_within_bound"]) == (bound_s, is_within)


def test_some_recipes_have_no_bound(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    report = _prove(["sft", "dpo"], monkeypatch, capfd)

    assert report["proofs"][0]["recipe"] == "sft,dpo"
    assert "not variant" not in report["proofs"][0]["measure"]
    assert (report["bound_s"], report["is_within_bound"]) == (None, None)


def _prove(
    recipes: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    model: str | None = None,
) -> dict[str, Any]:
    """What the command prints as JSON, with the stand-in for pytest."""
    monkeypatch.setattr(proof, "python_command", lambda *said: [sys.executable, "-c", STAND_IN, *said])
    assert proof.run_proofs(recipes, model=model, as_json=True)
    report: dict[str, Any] = json.loads(capfd.readouterr().out)
    return report


def test_the_time_of_the_whole_set_is_said_with_its_bound() -> None:
    assert "30.0 min total" in proof.describe_time(1800, 2700)
    assert "within[/green] the limit of 45 min" in proof.describe_time(1800, 2700)
    assert "over[/red] the limit of 45 min" in proof.describe_time(2760, 2700)
    assert proof.describe_time(90, None) == "1.5 min total"


def test_the_table_shows_the_gain_over_the_control(capsys: pytest.CaptureFixture[str]) -> None:
    proof.print_proofs([ROW, {**ROW, "recipe": "sft", "error": None}])

    lines = capsys.readouterr().out.splitlines()
    assert "grpo" in lines[1]
    assert "+0.250 ± 0.020" in lines[1]
    assert "±" not in lines[2]


def test_the_report_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    assert proof.read_report(path) == []

    path.write_text("\n".join(json.dumps({**ROW, "recipe": name}) for name in ("b", "a")) + "\n")

    assert [row["recipe"] for row in proof.read_report(path)] == ["b", "a"]


def test_a_pretrained_model_has_its_own_proofs_and_no_bound_on_their_time() -> None:
    ours, starter = (
        proof.choose_tests("some-model", has_recipes=False),
        proof.choose_tests(None, has_recipes=False),
    )

    assert ours[0] == proof.PRETRAINED_FOLDER
    assert f"--ignore={proof.PRETRAINED_FOLDER}" in starter


def test_a_recipe_of_agents_may_be_named_with_a_pretrained_model(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    report = _prove(["tune"], monkeypatch, capfd, model="some-model")

    assert report["proofs"][0]["recipe"] == "tune"
    assert report["proofs"][0]["measure"][2] == proof.PRETRAINED_FOLDER
