"""What the processes of workers and beat hold in memory before they do anything."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

WORKER = """
import gc, json, sys
from celery.signals import worker_init
from trellis_workers.core.app import app

app.loader.import_default_modules()
worker_init.send(sender=None)
loaded = set(sys.modules)
from trellis_workers.core.ray_client import RayJobs
import ray.job_submission
late = sorted(name for name in set(sys.modules) - loaded if name.startswith(("ray", "aiohttp", "google")))
print(json.dumps({"frozen": gc.get_freeze_count(), "late": late}))
"""
BEAT = """
import json, sys
from trellis_workers.core.beat_app import app

app.loader.import_default_modules()
heavy = ("ray", "fastapi", "sqlalchemy", "numpy", "polars", "trellis_workers.jobs")
print(json.dumps({"heavy": [name for name in heavy if name in sys.modules], "main": app.main}))
"""


def run(program: str, environment: dict[str, str]) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def test_a_worker_loads_rays_client_before_its_pool_is_forked(install: Callable[..., Any]) -> None:
    found = run(WORKER, install().environment)

    assert found["late"] == []
    assert found["frozen"] > 100_000


def test_beat_loads_nothing_that_only_tasks_need(install: Callable[..., Any]) -> None:
    assert run(BEAT, install().environment) == {"heavy": [], "main": "trellis"}
