"""Versions of a named model are registered, promoted and rolled back, in a real browser."""

import json
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def _write_model(folder: Path) -> None:
    """The smallest folder that counts as a model."""
    folder.mkdir(parents=True)
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "max_position_embeddings": 2048}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
    header = json.dumps({"embed": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


@pytest.fixture
def models(dashboard, call_api, request: pytest.FixtureRequest) -> list[str]:
    """Ids of two models that are ready."""
    ids = []
    for name in (f"{request.node.name[:20]}-1", f"{request.node.name[:20]}-2"):
        _write_model(dashboard.data_root / "models" / name)
        source = {"kind": "local", "path": f"models/{name}"}
        ids.append(call_api("POST", "/models", {"name": name, "source": source})["id"])
    return ids


def _register(page: Page, url: str, model: str, note: str) -> None:
    page.goto(f"{url}/models/{model}")
    page.get_by_role("button", name="Register a version").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("#registry-name").click()
    page.keyboard.type("desk-bot")
    page.keyboard.press("Enter")
    dialog.get_by_label("Note").fill(note)
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="desk-bot")).to_be_visible()


def _promote(page: Page, version: int, note: str) -> None:
    page.locator(f"[data-version='{version}']").get_by_role("button", name="Promote…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Note").fill(note)
    dialog.get_by_role("button", name="Promote", exact=True).click()
    expect(dialog).to_be_hidden()


def test_a_version_is_registered_promoted_and_rolled_back(
    logged_in: Page, dashboard, models: list[str]
) -> None:
    page = logged_in
    for model, note in zip(models, ("the first", "shorter answers"), strict=True):
        _register(page, dashboard.url, model, note)
    expect(page.locator("[data-version='2']")).to_contain_text("shorter answers")

    _promote(page, 1, "go")
    _promote(page, 2, "better")
    alias = page.locator("[data-alias='production']")
    expect(alias).to_contain_text("v2")
    alias.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_label("Note").fill("too short")
    page.get_by_role("dialog").get_by_role("button", name="Roll back", exact=True).click()

    expect(alias).to_contain_text("v1")
    expect(page.locator("[data-kind='rollback']")).to_contain_text("too short")
    page.goto(f"{dashboard.url}/registry")
    expect(page.locator("[data-name='desk-bot']")).to_contain_text("productionv1")
    page.goto(f"{dashboard.url}/registry/desk-bot")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No named models yet")).to_be_visible()


def test_a_gate_that_cannot_be_checked_keeps_the_alias(
    logged_in: Page, dashboard, models: list[str], call_api
) -> None:
    for model in models:
        call_api("POST", "/registry", {"name": "gated", "model": model})
    call_api("PUT", "/registry/gated/aliases/production", {"version": 1})
    logged_in.goto(f"{dashboard.url}/registry/gated")

    logged_in.locator("[data-version='2']").get_by_role("button", name="Promote…").click()
    dialog = logged_in.get_by_role("dialog")
    dialog.locator("#promote-gate").click()
    logged_in.keyboard.type("gsm8k")
    logged_in.keyboard.press("Enter")
    dialog.get_by_role("button", name="Promote", exact=True).click()

    expect(dialog.get_by_role("alert")).to_contain_text("hasn't been evaluated on 'gsm8k'")
    assert call_api("GET", "/registry/gated")["aliases"] == {"production": 1}
