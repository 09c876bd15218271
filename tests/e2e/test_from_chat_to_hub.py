"""A new user's way with a pretrained model: chat, fine-tune, compare, vote, DPO on the votes, push."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from trellis_data.samples.tickets import Ticket, make_tickets
from trellis_testing.stand_in_hub import StandInHub
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(1700)]
MODEL = "smollm2-135m-instruct"
REPOSITORY = "team/tickets"
#: Messages that both models are asked, and votes with that.
ASKED = 12
ENDED = ("succeeded", "failed", "cancelled")


@pytest.fixture
def hub(rig: Any) -> Iterator[StandInHub]:
    """A hub of this machine, which the worker pushes to."""
    hub = StandInHub({}, repository=REPOSITORY)
    hub.required_token = "hub-token"
    rig.kill("worker")
    rig.start(HF_ENDPOINT=hub.url, HF_TOKEN=hub.required_token)
    yield hub
    hub.close()
    rig.kill("worker")


@pytest.fixture
def client(rig: Any) -> openai.OpenAI:
    token = rig.platform.settings.admin_token_path.read_text().strip()
    return openai.OpenAI(base_url=f"{rig.client.url}/v1", api_key=token, max_retries=20)


def test_a_new_user_trains_compares_votes_and_publishes(
    rig: Any, client: openai.OpenAI, hub: StandInHub, tmp_path: Path
) -> None:
    tickets = make_tickets(1)
    get_model(rig)
    chats = write_chats(tmp_path, tickets["sft"][:96])
    asked = tickets["rl_validation"][:ASKED]

    tuned = fine_tune(client, chats)
    before, after = (ask(client, name, asked) for name in (MODEL, tuned))
    assert count_right(asked, after) > count_right(asked, before)

    vote(rig, asked, before, after, tuned)
    (rate,) = rig.client.get("/votes/win-rates")["items"]
    assert rate["votes"] == ASKED
    assert {rate["model_a"], rate["model_b"]} == {MODEL, tuned}
    stop_endpoints(rig)

    better = train_on_votes(rig, tuned)
    (answer,) = ask(client, better["name"], asked[:1])
    assert answer
    stop_endpoints(rig)

    pushed = push(rig, better["id"])
    assert pushed["state"] == "succeeded", pushed
    assert "model.safetensors" in hub.committed
    card = hub.files["README.md"].decode()
    assert "dpo" in card.lower()
    assert "votes on tickets" in card
    assert MODEL in card


def get_model(rig: Any) -> None:
    made = rig.client.post("/models", {"name": MODEL, "source": {"kind": "catalogue", "name": MODEL}})
    wait_until(
        lambda: rig.client.get(f"/models/{made['id']}")["state"] == "ready",
        300,
        "the model is there",
        pause_s=1,
    )


def write_chats(folder: Path, tickets: list[Ticket]) -> Path:
    rows = [
        {"messages": [{"role": "user", "content": t.prompt}, {"role": "assistant", "content": t.answer}]}
        for t in tickets
    ]
    path = folder / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def fine_tune(client: openai.OpenAI, chats: Path) -> str:
    """Name of the model that a supervised job of OpenAI's client makes."""
    with chats.open("rb") as content:
        file = client.files.create(file=content, purpose="fine-tune")
    job = client.fine_tuning.jobs.create(
        model=MODEL,
        training_file=file.id,
        suffix="tickets",
        method={"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 2, "batch_size": 8}}},
    )
    ended = wait_until(
        lambda: found if (found := client.fine_tuning.jobs.retrieve(job.id)).status in ENDED else None,
        900,
        "the fine-tuning job has ended",
        pause_s=2,
    )
    assert ended.status == "succeeded", ended.error
    assert ended.fine_tuned_model is not None
    return str(ended.fine_tuned_model)


def ask(client: openai.OpenAI, model: str, tickets: list[Ticket]) -> list[str]:
    """Greedy answers, as the columns of the playground get them."""
    return [
        client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": ticket.prompt}],
            max_tokens=24,
            temperature=0,
            seed=1,
        )
        .choices[0]
        .message.content
        or ""
        for ticket in tickets
    ]


def count_right(tickets: list[Ticket], answers: list[str]) -> int:
    return sum(map(is_right, tickets, answers))


def is_right(ticket: Ticket, answer: str) -> bool:
    return answer.strip() == ticket.answer


def vote(rig: Any, tickets: list[Ticket], before: list[str], after: list[str], tuned: str) -> None:
    """Blind votes for the right answer; where both are wrong, for the tuned model's form."""
    for ticket, of_base, of_tuned in zip(tickets, before, after, strict=True):
        is_base_better = is_right(ticket, of_base) and not is_right(ticket, of_tuned)
        rig.client.post(
            "/votes",
            {
                "messages": [{"role": "user", "content": ticket.prompt}],
                "a": {"model": MODEL, "text": of_base},
                "b": {"model": tuned, "text": of_tuned},
                "verdict": "a" if is_base_better else "b",
                "is_blind": True,
                "settings": {"temperature": 0, "max_tokens": 24, "seed": 1},
            },
        )


def stop_endpoints(rig: Any) -> None:
    """Stop all engines: a training needs their memory."""
    for endpoint in rig.client.get("/endpoints")["items"]:
        if endpoint["can_stop"]:
            rig.client.delete(f"/endpoints/{endpoint['id']}")
            rig.wait_for_state(endpoint["run_id"], "stopped", timeout_s=90)


def train_on_votes(rig: Any, tuned: str) -> dict[str, Any]:
    """The model of a DPO job on the votes, started with nothing but recipe, model, data and a name."""
    made = rig.client.post("/votes/dataset", {"name": "votes on tickets", "models": [MODEL, tuned]})
    dataset_id = (made.get("dataset") or made)["id"]
    wait_until(
        lambda: rig.client.get(f"/datasets/{dataset_id}")["state"] == "ready", 60, "the votes are a dataset"
    )
    (model,) = [each for each in rig.client.pages("/models") if each["name"] == tuned]
    job = rig.client.post(
        "/jobs",
        {
            "name": "dpo on votes",
            "recipe": "dpo",
            "model": model["id"],
            "dataset": dataset_id,
            "export_as": {"name": "tickets-voted"},
        },
    )
    rig.wait_for_state(job["id"], "succeeded", timeout_s=900)
    rig.wait_for_state(rig.job(job["id"])["export_as"]["job"]["id"], "succeeded")
    return dict(rig.promised_model(job["id"]))


def push(rig: Any, model_id: str) -> dict[str, Any]:
    transfer = rig.client.post(f"/models/{model_id}/push", {"repo_id": REPOSITORY})

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = rig.client.get(f"/transfers/{transfer['id']}")
        return found if found["state"] in ENDED else None

    found = wait_until(look, 300, "the push has ended", pause_s=1)
    assert found is not None
    return found
