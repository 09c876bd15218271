"""Model cards: what they state, that hubs can read them, and that a wrong number is found."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from trellis_api.cards.facts import gather
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.jobs import repository
from trellis_api.jobs.exports.training import describe_training
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Attempt, Checkpoint
from trellis_api.models.lineage import continue_lineage
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.card_rules import find_card_problems

SECRET = "hf_" + "a" * 34


@pytest.fixture
def trained(
    database: Database,
    settings: Settings,
    model: Model,
    dataset: Dataset,
    make_job: Callable[..., str],
) -> Model:
    """A model that a job of two measured steps made of another one, with a score of its checkpoint."""
    assert dataset.head is not None
    with database.write() as session:
        base = session.get(Model, model.id)
        assert base is not None
        base.source, base.name = {"kind": "catalogue", "name": "smollm2-135m-instruct"}, "base | [model]"
        session.add(base)
    job_id = make_job(
        recipe="sft",
        preset="cpu-tiny",
        name="teach <it>",
        model_id=model.id,
        dataset_id=dataset.id,
        dataset_version=dataset.head,
        dataset_split="train",
        params={"learning_rate": 1e-3, "batch_size": 8},
        state=JobState.SUCCEEDED,
    )
    evaluation_job = make_job(kind="evaluate", recipe="evaluate", state=JobState.SUCCEEDED)
    with database.write() as session:
        job = repository.lock_job(session, job_id=job_id)
        assert job is not None
        metric_store.write(session, job=job, metrics=metrics())
        session.add(Attempt(job_id=job_id, number=1, manifest={"b": 1, "a": {"c": [1.5]}}))
        session.add(
            Checkpoint(job_id=job_id, step=2, attempt=1, path="x", size_bytes=1, created_at=utc_now())
        )
        session.add(
            Evaluation(
                id="ev_aaaaaaaaaaaa",
                job_id=evaluation_job,
                name="e",
                target_kind="checkpoint",
                target_job_id=job_id,
                target_step=2,
                target_name="x",
                request={},
            )
        )
        session.flush()
        session.add(
            EvaluationScore(
                evaluation_id="ev_aaaaaaaaaaaa",
                label="gsm8k",
                benchmark="gsm8k",
                metric="strict",
                value=0.123456789,
                low=0.1,
                high=0.15,
                method="wilson",
                n=1319,
                configuration="c",
                target_job_id=job_id,
                target_step=2,
            )
        )
        lineage = continue_lineage(session, describe_training(session, job=job, step=2), form="merged")
        made = Model(
            id="mdl_madeeeeeeeee",
            name="made",
            state="ready",
            source={"kind": "export", "job_id": job_id, "step": 2, "form": "merged"},
            lineage=lineage.model_dump(mode="json"),
            path="models/made",
            warnings=[],
            sha256="a" * 64,
            sha256_kind="content",
            parameter_count=1234567,
        )
        session.add(made)
    return made


def metrics() -> list[metric_store.StepMetrics]:
    return [
        (1, {"train/loss": 2.0, "val/loss": 1.5}),
        (2, {"train/loss": 1.0, "val/loss": 1.25}),
    ]


def read(client: TestClient, model: Model) -> str:
    answer = client.get(f"/api/v1/models/{model.id}/card")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    return answer.text


def check(client: TestClient, model: Model, card: str) -> Any:
    return client.post(f"/api/v1/models/{model.id}/card/check", json={"card": card})


def matter_of(card: str) -> dict[str, Any]:
    return dict(yaml.safe_load(card.split("---\n")[1]))


def test_a_card_has_the_front_matter_of_the_hub(
    client: TestClient, trained: Model, settings: Settings
) -> None:
    matter = matter_of(read(client, trained))

    # Names of the platform are none of the hub's, which refuses them; the statements keep them.
    assert (matter["license"], matter["trellis"]["base"]) == ("apache-2.0", "base | [model]")
    assert {"base_model", "datasets"}.isdisjoint(matter)
    assert list(find_card_problems(read(client, trained))) == []
    assert (matter["library_name"], matter["pipeline_tag"]) == ("transformers", "text-generation")
    assert matter["tags"] == ["trellis", "sft"]
    (result,) = matter["model-index"][0]["results"]
    assert result["dataset"] == {"name": "gsm8k", "type": "gsm8k"}
    assert result["metrics"][0] == {
        "type": "strict",
        "value": 0.123457,
        "name": "strict",
        "verified": False,
    }
    assert result["source"]["url"] == f"{settings.base_url}/evaluations/ev_aaaaaaaaaaaa"


def test_a_card_names_models_and_datasets_as_the_hub_does(
    client: TestClient, trained: Model, model: Model, dataset: Dataset, database: Database
) -> None:
    with database.write() as session:
        base, rows = session.get(Model, model.id), session.get(Dataset, dataset.id)
        assert base is not None
        assert rows is not None
        base.source = {"kind": "catalogue", "name": "qwen3-0.6b"}
        rows.source = {"kind": "hub", "name": "openai/gsm8k"}
        session.add_all([base, rows])

    matter = matter_of(read(client, trained))

    assert (matter["base_model"], matter["datasets"]) == ("Qwen/Qwen3-0.6B", ["openai/gsm8k"])
    with database.write() as session:
        base, rows = session.get(Model, model.id), session.get(Dataset, dataset.id)
        assert base is not None
        assert rows is not None
        base.source = {"kind": "hub", "hub": "modelscope", "repo_id": "Qwen/Qwen3-0.6B"}
        rows.source = {"kind": "hub", "name": "modelscope:openai/gsm8k"}
        session.add_all([base, rows])
    assert {"base_model", "datasets"}.isdisjoint(matter_of(read(client, trained)))


@pytest.mark.parametrize(
    ("architecture", "form", "task", "library", "loading"),
    [
        ("LlamaForCausalLM", "merged", "text-generation", "transformers", "AutoModelForCausalLM."),
        ("LlamaForCausalLM", "adapter", "text-generation", "peft", "AutoPeftModelForCausalLM."),
        ("BertModel", None, "feature-extraction", "sentence-transformers", "SentenceTransformer("),
        (
            "Qwen2ForSequenceClassification",
            None,
            "text-classification",
            "transformers",
            "AutoModelForSequenceClassification.",
        ),
        (
            "Qwen2ForSequenceClassification",
            "adapter",
            "text-classification",
            "peft",
            "AutoPeftModelForSequenceClassification.",
        ),
    ],
)
def test_a_card_says_what_the_model_is_for(
    client: TestClient,
    trained: Model,
    database: Database,
    architecture: str,
    form: str | None,
    task: str,
    library: str,
    loading: str,
) -> None:
    with database.write() as session:
        row = session.get(Model, trained.id)
        assert row is not None
        row.architecture, row.lineage = architecture, {**row.lineage, "form": form}
        session.add(row)

    card = read(client, trained)

    matter = matter_of(card)
    assert (matter["pipeline_tag"], matter["library_name"]) == (task, library)
    assert matter["model-index"][0]["results"][0]["task"] == {"type": task}
    assert loading in card


def test_a_card_states_what_is_known_and_links_numbers_to_runs(
    client: TestClient, trained: Model, dataset: Dataset, settings: Settings
) -> None:
    card = read(client, trained)
    job = f"{settings.base_url}/jobs/{trained.lineage['job_id']}"

    for stated in (
        f"[1.25]({job})",
        f"[0.123457]({settings.base_url}/evaluations/ev_aaaaaaaaaaaa) | 0.1 to 0.15 (wilson) | 1,319",
        f"version `{dataset.head}`, split `train`",
        f"`{trained.lineage['dataset_sha256']}`",
        "| `learning_rate` | `0.001` |",
        "recipe `sft`",
        "preset `cpu-tiny`",
        "1,234,567",
        f"{job.replace('/jobs/', '/api/v1/jobs/')}/manifest?attempt=1",
        "of the weights at the beginning: Apache-2.0",
    ):
        assert stated in card, stated
    # Names cannot break out of the table or into the page.
    assert "base \\| \\[model\\]" in card
    assert "teach &lt;it>" in card


def test_a_card_that_is_right_passes_with_what_people_wrote_around_it(
    client: TestClient, trained: Model
) -> None:
    card = read(client, trained)

    answer = check(client, trained, f"{card}\n## Intended use\n\nNone.\n")

    assert answer.status_code == 200, answer.text
    assert answer.json()["statements"] > 20


def test_the_licences_of_the_data_are_named(client: TestClient, trained: Model, dataset: Dataset) -> None:
    assert f"of the data, {dataset.name}: not known to the platform" in read(client, trained)

    client.patch(f"/api/v1/datasets/{dataset.id}", json={"licences": ["mit", "cc | by"]})

    assert f"of the data, {dataset.name}: mit, cc \\| by" in read(client, trained)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("value: 0.123457\n    low", "value: 0.2\n    low", "scores.0.value"),
        ("batch_size: 8", "batch_size: 16", "trainings.0.parameters.batch_size"),
        ("[1.25](", "[0.25](", "of the text"),
        ("'1': 1.5", "'1': 0.5", "trainings.0.curves.val/loss.1"),
        ("| 1.5 | 1.25 |", "| 0.5 | 1.25 |", "of the text"),
        ("(wilson)", "(bootstrap)", "of the text"),
    ],
)
def test_a_number_that_was_changed_is_found(
    client: TestClient, trained: Model, old: str, new: str, field: str
) -> None:
    card = read(client, trained)
    assert old in card

    answer = check(client, trained, card.replace(old, new))

    assert (answer.status_code, answer.json()["error"]) == (409, "card_outdated")
    assert any(field in each["field"] for each in answer.json()["details"]["differences"])


def test_a_card_shows_the_curves_up_to_its_step(
    client: TestClient, trained: Model, settings: Settings, database: Database
) -> None:
    job_id = str(trained.lineage["job_id"])
    with database.write() as session:
        job = repository.lock_job(session, job_id=job_id)
        assert job is not None
        metric_store.write(session, job=job, metrics=[(3, {"train/loss": 9.0, "val/loss": 9.0})])

    card = read(client, trained)

    link = f"{settings.base_url}/jobs/{job_id}"
    assert "Curves up to step 2:\n" in card
    assert f"| step | 1 | 2 |\n|---|---|---|\n| [`train/loss`]({link}) | 2 | 1 |" in card
    assert f"| [`val/loss`]({link}) | 1.5 | 1.25 |" in card
    (stated,) = [each["curves"] for each in matter_of(card)["trellis"]["trainings"]]
    assert stated == {"train/loss": {"1": 2.0, "2": 1.0}, "val/loss": {"1": 1.5, "2": 1.25}}
    assert check(client, trained, card).status_code == 200


def test_long_curves_have_a_dozen_points_with_the_lowest_and_highest(
    client: TestClient, trained: Model, database: Database
) -> None:
    with database.write() as session:
        job = repository.lock_job(session, job_id=str(trained.lineage["job_id"]))
        row = session.get(Model, trained.id)
        assert job is not None
        assert row is not None
        long = [(step, {"train/loss": 5.0 if step == 777 else 1 / step}) for step in range(3, 1001)]
        metric_store.write(session, job=job, metrics=long)
        row.lineage = {**row.lineage, "step": 1000}
        session.add(row)

    card = read(client, trained)

    assert "Curves up to step 1000, thinned to their lowest and highest points:\n" in card
    (training,) = matter_of(card)["trellis"]["trainings"]
    points = training["curves"]["train/loss"]
    assert 4 < len(points) <= 12
    assert (points["1"], points["777"], points["1000"]) == (2.0, 5.0, 0.001)


def test_a_card_from_before_there_were_curves_is_still_right(client: TestClient, trained: Model) -> None:
    card = read(client, trained)
    matter = matter_of(card)
    del matter["trellis"]["format"]
    for training in matter["trellis"]["trainings"]:
        del training["curves"], training["has_whole_curves"]
    body = card.split("---\n", 2)[2]
    begin, end = body.index("Curves up to step"), body.index("## Evaluation")
    old = f"---\n{yaml.safe_dump(matter)}---\n{body[:begin]}{body[end:]}"

    assert check(client, trained, old).status_code == 200
    wrong = check(client, trained, old.replace("batch_size: 8", "batch_size: 16"))
    assert wrong.json()["error"] == "card_outdated"
    # One that shows curves has to show the right ones.
    claimed = check(client, trained, card.replace("format: 3", "format: 1"))
    assert claimed.json()["error"] == "card_outdated"


def test_a_card_from_before_whole_curves_were_told_apart_is_still_right(
    client: TestClient, trained: Model
) -> None:
    card = read(client, trained)
    old = card.replace("format: 3", "format: 2").replace("has_whole_curves: true", "has_whole_curves: false")
    old = old.replace("up to step 2:", "up to step 2, thinned to their lowest and highest points:")

    assert old != card
    assert check(client, trained, old).status_code == 200
    assert check(client, trained, old.replace("'1': 1.5", "'1': 0.5")).status_code == 409


def test_a_card_is_outdated_when_the_model_is_measured_again(
    client: TestClient, trained: Model, database: Database
) -> None:
    card = read(client, trained)
    with database.write() as session:
        session.add(
            EvaluationScore(
                evaluation_id="ev_aaaaaaaaaaaa",
                label="math",
                benchmark="math",
                metric="accuracy",
                value=0.5,
                n=10,
                configuration="c",
                target_model_id=trained.id,
            )
        )

    answer = check(client, trained, card)

    assert answer.status_code == 409
    assert "scores.1.value" in [each["field"] for each in answer.json()["details"]["differences"]]


def test_a_card_of_another_model_is_refused(client: TestClient, trained: Model, model: Model) -> None:
    assert check(client, trained, read(client, model)).json()["error"] == "card_outdated"


@pytest.mark.parametrize(
    "card",
    [
        "# hello",
        "---\na: [\n---\n",
        "---\ntrellis: 1\n---\nx",
        "---\n- a\n---\n",
        "--- \n",
        "---\na: &b [1]\nc: [*b]\n---\n",
    ],
)
def test_a_text_that_is_no_card_is_refused(client: TestClient, trained: Model, card: str) -> None:
    answer = check(client, trained, card)

    assert (answer.status_code, answer.json()["error"]) == (422, "card_unreadable")


def test_a_model_that_came_from_elsewhere_has_a_card_too(client: TestClient, model: Model) -> None:
    card = read(client, model)

    assert matter_of(card)["license"] == "unknown"
    told = f"of the weights at the beginning: not known to the platform; look at the source of {model.name}"
    assert f"{told} before you pass them on" in card
    assert "were registered on the platform" in card
    assert check(client, model, card).status_code == 200


@pytest.mark.parametrize(
    ("card", "licence", "name"),
    [
        ("---\nlicense: mit\nbase_model: x\n---\n# It\nlicense: gpl-3.0\n", "mit", None),
        ("---\r\nlicense: 'apache-2.0'\r\n---\r\n", "apache-2.0", None),
        ("---\nlicense: other\nlicense_name: qwen-research\n---\n", "other", "qwen-research"),
        ("---\nlicense: other\nlicense_name: My_Own+1.0\n---\n", "other", "my-own-1.0"),
        ("---\nlicense: [mit, x]\n---\n", "unknown", None),
        ("# It\nlicense: mit\n", "unknown", None),
    ],
)
def test_the_licence_of_weights_is_that_of_their_own_card(
    client: TestClient,
    settings: Settings,
    trained: Model,
    model: Model,
    database: Database,
    card: str,
    licence: str,
    name: str | None,
) -> None:
    with database.write() as session:
        base = session.get(Model, model.id)
        assert base is not None
        base.source, base.path = {"kind": "hub", "repo_id": "some/model"}, "models/base"
        session.add(base)
    folder = settings.data_root / "models" / "base"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_bytes(card.encode())

    matter = matter_of(read(client, trained))
    assert (matter["license"], matter.get("license_name")) == (licence, name)
    assert list(find_card_problems(read(client, trained))) == []


def test_a_licence_that_a_person_gave_goes_before_the_folders(
    client: TestClient, settings: Settings, trained: Model, model: Model, database: Database
) -> None:
    with database.write() as session:
        base = session.get(Model, model.id)
        assert base is not None
        base.source = {"kind": "local", "path": "models/base", "licence": "cc-by-4.0"}
        base.path = "models/base"
        session.add(base)
    folder = settings.data_root / "models" / "base"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")

    assert matter_of(read(client, trained))["license"] == "cc-by-4.0"


def test_what_was_deleted_keeps_its_name(
    client: TestClient, trained: Model, database: Database, settings: Settings, session: Any
) -> None:
    repository.delete_job(session, job_id=str(trained.lineage["job_id"]))
    session.flush()

    facts = gather(session, model=trained, data_root=settings.data_root)

    assert (facts.trainings[0].name, facts.trainings[0].figure) == ("teach <it>", None)


def test_a_card_tells_no_secret(client: TestClient, trained: Model, database: Database) -> None:
    with database.write() as session:
        job = repository.lock_job(session, job_id=str(trained.lineage["job_id"]))
        assert job is not None
        job.params = {**job.params, "api_key": "x", "note": SECRET}
        session.add(job)

    card = read(client, trained)

    assert SECRET not in card
    assert "[secret]" in card or "\\[secret\\]" in card
