"""The commands as scripts use them, against a real API process: output, JSON and exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import ExitCode
from trellis_cli.forecast import describe_forecast
from trellis_cli.job_comparison import describe_difference, describe_pair
from trellis_cli.job_requests import Choice, make_request
from trellis_testing.commands import trellis
from trellis_tools.bench import api as api_benchmarks
from trellis_tools.bench.light_platform import LightPlatform


@pytest.fixture
def job(platform: LightPlatform) -> dict[str, Any]:
    created: dict[str, Any] = platform.client.post("/jobs", platform.job_request())
    return created


def test_a_job_is_submitted_from_yaml_on_stdin(platform: LightPlatform) -> None:
    request = (
        "name: from yaml\nrecipe: grpo\npreset: cpu-tiny\n"
        f"model: {platform.model}\ndataset: {platform.dataset}\n"
    )

    done = trellis(platform, "jobs", "submit", "-f", "-", "--json", stdin=request)

    created = json.loads(done.stdout)
    assert done.returncode == 0
    assert created["state"] == "queued"
    assert platform.client.get(f"/jobs/{created['id']}")["name"] == "from yaml"


def test_an_unknown_parameter_is_refused_with_the_nearest_one(platform: LightPlatform) -> None:
    request = json.dumps(platform.job_request(params={"learning_rat": 0.001}))

    done = trellis(platform, "jobs", "submit", "-f", "-", stdin=request)

    assert done.returncode == 4
    assert "learning_rat" in done.stderr
    assert "learning_rate" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_submission_prints_the_warnings_of_its_preview_on_stderr(platform: LightPlatform) -> None:
    request = json.dumps(platform.job_request(params={"lora_rank": 8}))

    done = trellis(platform, "jobs", "submit", "-f", "-", "--json", stdin=request)

    assert done.returncode == 0
    assert json.loads(done.stdout)["state"] == "queued"
    assert "warning: params.lora_rank: Checkpoints contain an adapter." in done.stderr


def test_columns_are_named_on_the_command_line(platform: LightPlatform) -> None:
    request = json.dumps(platform.job_request())
    choice = ("--column", "prompt=no_such_column", "--data-format", "prompt-answer")

    refused = trellis(platform, "jobs", "submit", "-f", "-", *choice, stdin=request)
    seen = trellis(platform, "jobs", "preview", "-f", "-", *choice, stdin=request)
    malformed = trellis(platform, "jobs", "submit", "-f", "-", "--column", "prompt", stdin=request)

    assert refused.returncode != 0
    assert "no_such_column" in refused.stderr
    assert "The dataset has no column no_such_column" in seen.stderr
    assert "try: --data-format prompt-answer --column prompt=" in seen.stderr
    assert "ROLE=COLUMN" in malformed.stderr


def test_a_preview_prints_the_command_and_launches_nothing(platform: LightPlatform) -> None:
    before = len(list(platform.client.pages("/jobs")))

    done = trellis(platform, "jobs", "preview", "-f", "-", stdin=json.dumps(platform.job_request()))

    assert done.returncode == 0
    assert "verl.trainer.main_ppo" in done.stdout
    assert "no comparable run has been measured here" in done.stderr
    assert "start: " in done.stderr
    assert len(list(platform.client.pages("/jobs"))) == before


def test_a_dry_run_shows_resolved_parameters_and_launches_nothing(platform: LightPlatform) -> None:
    before = len(list(platform.client.pages("/jobs")))
    request = json.dumps(platform.job_request(params={"lora_rank": 8}))

    done = trellis(platform, "jobs", "submit", "-f", "-", "--dry-run", "--wait", stdin=request)
    as_json = trellis(platform, "jobs", "submit", "-f", "-", "--dry-run", "--json", stdin=request)

    composed = json.loads(as_json.stdout)
    parameters = {line.split()[0]: line.split()[1:] for line in done.stderr.splitlines() if line.strip()}
    assert done.returncode == as_json.returncode == 0
    assert parameters["lora_rank"] == ["8", "request"]
    assert parameters["learning_rate"][0] == str(composed["params"]["learning_rate"])
    assert "memory: about" in done.stderr
    assert "no comparable run has been measured here" in done.stderr
    assert "verl.trainer.main_ppo" in done.stdout
    assert composed["params"]["lora_rank"] == 8
    assert len(list(platform.client.pages("/jobs"))) == before


def test_a_dry_run_of_a_job_that_cannot_run_lists_its_errors(platform: LightPlatform) -> None:
    request = json.dumps(platform.job_request(params={"learning_rat": 0.001}))

    done = trellis(platform, "jobs", "submit", "-f", "-", "--dry-run", stdin=request)
    as_json = trellis(platform, "jobs", "submit", "-f", "-", "--dry-run", "--json", stdin=request)

    assert done.returncode == as_json.returncode == ExitCode.REFUSED
    assert "error: params.learning_rat: " in done.stderr
    assert [each["field"] for each in json.loads(as_json.stdout)["errors"]] == ["params.learning_rat"]


def test_metrics_go_to_a_wandb_project_of_the_command_line(platform: LightPlatform) -> None:
    request = json.dumps(platform.job_request(report_to={"wandb": {"project": "old", "tags": ["a"]}}))

    refused = trellis(
        platform, "jobs", "submit", "-f", "-", "--report-to", "wandb:team/sums", "--json", stdin=request
    )
    seen = trellis(platform, "jobs", "preview", "-f", "-", "--report-to", "wandb:sums", stdin=request)
    malformed = trellis(platform, "jobs", "submit", "-f", "-", "--report-to", "sums", stdin=request)

    # The platform of this test has no key.
    assert refused.returncode == seen.returncode == ExitCode.REFUSED
    assert "TRELLIS_WANDB_API_KEY" in refused.stderr
    assert "report_to.wandb: Weights & Biases isn't set up" in seen.stderr
    assert malformed.returncode == ExitCode.USAGE
    assert "wandb:PROJECT or wandb:TEAM/PROJECT" in malformed.stderr


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("wandb:sums", {"project": "sums", "tags": ["a"]}),
        ("wandb:team/sums", {"project": "sums", "entity": "team", "tags": ["a"]}),
    ],
)
def test_the_option_goes_before_the_file(tmp_path: Path, option: str, expected: dict[str, Any]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("report_to: {wandb: {project: old, tags: [a]}}\n")

    request = make_request(file, Choice(report_to=option))

    assert request["report_to"] == {"wandb": expected}


def test_a_forecast_says_time_start_and_disk() -> None:
    time = {
        "seconds": 720.0, "low_s": 600.0, "high_s": 900.0, "step_s": 6.0, "rows_per_s": 5.0,
        "slot_hours": 0.2, "cost": {"amount": 1.5, "currency": "EUR"},
        "runs": ["job_a", "job_b", "job_c"], "is_same_data": True, "basis": "similar_runs",
    }  # fmt: skip
    disk = {"checkpoint_bytes": 2**20, "checkpoints": 3, "total_bytes": 3 * 2**20}
    start = {"seconds": None, "jobs_ahead": 1, "unknown": "first"}

    told = describe_forecast({"steps": 120, "time": time, "start": start, "disk": disk})

    assert told == [
        "time: about 12m for 120 steps (10m to 15m) from 3 similar runs; 0.20 slot-hours, about 1.50 EUR",
        "start: unknown; first has no estimate",
        "disk: 3.0 MiB (3 checkpoints of 1.0 MiB)",
    ]
    assert describe_forecast(None) == []


def test_a_forecast_says_what_its_time_is_based_on() -> None:
    time = {
        "seconds": 720.0, "low_s": 600.0, "high_s": 900.0, "step_s": 6.0, "rows_per_s": 5.0, "cost": None,
        "slot_hours": 0.2, "runs": ["job_a"], "is_same_data": False, "basis": "scaled_runs",
        "scaled_from_parameters": 134_515_008,
    }  # fmt: skip
    arithmetic = {
        **time, "runs": [], "basis": "arithmetic", "step_flops": 3.3e12, "machine_flops": 1.2e11,
    }  # fmt: skip
    rest = {"steps": 120, "start": {"seconds": 0, "jobs_ahead": 0, "unknown": None}, "disk": None}

    scaled, calculated, unknown = (
        describe_forecast({**rest, "time": each})[0] for each in (time, arithmetic, None)
    )

    assert "from 1 run of a model with 135M parameters, scaled by size on other datasets" in scaled
    assert "3.30 TFLOP per step at 120 GFLOP/s, this machine's measured speed" in calculated
    assert unknown == "time: unknown for 120 steps; no comparable run has been measured here"


def test_jobs_are_listed_as_json_and_as_a_table(platform: LightPlatform, job: dict[str, Any]) -> None:
    as_json = trellis(platform, "jobs", "list", "--json")
    as_table = trellis(platform, "jobs", "list", "--state", "queued")

    assert job["id"] in [each["id"] for each in json.loads(as_json.stdout)]
    assert job["id"] in as_table.stdout


def test_jobs_are_renamed_annotated_and_starred(platform: LightPlatform, job: dict[str, Any]) -> None:
    edited = trellis(
        platform, "jobs", "edit", job["id"], "--name", "best so far", "--notes-file", "-", "--tag", "maths",
        "--star", stdin="# Why\n",
    )  # fmt: skip
    listed = trellis(platform, "jobs", "list", "--starred", "--sort", "name", "--text", "math")
    nothing = trellis(platform, "jobs", "edit", job["id"])

    found = platform.client.get(f"/jobs/{job['id']}")
    assert edited.returncode == 0, edited.stderr
    assert (found["name"], found["notes"], found["tags"]) == ("best so far", "# Why\n", ["maths"])
    assert "★ best so far" in listed.stdout
    assert (nothing.returncode, "nothing to change" in nothing.stderr) == (2, True)


def test_jobs_are_compared_by_their_settings(platform: LightPlatform) -> None:
    rates = [1e-4, 2e-4]
    ids = [
        platform.client.post(
            "/jobs", platform.job_request(name=f"rate {rate}", params={"learning_rate": rate})
        )["id"]
        for rate in rates
    ]

    table = trellis(platform, "jobs", "compare", *ids)
    as_json = trellis(platform, "jobs", "compare", *ids, "--baseline", ids[1], "--json")
    alone = trellis(platform, "jobs", "compare", ids[0], ids[0])

    assert table.returncode == 0, table.stderr
    assert "params.learning_rate" in table.stdout
    assert "0.0001" in table.stdout
    assert "0.0002" in table.stdout
    assert json.loads(as_json.stdout)["baseline"] == ids[1]
    assert alone.returncode == 2


def test_a_paired_comparison_is_said_in_words() -> None:
    compared = {
        "label": "gsm8k", "difference": 0.25, "p_value": 0.01, "test": "mcnemar_exact", "pairs": 40,
        "obstacle": None, "differences": [],
    }  # fmt: skip

    def describe(p_adjusted: float | None, **changes: Any) -> str:
        return describe_pair("new", "old", {"comparison": {**compared, **changes}, "p_adjusted": p_adjusted})

    assert "new scores higher than old by 0.25 (p = 0.01, mcnemar" in describe(0.01)
    assert "no clear difference" in describe(0.3)
    assert "(+0.25; p = 0.3 by Holm's method, mcnemar_exact" in describe(0.3)
    assert describe(0.01, differences=["engine.dtype"]).endswith("Not measured alike: engine.dtype.")
    said = describe(None, p_value=None, obstacle="other_data")
    assert "cannot be compared problem by problem (other_data)" in said


def test_settings_are_called_better_or_worse_with_their_seeds() -> None:
    groups = [{"name": "A", "seed_count": 3}, {"name": "B", "seed_count": 3}, {"name": "C", "seed_count": 1}]
    seeds = {"metric": "reward", "mode": "max", "take": "last", "groups": groups, "baseline": 0}
    row = {
        "group": 1, "verdict": "better", "difference": 0.03, "low": 0.01, "high": 0.05, "p_value": 0.01,
        "p_adjusted": 0.01,
    }  # fmt: skip

    assert describe_difference(seeds, row) == (
        "B is better than A on reward (last, higher is better): +0.03, 95 % CI +0.01 to +0.05 (Welch's t), "
        "3 seeds each."
    )
    adjusted = describe_difference(seeds, {**row, "verdict": "unclear", "p_adjusted": 0.07})
    assert adjusted.startswith("No clear difference between B and A on reward")
    assert "p = 0.07 by Holm's method" in adjusted
    undirected = describe_difference({**seeds, "mode": None}, {**row, "verdict": "different"})
    assert undirected.startswith("B differs from A on reward (last): +0.03")
    few = {"group": 2, "verdict": "too_few_seeds", "difference": 0.03}
    assert "1 and 3 seeds: the difference may be chance; run 3 seeds" in describe_difference(seeds, few)


def test_a_queued_job_is_stopped_and_deleted(platform: LightPlatform, job: dict[str, Any]) -> None:
    stopped = trellis(platform, "jobs", "stop", job["id"])
    watched = trellis(platform, "jobs", "watch", job["id"])
    deleted = trellis(platform, "jobs", "delete", job["id"])
    shown = trellis(platform, "jobs", "show", job["id"])

    assert stopped.stdout.strip() == "stopped"
    assert watched.returncode == 1
    assert deleted.returncode == 0
    assert shown.returncode == 4


def test_commands_do_not_wait_for_what_they_do_not_need() -> None:
    """Importing tables or engines takes longer than most commands take to run."""
    program = "import sys, trellis_cli.main; print({'sqlalchemy', 'torch', 'ray'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_recipes_show_their_parameters(platform: LightPlatform) -> None:
    listed = json.loads(trellis(platform, "recipes", "list", "--json").stdout)
    shown = trellis(platform, "recipes", "show", "grpo").stdout

    assert {"sft", "grpo"} <= {each["id"] for each in listed}
    assert "group_size" in shown


def test_recipes_show_what_rows_must_hold(platform: LightPlatform) -> None:
    shown = trellis(platform, "recipes", "show", "kto").stdout

    labels = next(line for line in shown.splitlines() if " label " in line)
    assert " ".join(labels.split()) == "unpaired-preference label label text or number or boolean"


def test_recipes_whose_trainer_is_experimental_are_marked(platform: LightPlatform) -> None:
    lines = trellis(platform, "recipes", "list").stdout.splitlines()

    marked = {line.split()[0] for line in lines if "(experimental)" in line}
    assert marked == {"orpo", "simpo"}


def test_a_platform_that_is_away_has_an_exit_code_of_its_own(platform: LightPlatform) -> None:
    done = trellis(platform, "jobs", "list", TRELLIS_URL="http://127.0.0.1:9", TRELLIS_TOKEN="t")

    assert done.returncode == 3
    assert "can't reach" in done.stderr


def test_a_wrong_token_is_refused(platform: LightPlatform) -> None:
    done = trellis(platform, "jobs", "list", TRELLIS_URL=platform.client.url, TRELLIS_TOKEN="wrong")

    assert done.returncode == 4


def test_a_wrong_setting_is_named(platform: LightPlatform) -> None:
    done = trellis(platform, "status", TRELLIS_PORT="eighty")

    assert done.returncode == 2
    assert "TRELLIS_PORT" in done.stderr


def test_the_login_link_opens_a_session_once(platform: LightPlatform) -> None:
    import httpx

    link = trellis(platform, "login").stdout.strip()
    code = link.partition("code=")[2]
    login = f"{platform.client.url}/api/v1/auth/login"

    first = httpx.post(login, json={"code": code})
    second = httpx.post(login, json={"code": code})

    assert link.startswith(f"{platform.client.url}/login?code=")
    assert first.status_code == 200
    assert second.status_code == 401


@pytest.mark.parametrize("measure", [api_benchmarks.measure_post_jobs, api_benchmarks.measure_event])
def test_a_benchmark_measures_something_and_names_its_unit(platform: LightPlatform, measure: Any) -> None:
    result = measure(platform).as_json()

    assert set(result) == {"name", "ours", "theirs", "ratio", "unit"}
    assert result["ours"] > 0
    assert result["ratio"] == pytest.approx(result["ours"] / result["theirs"], abs=0.01)


def test_reward_files_are_added_listed_shown_and_removed(platform: LightPlatform, tmp_path: Path) -> None:
    file = tmp_path / "brevity.py"
    file.write_text("def score(prompt, response, answer, row):\n    return -len(response) / 100\n")

    added = json.loads(trellis(platform, "rewards", "files", "upload", str(file), "--json").stdout)
    listed = json.loads(trellis(platform, "rewards", "files", "list", "--json").stdout)
    shown = trellis(platform, "rewards", "files", "show", added["id"])
    removed = trellis(platform, "rewards", "files", "delete", added["id"])

    assert [each["name"] for each in listed] == ["brevity"]
    assert shown.stdout == file.read_text() + "\n"
    assert removed.returncode == 0
    assert json.loads(trellis(platform, "rewards", "files", "list", "--json").stdout) == []


def test_a_reward_is_shown_with_its_options(platform: LightPlatform) -> None:
    known = trellis(platform, "rewards", "show", "regex")
    unknown = trellis(platform, "rewards", "show", "regexx")

    assert "pattern" in known.stdout
    assert (unknown.returncode, "no reward named 'regexx'" in unknown.stderr) == (4, True)


def test_a_dry_run_of_a_wrong_mixture_is_refused_with_the_nearest_name(platform: LightPlatform) -> None:
    done = trellis(platform, "rewards", "dry-run", str(platform.dataset), "--reward", "maths")

    assert done.returncode == 4
    assert "did you mean math?" in done.stderr
