"""From SFT on worked sums to scores of its checkpoints, a comparison and a report, over the API."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.demo import starter as demo
from trellis_testing.benchmark_sets import FOLDER, GSM8K, MATH500, MMLU, needs_sets
from trellis_testing.waiting import wait_until

HUMANEVAL = {"test": FOLDER / "humaneval/HumanEval.jsonl.gz"}
pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(900),
    needs_sets(GSM8K, MATH500, MMLU, HUMANEVAL),
]
SHORT = {"max_tokens": 24}
ALL_FOUR = [
    {"benchmark": "gsm8k", "limit": 8, "decoding": SHORT},
    {"benchmark": "math500", "limit": 4, "decoding": SHORT},
    {"benchmark": "mmlu", "limit": 12},
    {"benchmark": "humaneval", "limit": 2, "decoding": SHORT},
]
LABELS = [each["benchmark"] for each in ALL_FOUR]
WATCHED = {"benchmark": "gsm8k", "label": "watched", "limit": 4, "decoding": {"max_tokens": 8}}
EVALUATION_TIMEOUT_S = 420


@pytest.fixture(scope="module")
def trained(running_platform: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """SFT on sums in the form of GSM8K, whose checkpoints are measured while it trains."""
    rig, folder = running_platform, tmp_path_factory.mktemp("sums")
    dataset = rig.upload(write_sums(folder / "sums.jsonl"), "sums like GSM8K")
    request = {
        "name": "SFT on sums",
        "recipe": "sft",
        "preset": demo.PRESET,
        "model": rig.starter()["model"],
        "dataset": dataset["id"],
        "params": {"total_steps": 4, "save_every": 2, "validate_every": 0},
        "evaluate": {"benchmarks": [WATCHED], "every_steps": 2, "at_end": True},
    }
    job = str(rig.client.post("/jobs", request)["id"])
    return dict(rig.wait_for_state(job, "succeeded"))


def write_sums(path: Path) -> Path:
    sums = [(a, b) for a in range(2, 18) for b in range(2, 18)]
    rows = [
        {"question": f"How much is {a} + {b}?", "answer": f"{a} + {b} = {a + b}\n#### {a + b}"}
        for a, b in sums
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def wait_for(rig: Any, evaluation: str) -> dict[str, Any]:
    """The evaluation once it has succeeded."""

    def look() -> dict[str, Any] | None:
        found = dict(rig.client.get(f"/evaluations/{evaluation}"))
        if found["state"] in ("failed", "crashed", "stopped"):
            pytest.fail(f"{found['name']} {found['state']}: {found['failure']}")
        return found if found["state"] == "succeeded" else None

    found = wait_until(look, EVALUATION_TIMEOUT_S, f"{evaluation} is done", pause_s=0.5)
    assert found is not None
    return found


def samples(rig: Any, evaluation: str, label: str) -> list[dict[str, Any]]:
    """All samples of a benchmark, without the time that they took."""
    page = rig.client.get(f"/evaluations/{evaluation}/samples", label=label, limit=50)
    assert page["next_cursor"] is None
    return [{key: value for key, value in each.items() if key != "seconds"} for each in page["items"]]


@pytest.fixture(scope="module")
def curve(running_platform: Any, trained: dict[str, Any]) -> dict[str, Any]:
    """The training's own scores, once both of its checkpoints are measured."""

    def look() -> Any:
        found = running_platform.client.get(f"/jobs/{trained['id']}/metrics", keys="eval/watched/strict")
        return next((each for each in found["series"] if each["steps"] == [2, 4]), None)

    return dict(wait_until(look, EVALUATION_TIMEOUT_S, "both checkpoints are measured", pause_s=0.5))


@pytest.fixture(scope="module")
def measured(
    running_platform: Any, trained: dict[str, Any], curve: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same checkpoint on all four benchmarks, twice; the end of a test ends whatever still runs."""
    rig = running_platform
    target = {"kind": "checkpoint", "job": trained["id"], "step": 4}
    asked = {"targets": [target], "benchmarks": ALL_FOUR, "seed": 5}
    first, again = (rig.client.post("/evaluations", asked)["items"][0]["id"] for _ in range(2))
    return wait_for(rig, first), wait_for(rig, again)


def test_all_four_benchmarks_give_the_same_scores_and_samples_twice(
    rig: Any, measured: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    first, again = measured
    results = {each["label"]: each for each in first["results"]}

    assert list(results) == LABELS
    for benchmark, result in zip(ALL_FOUR, first["results"], strict=True):
        assert result["problems"] == result["counts"]["total"] == benchmark["limit"]
        assert result["scores"][0]["metric"] == result["headline"]
        assert result["scores"][0]["low"] <= result["scores"][0]["value"] <= result["scores"][0]["high"]
        assert result["counts"]["failed"] == 0
    for label, repeated in zip(LABELS, again["results"], strict=True):
        for same in ("scores", "groups", "counts", "prompt_tokens", "output_tokens"):
            assert repeated[same] == results[label][same]
        assert samples(rig, first["id"], label) == samples(rig, again["id"], label)
    manifest = rig.client.get(f"/evaluations/{first['id']}/manifest")["manifest"]
    assert manifest == rig.client.get(f"/evaluations/{again['id']}/manifest")["manifest"] | {
        key: manifest[key] for key in ("evaluation_id", "made_at") if key in manifest
    }


def test_scores_of_checkpoints_stand_on_the_curves_of_the_training(
    rig: Any, trained: dict[str, Any], curve: dict[str, Any]
) -> None:
    found = list(rig.client.pages("/evaluations", job=trained["id"]))

    automatic = [each for each in found if each["trigger"] == "training"]
    assert sorted(each["target"]["step"] for each in automatic) == [2, 4]
    assert all(each["state"] == "succeeded" for each in automatic)
    assert all(0 <= value <= 1 for value in curve["values"])


def test_two_evaluations_are_compared_problem_by_problem(
    rig: Any, measured: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    first, again = measured

    found = rig.client.get("/evaluations/compare", ids=f"{first['id']},{again['id']}")["benchmarks"]

    compared = [each["others"][0]["comparison"] for each in found]
    assert [each["label"] for each in compared] == LABELS
    for each, asked in zip(compared, ALL_FOUR, strict=True):
        assert (each["obstacle"], each["difference"], each["pairs"]) == (None, 0, asked["limit"])
        assert (each["improved"], each["worsened"]) == (0, 0)


def test_a_report_has_all_three_files(rig: Any, measured: tuple[dict[str, Any], dict[str, Any]]) -> None:
    first, again = measured
    report = rig.client.post("/reports", {"name": "Sums", "evaluations": [first["id"], again["id"]]})

    def look() -> dict[str, Any] | None:
        found = dict(rig.client.get(f"/reports/{report['id']}"))
        assert found["state"] != "failed", found["state_reason"]
        return found if found["state"] == "ready" else None

    found = wait_until(look, 120, "the report is written", pause_s=0.5)
    assert found is not None

    assert found["problems"] == []
    assert sorted(each["format"] for each in found["files"]) == ["html", "md", "pdf"]
    starts = {"md": b"#", "html": b"<!doctype html>", "pdf": b"%PDF-"}
    for form, start in starts.items():
        file = rig.client.send("GET", f"/reports/{report['id']}/file", params={"format": form}).content
        assert file[: len(start)].lower() == start.lower()
