"""Tasks of lm-evaluation-harness as it ships them, on local files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lm_eval.tasks
import yaml
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask


def load_reference(config: str, parts: dict[str, Path], cache: Path, **changes: Any) -> ConfigurableTask:
    """Load the task of a configuration file under ``lm_eval/tasks``, with other data and these changes."""
    shipped = yaml.safe_load((Path(lm_eval.tasks.__file__).parent / config).read_text())
    data_files = {part: str(path) for part, path in parts.items()}
    local = {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": data_files, "cache_dir": str(cache)},
    }
    return ConfigurableTask(config={"task": "reference", **shipped, **local, **changes})


def reference_scores(
    task: ConfigurableTask, filter_name: str, docs: Sequence[dict[str, Any]], outputs: Sequence[str]
) -> list[bool]:
    """Score an output to each doc with the task's own filter and metric."""
    [ensemble] = [each for each in task._filters if each.name == filter_name]
    instances = [
        Instance(request_type="generate_until", doc=doc, arguments=("", {}), idx=0, resps=[output])
        for doc, output in zip(docs, outputs, strict=True)
    ]
    ensemble.apply(instances)
    found = [instance.filtered_resps[filter_name] for instance in instances]
    results = [task.process_results(doc, [each]) for doc, each in zip(docs, found, strict=True)]
    return [bool(result["exact_match"]) for result in results]
