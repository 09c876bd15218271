"""What somebody brings, through the whole platform: a package with a requirement, tools, another model."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.uploading import send_file
from trellis_recipes.workflows.packing import pack
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
WORKFLOW = """
import json
import sqlite3

import tiny
from trellis import WorkflowOutput


async def workflow(task, model, auxiliary_models):
    tools = model.tools("shop")
    price = await tools.price_of(item="apple")
    reply = await model(task["messages"], max_tokens=8)
    other = await auxiliary_models["critic"](task["messages"], max_tokens=4, temperature=0.5)
    with sqlite3.connect("stock.db") as database:
        count = database.execute("SELECT count FROM stock").fetchone()[0]
    metrics = {"price": price["price"], "tiny": tiny.ANSWER, "count": count}
    return WorkflowOutput(
        reward=float(len(reply.text) % 2), metrics={**metrics, "other": other.completion_tokens}
    )
"""
TOOLS = [{"name": "price_of", "parameters": {"type": "object", "required": ["item"], "properties": {}}}]
CODE = "PRICES = {'apple': 3}\n\n\ndef price_of(item):\n    return {'price': PRICES[item]}\n"
STEPS = 2


def make_wheel(folder: Path) -> Path:
    """A folder that pip takes for an index, with a package that is on no other."""
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    return folder


def make_package(folder: Path) -> Path:
    import sqlite3

    folder.mkdir()
    (folder / "workflow.py").write_text(WORKFLOW)
    (folder / "requirements.txt").write_text("tiny==1.0\n")
    with sqlite3.connect(folder / "stock.db") as database:
        database.execute("CREATE TABLE stock (count INTEGER)")
        database.execute("INSERT INTO stock VALUES (7)")
    database.close()
    return folder


def test_a_package_with_tools_and_another_model_is_trained(rig: Any, tmp_path: Path) -> None:
    rig.kill("worker")
    rig.start(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(make_wheel(tmp_path)))
    own = rig.platform.settings.data_root / "own"
    own.mkdir()
    (own / "tools.json").write_text(json.dumps(TOOLS))
    (own / "tools.py").write_text(CODE)
    shop = rig.make_environment("shop", "own_tools", {"tools": "own/tools.json", "code": "own/tools.py"})
    archive = pack(make_package(tmp_path / "agent"), tmp_path / "agent.tar.gz")
    upload = send_file(rig.client, archive, tell=lambda _: None)
    made = rig.client.post("/workflows", {"name": "agent", "upload": upload})
    assert made["state"] == "queued"

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = rig.client.get(f"/workflows/{made['id']}")
        assert found["state"] != "failed", found["reason"]
        return found if found["state"] == "ready" else None

    ready = wait_until(look, 120, "the requirement is installed", pause_s=0.3)
    assert ready is not None
    assert ready["installed"] == ["tiny-1.0"]
    starter = rig.starter()
    model = rig.client.get(f"/models/{starter['model']}")["name"]
    job_id = rig.launch(
        "tune", "package", workflow=made["id"], environment=shop["id"], auxiliary_models=f"critic={model}",
        total_steps=STEPS, batch_size=4, mini_batch_size=4, group_size=2, validate_before=False,
        max_prompt_length=64, max_response_length=32,
    )  # fmt: skip
    rig.wait_for_state(job_id, "succeeded")

    found = rig.stored_metrics(job_id)
    for step in range(1, STEPS + 1):
        assert found["agent/workflow_error/mean", step] == 0
        assert found["agent/workflow/price/mean", step] == 3
        assert found["agent/workflow/tiny/mean", step] == 42
        assert found["agent/workflow/count/mean", step] == 7
        assert found["agent/workflow/other/mean", step] >= 1
    endpoints = rig.client.get("/endpoints")["items"]
    assert [each["name"] for each in endpoints] == [model]
