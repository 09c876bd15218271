"""``trellis.tune_search``: find settings with Ray Tune and ASHA (Li et al., arXiv 1810.05934).

Also a command: ``python -m trellis.searching CONFIG WORKFLOW --space JSON ...``.
"""

import argparse
import csv
import inspect
import json
import math
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis_contracts.engine_install import require_engine
from trellis_contracts.gpu_devices import list_visible_gpus

from trellis.tuning import TuneFailed, check, read_outcome, save, start

#: (configuration, folder of the trial) → the metrics of each step as they come.
Train = Callable[[dict[str, Any], Path], Iterator[dict[str, float]]]
METRIC = "critic/score/mean"
#: Share of a step's sessions that failed and count as reward 0.
FAILED_SHARE = "agent/workflow_error/mean"
_POLL_S = 0.5
#: How the command names the log of a training that failed.
_WHERE = "Full log: "
_CLUSTER = ("node_num", "gpu_per_node")
_BEST, _TRIALS = "best.yaml", "trials.csv"
#: Of a trial's steps, before it may be ended early.
_GRACE_SHARE = 4


@dataclass(frozen=True)
class Trial:
    """One setting that was tried."""

    settings: dict[str, Any]
    #: Its last value of the metric; None where it failed before the first.
    value: float | None
    steps: int
    error: str | None = None
    #: Share of its sessions that failed and count as reward 0; None where nothing was measured.
    failed_share: float | None = None


@dataclass(frozen=True)
class SearchResult:
    """All trials, and where the best one's configuration lies."""

    best: Trial
    best_config: Path
    trials_table: Path
    trials: list[Trial] = field(default_factory=list)


def tune_search(
    workflow: Callable[..., Any] | str,
    base_config: Path | str | Mapping[str, Any],
    space: Mapping[str, Any],
    metric: str = METRIC,
    mode: str = "max",
    num_samples: int = 1,
    max_concurrent: int = 1,
    *,
    judge: Callable[..., Any] | None = None,
    output: Path | str = "search",
    train: Train | None = None,
) -> SearchResult:
    """Try settings of ``space`` (dotted keys of the YAML → a list, or a domain of Ray Tune).

    Exports ``best.yaml`` and ``trials.csv`` to ``output``. A trial that fails harms no other; ``TuneFailed``
    where all fail. A trial's ``failed_share`` says how many of its sessions failed and count as reward 0.
    On a machine with GPUs each trial has as many of its own as the YAML's ``cluster`` says; ``ValueError``
    where ``max_concurrent`` trials need more than there are. ``train`` takes the place of a training, for
    tests and for trainers of one's own.
    """
    if mode not in ("max", "min"):
        raise ValueError(f"mode is 'max' or 'min', not {mode!r}")
    folder = Path(output).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    base = read_base(base_config)
    gpus = 0
    if train is None:
        gpus = share_gpus(base, space, max_concurrent)
        train = _prepare_training(workflow, judge, base, space, folder)
    trials = _run_trials(
        train, base, space, folder, metric=metric, mode=mode, samples=num_samples, at_a_time=max_concurrent,
        gpus=gpus,
    )  # fmt: skip
    return _export(folder, base, trials, mode=mode, metric=metric)


def read_base(config: Path | str | Mapping[str, Any]) -> dict[str, Any]:
    """Load the configuration that the trials change."""
    from omegaconf import OmegaConf

    loaded = OmegaConf.create(dict(config)) if isinstance(config, Mapping) else OmegaConf.load(config)
    plain = OmegaConf.to_container(loaded)
    if not isinstance(plain, dict):
        raise ValueError("Invalid configuration: it must hold keys with values")
    return {str(name): value for name, value in plain.items()}


