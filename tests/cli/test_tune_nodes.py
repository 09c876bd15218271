"""`trellis tune run` on several nodes: the run that is composed, and the cluster that it needs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from trellis_cli.errors import Problem
from trellis_cli.local_job import write_spec
from trellis_cli.tune import join_cluster, make_job


def make_plan(folder: Path, nodes: int) -> dict[str, object]:
    rows = folder / "rows.jsonl"
    rows.write_text('{"question": "1+1?", "answer": "2"}\n' * 64)
    return {
        "folder": str(folder / "run"),
        "recipe": "tune",
        "model": str(folder),
        "train": {
            "path": str(rows),
            "columns": {"prompt": "question", "answer": "answer"},
            "format": "prompt-answer",
        },
        "validation": None,
        "params": {"validation_rows": 0, "batch_size": 32, "mini_batch_size": 32},
        "overrides": {},
        "environments": {},
        "auxiliary_models": {},
        "seed": 1,
        "gpus": 8 * nodes,
        "nodes": nodes,
    }


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_of_the_configuration_are_nodes_of_the_run(tmp_path: Path, nodes: int) -> None:
    workflow = tmp_path / "workflow.py"
    workflow.write_text("async def workflow(task, model):\n    return 1.0\n")
    job = make_job(make_plan(tmp_path, nodes), str(workflow))

    spec = write_spec(replace(job, platform="cuda"))

    assert (spec.gpus, job.nodes) == (8 * nodes, nodes)
    assert {f"trainer.nnodes={nodes}", "trainer.n_gpus_per_node=8"} <= set(spec.engine_overrides)


def test_several_nodes_need_a_cluster_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    with pytest.raises(Problem, match=r"cluster\.node_num is 2") as caught:
        join_cluster(2, "cuda")
    assert "RAY_ADDRESS" in (caught.value.hint or "")

    assert join_cluster(1, "cuda") == join_cluster(2, "cpu") == {}

    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert join_cluster(2, "cuda") == {"RAY_ADDRESS": "head:6379", "RAY_AUTH_MODE": "disabled"}
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t")
    assert join_cluster(2, "cuda")["RAY_AUTH_TOKEN"] == "t"
