"""A platform with something of every kind on it, for tests that look at all views."""

import json
import math
import random
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_cli.client import ApiClient
from trellis_cli.waiting import wait_for_dataset, wait_for_task

from trellis_testing.agent_work import answered_episode, carrying_out_agent_work, episode, lost_episode
from trellis_testing.measured_models import answer_problems, finish_evaluation, install_benchmark
from trellis_testing.model_folders import write_model_folder
from trellis_testing.reporting_jobs import ReportingJob, now
from trellis_testing.sweeps import METRIC, SweepRig
from trellis_testing.waiting import wait_until

PATIENCE_S = 120.0
PROBLEMS = 60
STEPS = [
    {"operator": "normalise_text"},
    {"operator": "length", "params": {"unit": "characters", "minimum": 4}},
    {"operator": "minhash_duplicates"},
    {"operator": "split"},
]
REWARD = "def score(prompt, response, answer, row):\n    return float(answer in response)\n"
WORKFLOW = "async def solve(task, model):\n    return 1.0\n"


@dataclass
class FilledPlatform:
    """Fills an empty platform through its API, and knows where everything is."""

    api: ApiClient
    settings: Settings
    database: Database
    #: What is seen there -> path.
    views: dict[str, str] = field(default_factory=dict)
    #: What a job is launched with.
    launches: dict[str, str] = field(default_factory=dict)

    def fill(self) -> None:
        """Fill the platform with data, jobs, evaluations and related objects."""
        model, dataset = self.add_model("tiny-instruct"), self.add_dataset()
        self.launches = {"model": model, "dataset": dataset, "recipe": "grpo", "preset": "cpu-tiny"}
        self.work_on_data(dataset)
        self.add_jobs()
        self.add_sweep()
        self.add_workflow_of_jobs()
        self.add_environment()
        self.measure_models()
        self.add_code()
        self.views |= {
            "overview": "/",
            "jobs": "/jobs",
            "job queue": "/jobs/queue",
            "recipes": "/jobs/new?recipe=",
            "launch form": f"/jobs/new?recipe=grpo&model={model}&dataset={dataset}",
            "sweeps": "/sweeps",
            "workflows": "/job-pipelines",
            "workflow form": "/job-pipelines/new",
            "datasets": "/datasets",
            "data pipelines": "/pipelines",
            "data pipeline runs": "/pipelines?tab=runs",
            "models": "/models",
            "registry": "/registry",
            "playground": "/playground",
            "help": "/help",
            "help on jobs": "/help/recipes",
        }

    def add_model(self, name: str) -> str:
        """Add a model of ten thousand parameters and return its id."""
        write_model_folder(self.settings.data_root / "models" / name)
        source = {"kind": "local", "path": f"models/{name}"}
        return str(self.api.post("/models", {"name": name, "source": source})["id"])

    def add_dataset(self) -> str:
        """Add sums, some of them twice, and lines that are not rows; return the dataset's id."""
        rows = [{"question": f"What is {n} + {n + 1}?", "answer": f"#### {2 * n + 1}"} for n in range(200)]
        file = self.settings.data_root / "grade-school-sums.jsonl"
        file.write_text("\n".join(["no JSON", *map(json.dumps, [*rows, *rows[:12]])]))
        made = self.api.upload("/datasets", file, {"name": "grade school sums"})
        wait_for_dataset(self.api, made["id"], timeout_s=PATIENCE_S)
        return str(made["id"])

    def work_on_data(self, dataset: str) -> None:
        """Add a saved pipeline, its run and a version from it, quality scores and duplicates."""
        pipeline = {"name": "Clean sums", "description": "Normalize, deduplicate, split.", "seed": 0}
        saved = self.api.post("/pipelines", {"pipeline": {**pipeline, "steps": STEPS}})
        runs = {
            "pipeline": (STEPS, {"kind": "version", "branch": "main", "message": "cleaned"}),
            "quality": ([{"operator": "quality"}], {"kind": "none"}),
            "duplicates": (STEPS[2:3], {"kind": "none"}),
        }
        for purpose, (steps, output) in runs.items():
            body = {
                "pipeline": {**pipeline, "steps": steps},
                "dataset": dataset,
                "purpose": purpose,
                "output": output,
            }
            task = self.api.post("/pipelines/runs", body)["task"]["id"]
            wait_for_task(self.api, task, timeout_s=PATIENCE_S)
            if purpose == "pipeline":
                self.views["data pipeline run"] = f"/pipelines/runs/{task}"
        for tab in ("sample", "statistics", "quality", "duplicates", "versions", "lineage", "quarantine"):
            self.views[f"dataset, {tab}"] = f"/datasets/{dataset}?tab={tab}"
        self.views["data pipeline editor"] = f"/pipelines/{saved['id']}?dataset={dataset}"

    def add_jobs(self) -> None:
        """Add jobs: one training, one of agents, one succeeded, one failed, and some waiting."""
        running = self._launch("GRPO on grade school sums, learning rate 1e-6, group size 8", tags=["sums"])
        self._train(running, 60, 0.9)
        running.send(_rollouts(50))
        self._save_checkpoints(running, (20, 40, 60))
        succeeded = self._launch("GRPO baseline", tags=["sums", "baseline"], params={"learning_rate": 2e-6})
        self._train(succeeded, 60, 0.6)
        self._save_checkpoints(succeeded, (60,))
        succeeded.settle("succeeded")
        failed = self._launch("GRPO with a large group", params={"group_size": 16})
        self._train(failed, 7, 0.2)
        failed.send({"kind": "log", "time": now(), "stream": "stderr", "lines": ["CUDA out of memory."] * 4})
        failed.settle("failed", reason="The GPU ran out of memory at step 8.", cause="out_of_memory")
        agent = self._launch("search agent", tags=["agents"])
        rollouts = [
            episode("one", 2.1, answered_episode(), outcome=1.5, process=0.3, penalty=-0.15),
            episode("one", -0.6, lost_episode(), outcome=-0.6),
        ]
        agent.send({"kind": "rollouts", "time": now(), "step": 5, "split": "train", "rollouts": rollouts})
        sick = {"kind": "metrics", "time": now(), "step": 6, "values": {"actor/pg_loss": "NaN"}}
        agent.send(sick)
        for name in ("next: lower learning rate", "next: longer responses", "next: no KL loss"):
            self.api.post("/jobs", {"name": name, **self.launches})

        tabs = (
            *("charts", "logs", "rollouts", "time", "system"),
            *("checkpoints", "configuration", "manifest"),
        )
        for tab in tabs:
            self.views[f"job, {tab}"] = f"/jobs/{running.id}?tab={tab}"
        self.views["job that failed"] = f"/jobs/{failed.id}"
        self.views["job that succeeded"] = f"/jobs/{succeeded.id}"
        self.views["job of agents, episodes"] = f"/jobs/{agent.id}?tab=rollouts"
        for tab in ("charts", "settings", "metrics", "parameters", "evaluations"):
            ids = f"{running.id},{succeeded.id},{failed.id}"
            self.views[f"comparison of jobs, {tab}"] = f"/jobs/compare?ids={ids}&tab={tab}"

    def _launch(self, name: str, **more: Any) -> ReportingJob:
        made = self.api.post("/jobs", {"name": name, **self.launches, **more})
        job = ReportingJob(made["id"], self.api.url, self.database)
        job.start()
        return job

    def _train(self, job: ReportingJob, steps: int, goal: float) -> None:
        """Send noisy curves that rise to a goal, in one batch, with ten seconds per step."""
        draw, begins = random.Random(job.id), datetime.now(UTC) - timedelta(seconds=10 * steps)
        events: list[dict[str, Any]] = []
        for step in range(1, steps + 1):
            score = goal * (1 - math.exp(-step / 25)) + draw.gauss(0, 0.03)
            values = {
                "critic/score/mean": score,
                "actor/entropy": 1.2 - score + draw.gauss(0, 0.02),
                "actor/pg_clipfrac": 0.02 * draw.random(),
                "actor/grad_norm": 0.4 + draw.random(),
                "response_length/mean": 180 + 60 * score,
                "timing_s/step": 9 + draw.random(),
                "timing_s/gen": 5 + draw.random(),
                "timing_s/update_actor": 3.0,
            }
            if step % 10 == 0:
                values["val-core/sums/acc/mean@1"] = score
            at = (begins + timedelta(seconds=10 * step)).isoformat()
            events += [
                {"kind": "metrics", "time": at, "step": step, "values": values},
                {"kind": "log", "time": at, "stream": "stdout", "lines": [f"step:{step} score:{score:.3f}"]},
            ]
        progress = {"phase": "training", "step": steps, "total_steps": 100}
        job.send(*events, {"kind": "progress", "time": now(), **progress})
        job.step = steps

    def _save_checkpoints(self, job: ReportingJob, steps: tuple[int, ...]) -> None:
        for step in steps:
            folder = self.settings.data_root / "jobs" / job.id / "checkpoints" / f"global_step_{step}"
            weights = folder / "actor" / "huggingface"
            shutil.copytree(self.settings.data_root / "models" / "tiny-instruct", weights)
            saved = {"path": str(folder), "hf_path": str(weights), "size_bytes": 9_000_000}
            job.send({"kind": "checkpoint", "time": now(), "step": step, **saved})

    def add_sweep(self) -> None:
        """Add a sweep of twelve finished runs over two parameters."""
        rig = SweepRig(self.database, self.settings)
        body = {
            "name": "learning rate and clip ratio",
            "job": self.launches,
            "parameters": {
                "learning_rate": {"min": 1e-6, "max": 1e-4, "scale": "log", "count": 4},
                "clip_ratio": {"values": [0.1, 0.2, 0.3]},
            },
            "search": {"method": "grid"},
            "objective": {"metric": METRIC},
            "parallel": 1,
        }
        sweep = str(self.api.post("/sweeps", body)["id"])
        rig.run_through(sweep, lambda run: abs(math.log10(run.values["learning_rate"]) + 5))
        self.views["sweep"] = f"/sweeps/{sweep}"

    def add_workflow_of_jobs(self) -> None:
        """Add two trainings, one after the other, that are not started."""
        common = {key: self.launches[key] for key in ("recipe", "dataset", "preset")}
        stages = [
            {"id": "first", "title": "First steps", "model": {"base": self.launches["model"]}, **common},
            {"id": "second", "title": "Further steps", "model": {"stage": "first"}, **common},
        ]
        made = self.api.post("/job-pipelines", {"name": "In two steps", "stages": stages, "start": False})
        self.views["workflow"] = f"/job-pipelines/{made['id']}"

    def add_environment(self) -> None:
        """Add an environment that searches sixty profiles."""
        parameters = {"profiles": 60, "train": 8, "eval": 3}
        with carrying_out_agent_work(self.settings):
            body = {"name": "People of Bern", "kind": "linksearch", "parameters": parameters}
            made = self.api.post("/environments", body)
            path = f"/environments/{made['id']}"
            wait_until(lambda: self.api.get(path)["state"] == "ready", PATIENCE_S, "the environment is ready")
        self.views |= {"environments": "/environments", "environment": path}

    def measure_models(self) -> None:
        """Evaluate two models on three benchmarks, and add versions of a named model and a report on both."""
        models, evaluations = [], []
        labels = ("gsm8k", "math", "math500")
        for label in labels:
            install_benchmark(self.database, label, {})
        for number, name in enumerate(("acorn-0.5b", "oak-0.5b")):
            models.append(self.add_model(name))
            body = {
                "targets": [{"kind": "model", "model": models[-1]}],
                "benchmarks": [{"benchmark": label, "limit": PROBLEMS} for label in labels],
            }
            made = self.api.post("/evaluations", body)["items"][0]["id"]
            skill = 0.3 + 0.4 * number
            samples = {each: answer_problems(each, PROBLEMS, skill, seed=number) for each in labels}
            finish_evaluation(self.settings, self.database, made, samples)
            evaluations.append(made)
            self.api.post(
                "/registry", {"name": "desk-bot", "model": models[-1], "note": f"version of {name}"}
            )
        self.api.request("PUT", "/registry/desk-bot/aliases/production", json={"version": 1})
        report = self.api.post(
            "/reports", {"name": "Acorn and oak", "evaluations": evaluations, "samples": 2}
        )
        self.views |= {
            "model": f"/models/{models[-1]}",
            "named model": "/registry/desk-bot",
            "evaluations": "/evaluations",
            "evaluation form": f"/evaluations/new?model={models[0]}",
            "evaluation": f"/evaluations/{evaluations[-1]}",
            "evaluation, samples": f"/evaluations/{evaluations[-1]}?label=gsm8k",
            "comparison of evaluations": f"/evaluations/compare?ids={','.join(evaluations)}",
            "leaderboard": "/evaluations/leaderboard",
            "matrix": "/evaluations/matrix",
            "benchmarks": "/evaluations/benchmarks",
            "reports": "/reports",
            "report": f"/reports/{report['id']}",
        }

    def add_code(self) -> None:
        """Add a reward and an agent workflow, as files."""
        self.api.post("/rewards/files", {"name": "contains-answer", "code": REWARD})
        self.api.post("/workflows", {"name": "react", "code": WORKFLOW})
        self.views |= {
            "rewards": "/rewards",
            "reward files": "/rewards?tab=files",
            "agent code": "/workflows",
        }


def _rollouts(step: int) -> dict[str, Any]:
    def rollout(group: str, score: float, response: str) -> dict[str, Any]:
        return {
            "group": group,
            "prompt": f"user: What is {group} + {group}?",
            "response": response,
            "ground_truth": "4",
            "score": score,
            "reward_parts": {"correct": score},
            "response_tokens": 12,
            "advantage": score - 0.5,
        }

    rollouts = [rollout("2", 1.0, "It is 4."), rollout("2", 0.0, "It is 5."), rollout("3", 0.0, "It is 7.")]
    return {"kind": "rollouts", "time": now(), "step": step, "split": "train", "rollouts": rollouts}
