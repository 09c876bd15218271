"""Adapters on a base that is really held in 4 and 8 bits, on this machine's CPU."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_testing.engine_runs import Rows, compose_job, run_engine
from trellis_train.preference.model import load_model
from trellis_train.preference.settings import make_settings, parse_overrides
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is None, reason="needs bitsandbytes"),
]
STEPS = 3
COMMON: dict[str, Any] = {
    "total_steps": STEPS,
    "batch_size": 8,
    "max_length": 64,
    "lora_rank": 8,
    "lora_alpha": 16,
    "learning_rate": 1e-2,
    "validation_rows": 0,
    "validate_every": 0,
    "save_every": 0,
}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    make_starter(["--model", str(folder / "model"), "--seed", "1"])
    return folder / "model"


@pytest.mark.parametrize(
    ("recipe", "choice", "layer"),
    [
        ("dpo", {"quantize_base": True}, "Linear4bit"),
        ("agent_dpo", {"quantization": "8bit"}, "Linear8bitLt"),
        ("agent_sft", {"quantization": "4bit"}, "Linear4bit"),
        ("agent_sft", {"quantization": "8bit"}, "Linear8bitLt"),
    ],
)
def test_an_adapter_trains_on_a_base_in_fewer_bits(
    recipe: str, choice: dict[str, Any], layer: str, starter: Path, tmp_path: Path
) -> None:
    is_sft = recipe == "agent_sft"
    answers = [("answer",) if is_sft else ("chosen", "rejected")] * 32
    sums = [
        {"prompt": f"{n}+1?", **{name: str(n + 1 + place) for place, name in enumerate(names)}}
        for n, names in enumerate(answers)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in sums))
    rows = Rows.from_json_lines(file, DataFormat.PROMPT_ANSWER if is_sft else DataFormat.PREFERENCE)
    job = compose_job(
        tmp_path / "job", recipe=recipe, model=starter, rows=rows, params={**COMMON, **choice}, seed=1
    )

    model = load_model(make_settings(recipe, parse_overrides(job.spec.engine_overrides)))
    run = run_engine(job, timeout_s=600)

    assert type(model.model.layers[0].self_attn.q_proj).__name__ == layer
    assert str(model.device) == "cpu"
    assert sorted(run.curve("loss")) == list(range(1, STEPS + 1))
    assert run.curve("loss")[STEPS] < run.curve("loss")[1]
    assert (Path(run.checkpoint()["path"]) / "lora_adapter" / "adapter_model.safetensors").exists()
