"""Up to six evaluations beside each other: corrected tests, what is not shared, and where they disagree."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

ALL, SOME, NONE = (1.0,) * 12, (1.0,) * 6 + (0.0,) * 6, (0.0,) * 12


@pytest.fixture
def measure(ask: Callable[..., Any], finish: Callable[..., None], install: Callable[..., None]) -> Any:
    """Ask for an evaluation and let it end with these scores; its id."""
    install("gsm8k", rows=12)
    install("math500", rows=12)

    def measure(scores: tuple[float, ...], *benchmarks: str, **changes: Any) -> str:
        orders = [{"benchmark": name} for name in benchmarks or ("gsm8k",)]
        evaluation_id: str = ask(*orders, **changes).json()["items"][0]["id"]
        finish(evaluation_id, scores=scores)
        return evaluation_id

    return measure


def compare(client: TestClient, *ids: str, path: str = "", **query: Any) -> Any:
    return client.get(f"/api/v1/evaluations/compare{path}", params={"ids": ",".join(ids), **query})


def test_p_values_are_corrected_for_the_number_of_comparisons(client: TestClient, measure: Any) -> None:
    baseline, better, middle = measure(NONE), measure(ALL), measure(SOME)

    (table,) = compare(client, baseline, better, middle).json()["benchmarks"]

    raw = [each["comparison"]["p_value"] for each in table["others"]]
    assert [each["evaluation_id"] for each in table["others"]] == [better, middle]
    assert raw == pytest.approx([2 / 2**12, 2 / 2**6])
    # Holm: the smallest times two, the next as it is.
    assert [each["p_adjusted"] for each in table["others"]] == pytest.approx([2 * raw[0], raw[1]])


def test_a_benchmark_is_compared_where_the_baseline_and_one_other_have_it(
    client: TestClient, measure: Any
) -> None:
    baseline = measure(SOME, "gsm8k", "math500")
    first, second = measure(ALL, "gsm8k"), measure(NONE, "gsm8k", "math500")

    found = compare(client, baseline, first, second).json()

    math = next(each for each in found["benchmarks"] if each["label"] == "math500")
    assert [each["label"] for each in found["benchmarks"]] == ["gsm8k", "math500"]
    assert [each["evaluation_id"] for each in math["others"]] == [second]
    assert (math["missing"], found["unshared"]) == ([first], [])


def test_evaluations_without_a_shared_benchmark_are_refused(client: TestClient, measure: Any) -> None:
    one, other = measure(SOME, "gsm8k"), measure(SOME, "math500")

    refused = compare(client, one, other)
    samples = compare(client, one, other, path="/samples", label="gsm8k")

    assert (refused.status_code, refused.json()["error"]) == (409, "no_shared_benchmark")
    assert refused.json()["details"] == {"benchmarks": {one: ["gsm8k"], other: ["math500"]}}
    assert samples.json()["error"] == "no_shared_benchmark"


@pytest.mark.parametrize("count", [0, 1, 7])
def test_two_to_six_can_be_compared(client: TestClient, count: int) -> None:
    refused = compare(client, *(f"ev_{letter * 12}" for letter in "abcdefg"[:count]))

    assert (refused.status_code, refused.json()["error"]) == (422, "invalid_evaluation_comparison")
    assert refused.json()["details"] == {"min": 2, "max": 6, "given": count}


def test_what_is_no_id_and_what_is_named_twice_is_refused(client: TestClient, measure: Any) -> None:
    known = measure(SOME)

    assert compare(client, known, "gsm8k").json()["error"] == "invalid_evaluation_comparison"
    assert compare(client, known, known).json()["details"]["given"] == 1


def test_samples_on_which_they_disagree_are_listed_with_every_answer(
    client: TestClient, measure: Any
) -> None:
    baseline, better, middle = measure(NONE), measure(ALL), measure(SOME)
    ids = (baseline, better, middle)

    page = compare(client, *ids, path="/samples", label="gsm8k", limit=5).json()
    rest = compare(client, *ids, path="/samples", label="gsm8k", cursor=page["next_cursor"]).json()

    assert (page["total"], len(page["items"]), len(rest["items"]), rest["next_cursor"]) == (12, 5, 7, None)
    answers = rest["items"][-1]["answers"]
    assert [(each["evaluation_id"], each["score"]) for each in answers] == [
        (baseline, 0.0), (better, 1.0), (middle, 0.0),
    ]  # fmt: skip
    assert page["items"][0]["prompt"]


def test_disagreements_are_filtered_by_direction_and_by_evaluation(client: TestClient, measure: Any) -> None:
    baseline, better, middle = measure(SOME), measure(ALL), measure(NONE)

    def count(**query: Any) -> int:
        found = compare(client, baseline, better, middle, path="/samples", label="gsm8k", **query).json()
        return int(found["total"])

    assert (count(), count(changed="better"), count(changed="worse")) == (12, 6, 6)
    assert (count(evaluation=better), count(evaluation=better, changed="worse")) == (6, 0)
    refused = compare(client, baseline, better, path="/samples", label="gsm8k", evaluation=middle)
    assert refused.json()["error"] == "invalid_evaluation_comparison"
    assert compare(client, baseline, better, path="/samples", label="gsm8k", cursor="x").status_code == 422
