"""Adding and removing models, in a real browser."""

import json
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def _write_model(folder: Path) -> None:
    """The smallest folder that counts as a model: one tensor of 4 x 8 half-precision numbers."""
    folder.mkdir(parents=True)
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "max_position_embeddings": 2048}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
    header = json.dumps({"embed": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


def test_a_folder_is_added_as_a_model_and_taken_off_the_list(logged_in: Page, dashboard) -> None:
    _write_model(dashboard.data_root / "models" / "cutting")
    logged_in.goto(f"{dashboard.url}/models?add=1")
    logged_in.get_by_role("dialog").get_by_text("Folder or file", exact=True).first.click()
    logged_in.get_by_label("Folder or GGUF file", exact=True).fill("models/cutting")
    expect(logged_in.get_by_label("Name", exact=True)).to_have_value("cutting")
    logged_in.get_by_role("dialog").get_by_role("button", name="Add", exact=True).click()

    expect(logged_in.get_by_role("heading", level=1, name="cutting")).to_be_visible()
    expect(logged_in.get_by_text("Qwen3ForCausalLM")).to_be_visible()
    expect(logged_in.get_by_text("2,048 tokens")).to_be_visible()
    expect(logged_in.get_by_text("The tokenizer has no chat template")).to_be_visible()

    logged_in.get_by_role("button", name="Delete").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(logged_in.get_by_role("heading", level=1, name="Models")).to_be_visible()
    assert (dashboard.data_root / "models" / "cutting" / "config.json").is_file()


def test_a_folder_outside_the_data_is_refused_in_the_readers_language(logged_in: Page, dashboard) -> None:
    logged_in.keyboard.press("l")
    logged_in.goto(f"{dashboard.url}/models?add=1")
    logged_in.get_by_role("dialog").get_by_text("文件夹或文件", exact=True).first.click()
    logged_in.get_by_label("文件夹或 GGUF 文件", exact=True).fill("../../etc")
    logged_in.get_by_role("dialog").get_by_role("button", name="添加", exact=True).click()

    expect(logged_in.get_by_role("alert")).to_contain_text("路径超出了平台的数据目录")