def with_settings(base: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with values set at dotted keys.

    >>> with_settings({"a": {"b": 1, "c": 2}}, {"a.b": 3})
    {'a': {'b': 3, 'c': 2}}
    """
    tree: dict[str, Any] = json.loads(json.dumps(base))
    for dotted, value in settings.items():
        *groups, name = dotted.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return tree


def share_gpus(base: Mapping[str, Any], space: Mapping[str, Any], at_a_time: int) -> int:
    """Return how many GPUs each trial gets; 0 on a machine without GPUs, or with TRELLIS_PLATFORM=cpu.

    ``ValueError`` where so many trials at a time need more than the machine has.
    """
    there = [] if os.environ.get("TRELLIS_PLATFORM") == "cpu" else list_visible_gpus()
    if not there:
        return 0
    cluster = base.get("cluster") or {}
    asked = {name: space.get(f"cluster.{name}", cluster.get(name) or 1) for name in _CLUSTER}
    each = math.prod(max(value) if isinstance(value, list) else int(value) for value in asked.values())
    if at_a_time * each > len(there):
        raise ValueError(
            f"{at_a_time} trials at a time need {at_a_time * each} GPUs ({each} each, cluster.gpu_per_node), "
            f"but {len(there)} can be used here; reduce max_concurrent"
        )
    return each


def _prepare_training(
    workflow: Callable[..., Any] | str,
    judge: Callable[..., Any] | None,
    base: dict[str, Any],
    space: Mapping[str, Any],
    folder: Path,
) -> Train:
    """Check all that can be checked before the first trial."""
    require_engine()
    from trellis_train.agents.tune.settings import read_config

    firsts = {key: value[0] for key, value in space.items() if isinstance(value, list) and value}
    read_config(with_settings(base, firsts))
    if isinstance(workflow, str):
        path, separator, function = workflow.partition(":")
        return TrainInProcess(f"{Path(path).resolve()}{separator}{function}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(json.dumps(with_settings(base, firsts)))
        file.flush()
        check(workflow, judge, file.name)
    save(folder / "workflow.pkl", workflow, judge)
    return TrainInProcess(str(folder / "workflow.pkl"))


@dataclass(frozen=True)
class TrainInProcess:
    """A training as ``trellis tune run`` makes it, with a Ray cluster of its own."""

    workflow: str
    #: Where the search was started: Ray Tune gives each trial a working folder of its own.
    started_in: str = field(default_factory=os.getcwd)

    def __call__(self, config: dict[str, Any], folder: Path) -> Iterator[dict[str, float]]:
        """Run a training and yield the metrics of its steps; raise ``TuneFailed`` with the end of its log."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "tune.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        with (folder / "errors").open("w") as errors:
            process = start(file, self.workflow, output=folder, stderr=errors, folder=self.started_in)
            place = 0
            while True:
                ended = process.poll() is not None
                lines, place = _read_lines(folder / "metrics.jsonl", place)
                yield from lines
                if ended:
                    break
                time.sleep(_POLL_S)
            printed = process.stdout.read() if process.stdout else ""
        read_outcome(process.returncode, printed, (folder / "errors").read_text()[-2000:])


def _read_lines(path: Path, place: int) -> tuple[list[dict[str, float]], int]:
    """Read the complete lines after ``place``, and return where they end."""
    if not path.exists():
        return [], place
    with path.open("rb") as file:
        file.seek(place)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], place + len(whole)


