"""`trellis evaluations`, `benchmarks` and `reports` against a real API; what a run leaves is written down."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.installed import InstalledSource
from trellis_api.core.database import Database
from trellis_cli.errors import ExitCode
from trellis_testing.commands import trellis, trellis_process
from trellis_testing.measured_models import answer_problems, finish_evaluation
from trellis_testing.waiting import wait_until
from trellis_tools.bench.light_platform import LightPlatform


@pytest.fixture(scope="module")
def database(platform: LightPlatform) -> Iterator[Database]:
    opened = Database(platform.settings)
    with opened.write() as session:
        benchmarks.mark_ready(session, source=files_of("gsm8k"))
    yield opened
    opened.dispose()


def files_of(name: str) -> InstalledSource:
    """What the worker that brings files says of them."""
    return InstalledSource(
        name=name, origin="mirror", repo_id=f"test/{name}", revision="ab" * 20, sha256="cd" * 32,
        files={"test": ["test.jsonl"]}, rows={"test": 1319}, groups={}, size_bytes=2048,
        installed_at="2026-11-22T08:00:00+00:00",
    )  # fmt: skip


def run(platform: LightPlatform, *arguments: str) -> list[dict[str, Any]]:
    """The evaluations that `trellis evaluations submit` has made."""
    done = trellis(platform, "evaluations", "submit", "--model", "starter", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


@pytest.fixture(scope="module")
def finished(platform: LightPlatform, database: Database) -> list[str]:
    """Two evaluations that have succeeded: the second model is better."""
    ids = []
    for seed, skill in enumerate((0.3, 0.8)):
        evaluation = run(platform, "--benchmarks", "gsm8k", "--limit", "60", "--name", f"skill {seed}")[0]
        samples = {"gsm8k": answer_problems("gsm8k", 60, skill, seed=seed)}
        finish_evaluation(platform.settings, database, evaluation["id"], samples)
        ids.append(evaluation["id"])
    return ids


def test_the_catalogue_is_listed_and_files_are_asked_for(platform: LightPlatform, database: Database) -> None:
    listed = json.loads(trellis(platform, "benchmarks", "list", "--json").stdout)
    asked = json.loads(trellis(platform, "benchmarks", "install", "math500", "--no-wait", "--json").stdout)
    shown = json.loads(trellis(platform, "benchmarks", "show", "gsm8k").stdout)
    unknown = trellis(platform, "benchmarks", "show", "nonsense")

    assert {"gsm8k", "math", "math500", "mmlu", "humaneval"} <= {each["name"] for each in listed}
    assert asked["state"] == "pending"
    assert shown["state"] == "ready"
    assert unknown.returncode == ExitCode.REFUSED


def test_an_install_waits_and_tells_why_it_failed(platform: LightPlatform, database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(trellis_process, platform, "benchmarks", "install", "humaneval")
        state = lambda: platform.client.get("/benchmarks/humaneval")["state"]  # noqa: E731
        wait_until(lambda: state() == "pending", 60, "the command asks for the files")
        with database.write() as session:
            benchmarks.mark_failed(session, name="humaneval", reason="the hub is closed")
        done = running.result()

    assert done.returncode == ExitCode.FAILED
    assert "the hub is closed" in done.stderr


def test_settings_reach_every_benchmark(platform: LightPlatform, database: Database, tmp_path: Path) -> None:
    orders = tmp_path / "orders.yaml"
    orders.write_text(
        "- {benchmark: gsm8k, label: short, limit: 3, decoding: {max_tokens: 99}}\n"
        "- {benchmark: custom, dataset: " + platform.dataset + ", scorer: {kind: exact}}\n"
    )

    made = run(
        platform, *("--benchmarks", "gsm8k"), *("--file", str(orders)), *("--limit", "7"), *("--shots", "0"),
        *("--temperature", "0.5"), *("--seed", "4"), *("--priority", "-3"),
    )  # fmt: skip

    by_label = {order["label"]: order for order in made[0]["benchmarks"]}
    assert (made[0]["seed"], made[0]["priority"]) == (4, -3)
    assert {label: order["limit"] for label, order in by_label.items()} == {
        "gsm8k": 7,
        "short": 3,
        "custom": 7,
    }
    assert by_label["short"]["decoding"]["max_tokens"] == 99
    assert {order["decoding"]["temperature"] for order in by_label.values()} == {0.5}
    cancelled = trellis(platform, "evaluations", "cancel", made[0]["id"], "--json")
    assert json.loads(cancelled.stdout)["state"] == "stopped"


def test_what_would_be_measured_is_estimated(platform: LightPlatform, database: Database) -> None:
    asked = ("--model", "starter", "--benchmarks", "gsm8k", "--limit", "10", "--estimate")
    done = trellis(platform, "evaluations", "run", *asked)

    line = next(line for line in done.stdout.splitlines() if "gsm8k" in line)
    assert " 10 " in line
    assert "no data yet" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--benchmarks", "gsm8k"), "no model or checkpoint"),
        (("--model", "starter"), "no benchmark specified"),
        (("--checkpoint", "job_1", "--benchmarks", "gsm8k"), "invalid checkpoint"),
    ],
)
def test_what_is_missing_is_said(platform: LightPlatform, arguments: tuple[str, ...], said: str) -> None:
    done = trellis(platform, "evaluations", "run", *arguments)

    assert done.returncode == ExitCode.USAGE
    assert said in done.stderr


def test_the_platforms_refusal_is_told(platform: LightPlatform, database: Database) -> None:
    unknown = trellis(platform, "evaluations", "submit", "--model", "nobody", "--benchmarks", "gsm8k")
    wrong = trellis(platform, "evaluations", "submit", "--model", "starter", "--benchmarks", "gsm9k")

    assert unknown.returncode == ExitCode.REFUSED
    assert "no model named 'nobody'" in unknown.stderr
    assert wrong.returncode == ExitCode.REFUSED


def test_scores_are_shown_and_listed(platform: LightPlatform, finished: list[str]) -> None:
    shown = trellis(platform, "evaluations", "show", finished[1])
    listed = json.loads(
        trellis(
            platform, "evaluations", "list", "--model", "starter", "--state", "succeeded", "--json"
        ).stdout
    )
    table = trellis(platform, "evaluations", "list")
    manifest = json.loads(trellis(platform, "evaluations", "manifest", finished[0]).stdout)

    assert "strict" in shown.stdout
    assert "truncated" in shown.stdout
    assert [each["id"] for each in listed] == finished[::-1]
    assert finished[0] in table.stdout
    assert manifest["engine"]["name"] == "vllm"


def test_samples_are_filtered(platform: LightPlatform, finished: list[str]) -> None:
    a, b = finished

    changed = ("--against", a, "--changed", "better", "--limit", "5", "--json")
    better = trellis(platform, "evaluations", "samples", b, "gsm8k", *changed)
    chosen = ("--verdict", "truncated", "--group", "level=Level 5")
    cut = trellis(platform, "evaluations", "samples", a, "gsm8k", *chosen)
    found = trellis(platform, "evaluations", "samples", a, "gsm8k", "--search", "tulips", "--json")
    misspelt = trellis(platform, "evaluations", "samples", a, "gsm8k", "--group", "Level 5")

    rows = [json.loads(line) for line in better.stdout.splitlines()]
    assert len(rows) == 5
    assert {row["verdict"] for row in rows} == {"correct"}
    assert "correct" not in cut.stdout
    assert len(found.stdout.splitlines()) == 20
    assert misspelt.returncode == ExitCode.USAGE


def test_two_evaluations_are_compared(platform: LightPlatform, finished: list[str]) -> None:
    shown = trellis(platform, "evaluations", "compare", *finished)
    as_json = json.loads(trellis(platform, "evaluations", "compare", *finished, "--json").stdout)
    board = json.loads(trellis(platform, "evaluations", "leaderboard", "--json").stdout)
    matrix = trellis(platform, "evaluations", "matrix")
    history = trellis(platform, "evaluations", "history", "--model", "starter")
    neither = trellis(platform, "evaluations", "history")

    assert "mcnemar" in shown.stdout
    compared = as_json["benchmarks"][0]["others"][0]["comparison"]
    assert compared["improved"] > compared["worsened"]
    assert board["items"][0]["rank"] == 1
    assert "gsm8k" in matrix.stdout
    assert "starter" in matrix.stdout
    assert "strict" in history.stdout
    assert neither.returncode == ExitCode.USAGE


def test_waiting_ends_with_the_evaluation(platform: LightPlatform, database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = ("--model", "starter", "--benchmarks", "gsm8k", "--name", "awaited", "--wait")
        running = pool.submit(trellis_process, platform, "evaluations", "run", *asked)
        wait_until(lambda: find(platform, "awaited") or running.done(), 60, "the evaluation")
        evaluation = find(platform, "awaited")
        assert evaluation, running.result().stderr
        platform.client.post(f"/evaluations/{evaluation}/cancel")
        done = running.result()

    assert done.returncode == ExitCode.FAILED
    assert "awaited" in done.stderr
    assert "has stopped" in done.stderr


def find(platform: LightPlatform, name: str) -> str | None:
    items = platform.client.get("/evaluations")["items"]
    return next((str(each["id"]) for each in items if each["name"] == name), None)


def test_a_report_is_asked_for(platform: LightPlatform, finished: list[str]) -> None:
    wanted = ("--name", "Two skills", "--language", "zh", "--format", "html", "--no-wait", "--json")
    asked = trellis(platform, "reports", "create", *finished, *wanted)
    report = json.loads(asked.stdout)
    listed = trellis(platform, "reports", "list")
    early = trellis(platform, "reports", "download", report["id"], "--format", "html")

    assert (report["state"], report["formats"]) == ("pending", ["html"])
    assert "Two skills" in listed.stdout
    assert early.returncode == ExitCode.REFUSED
    assert trellis(platform, "reports", "delete", report["id"]).returncode == 0
