"""Code that needs vLLM, run in a process of its own: importing it changes the process for good."""

import importlib.metadata
import json
import os
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.platform_defaults import environment

needs_cpu_build = pytest.mark.skipif(
    "+cpu" not in importlib.metadata.version("torch"), reason="this environment is made for GPUs"
)


def run_engine_code(code: str, *arguments: str, timeout_s: float = 400) -> Any:
    """Run ``code`` in the environment of a rollout engine on a CPU; return its last output line as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(code), *arguments],
        env=os.environ | environment(Engine.VERL_PPO, "cpu"),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