def _run_trials(
    train: Train,
    base: dict[str, Any],
    space: Mapping[str, Any],
    folder: Path,
    *,
    metric: str,
    mode: str,
    samples: int,
    at_a_time: int,
    gpus: int = 0,
) -> list[Trial]:
    _choose_token()
    import ray
    from ray import tune as ray_tune
    from ray.tune.schedulers import ASHAScheduler

    def trial(settings: dict[str, Any]) -> None:
        name = ray_tune.get_context().get_trial_id()
        shares: list[float] = []
        for step, values in enumerate(
            train(with_settings(base, settings), folder / f"trial-{name}"), start=1
        ):
            shares += [values[FAILED_SHARE]] if FAILED_SHARE in values else []
            if metric in values:
                failed = sum(shares) / len(shares) if shares else None
                ray_tune.report({"value": values[metric], "steps": step, "failed_share": failed})

    steps = (base.get("buffer") or {}).get("total_steps") or 100
    scheduler = ASHAScheduler(max_t=steps, grace_period=max(1, steps // _GRACE_SHARE))
    domains = {
        key: ray_tune.grid_search(value) if isinstance(value, list) else value for key, value in space.items()
    }
    home = inspect.getmodule(train)
    is_ours = not ray.is_initialized()
    if is_ours:
        _start_ray(at_a_time, gpus)
    if home is not None and home.__name__ not in ("__main__", __name__):
        ray.cloudpickle.register_pickle_by_value(home)  # trials need not find a person's module
    try:
        tuner = ray_tune.Tuner(
            ray_tune.with_resources(trial, {"cpu": 1, "gpu": gpus}),
            param_space=domains,
            tune_config=ray_tune.TuneConfig(
                metric="value", mode=mode, num_samples=samples, max_concurrent_trials=at_a_time,
                scheduler=scheduler,
            ),
            run_config=ray_tune.RunConfig(storage_path=str(folder / "ray"), name="trials", verbose=0),
        )  # fmt: skip
        return [_read_trial(result, list(space)) for result in tuner.fit()]
    finally:
        if is_ours:
            ray.shutdown()


def _choose_token() -> None:
    """Set a token for this search's own Ray cluster before Ray reads the one in ``~/.ray``."""
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _start_ray(at_a_time: int, gpus: int) -> None:
    """Start a node for so many trials; to each Ray gives its GPUs by ``CUDA_VISIBLE_DEVICES``."""
    import ray

    os.environ.pop("RAY_ADDRESS", None)  # a cluster of a platform has other work
    ray.init(
        num_cpus=at_a_time, num_gpus=at_a_time * gpus, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip


def _read_trial(result: Any, keys: Sequence[str]) -> Trial:
    metrics = result.metrics or {}
    settings = {key: (result.config or {}).get(key) for key in keys}
    error = None
    if result.error is not None:
        told = [line for line in str(result.error).splitlines() if line.strip()]
        lines = [line for line in told if not line.startswith(_WHERE)]  # the log's place is no reason
        error = lines[-1].strip() if lines else type(result.error).__name__
    steps, failed_share = int(metrics.get("steps", 0)), metrics.get("failed_share")
    return Trial(settings, metrics.get("value"), steps, error, failed_share)


def _export(
    folder: Path, base: dict[str, Any], trials: list[Trial], *, mode: str, metric: str
) -> SearchResult:
    from omegaconf import OmegaConf

    table = folder / _TRIALS
    keys = list(trials[0].settings) if trials else []
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*keys, metric, "steps", "failed_share", "error"])
        for each in trials:
            chosen = [each.settings[key] for key in keys]
            writer.writerow([*chosen, each.value, each.steps, each.failed_share, each.error or ""])
    sound = [(each.value, each) for each in trials if each.error is None and each.value is not None]
    if not sound:
        raise TuneFailed(f"all {len(trials)} trials failed; see {table}")
    _, best = (max if mode == "max" else min)(sound, key=lambda pair: pair[0])
    OmegaConf.save(OmegaConf.create(with_settings(base, best.settings)), folder / _BEST)
    return SearchResult(best, folder / _BEST, table, trials)


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code: 1 if no trial succeeded, 2 if none could start."""
    parser = argparse.ArgumentParser(prog="python -m trellis.searching")
    parser.add_argument("config")
    parser.add_argument("workflow")
    parser.add_argument("--space", required=True, type=json.loads)
    parser.add_argument("--metric", default=METRIC)
    parser.add_argument("--mode", default="max")
    parser.add_argument("--num-samples", type=int, default=1)
    parser.add_argument("--max-concurrent", type=int, default=1)
    parser.add_argument("--output", default="search")
    given = parser.parse_args(arguments)
    try:
        found = tune_search(
            given.workflow, given.config, given.space, given.metric, given.mode, given.num_samples,
            given.max_concurrent, output=given.output,
        )  # fmt: skip
    except (TuneFailed, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, TuneFailed) else 2
    print(f"best: {found.best.settings} with {given.metric} {found.best.value}; {found.best_config}")
    if found.best.failed_share:
        print(
            f"{found.best.failed_share:.0%} of the best trial's sessions failed and count as reward 0; "
            f"the log of the trial has their tracebacks",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
