"""`trellis demo --model`: a pretrained model learns to sort messages, and a person can see it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from trellis_cli.proof import MODEL_VARIABLE
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.services.ports import pick_free
from trellis_testing.pretrained import DEFAULT
from trellis_testing.proof_report import report_proof

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600), pytest.mark.proves("grpo", "sft")]
#: Of held-out messages sorted right; a run with learning rate 0 ends where this began.
LEAST_GAIN = 0.2


@pytest.mark.parametrize("seed", [1, 2])
def test_grpo_sorts_more_held_out_messages_right(seed: int, tmp_path: Path) -> None:
    model = os.environ.get(MODEL_VARIABLE) or DEFAULT
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRELLIS_", "RAY_"))}
    environment = {**kept, "TRELLIS_DATA_ROOT": str(tmp_path), "TRELLIS_PORT": str(pick_free())}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            python_command("-m", "trellis_cli", *arguments),
            cwd=REPOSITORY_ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    try:
        result = json.loads(run("demo", "--model", model, "--seed", str(seed), "--json").splitlines()[-1])
    finally:
        run("down")

    before, after = result["accuracy_before"], result["accuracy_after"]
    report_proof(
        f"demo, seed {seed}",
        measure="held-out accuracy",
        control=before,
        trained=after,
        seconds=result["seconds"],
    )
    assert after >= before + LEAST_GAIN
    assert len(result["answers"]) == 3
