"""Whether a dataset suits a recipe: what is missing, what is offered instead, and the first row both ways."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.fit.data import MAX_OFFERS
from trellis_api.jobs.fit.texts import describe_conversion
from trellis_api.models.models import Model
from trellis_contracts.row_formats import CONVERSIONS, ColumnKind
from trellis_data.reading.column_types import describe_type, kind_of
from trellis_testing.datasets import add_version

CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
WRONG = [CHAT[0], {"role": "assistant", "content": "3"}]
Upload = Callable[..., Dataset]


@pytest.fixture
def upload(database: Database, settings: Settings, dataset: Dataset) -> Upload:
    """A dataset with these rows, recognised as an import would."""

    def make(*rows: dict[str, Any]) -> Dataset:
        with database.write() as session:
            # As often as a job needs rows; the first of them is what the preview shows.
            add_version(session, settings, dataset.id, list(rows) * 128)
        return dataset

    return make


@pytest.fixture
def preview(client: TestClient, model: Model) -> Callable[..., dict[str, Any]]:
    """The fit that the preview shows, and that a launch obeys."""

    def ask(dataset: Dataset, recipe: str = "sft", **choice: Any) -> dict[str, Any]:
        body = {
            "name": "a job",
            "recipe": recipe,
            "preset": "cpu-tiny",
            "model": model.id,
            "dataset": dataset.id,
            **choice,
        }
        answer = client.post("/api/v1/jobs/preview", json=body)
        assert answer.status_code == 200, answer.text
        fit: dict[str, Any] = answer.json()["data"]
        launched = client.post("/api/v1/jobs", json=body)
        if fit["fits"]:
            assert launched.status_code == 201, launched.text
            job = launched.json()
            assert job["columns"] == choice.get("columns", {})
            assert job["data_format"] == choice.get("data_format")
            copy = client.post(f"/api/v1/jobs/{job['id']}/clone", json={}).json()
            assert (copy["columns"], copy["data_format"]) == (job["columns"], job["data_format"])
        else:
            assert launched.status_code == 422
            error = launched.json()
            assert error["error"] == "unsuitable_dataset"
            assert error["details"][0]["offers"] == fit["offers"]
            assert error["details"][0]["missing"] == fit["missing"]
        return fit

    return ask


Preview = Callable[..., dict[str, Any]]


def test_rows_in_the_wanted_form_need_no_conversion(upload: Upload, preview: Preview) -> None:
    fit = preview(upload({"messages": CHAT}))

    assert (fit["wanted"], fit["found"], fit["read_as"]) == ("messages", "messages", "messages")
    assert (fit["fits"], fit["conversion"], fit["missing"]) == (True, None, [])
    assert fit["sample"] == {
        "before": {"messages": CHAT},
        "after": [{"messages": CHAT}],
        "problem": None,
    }


def test_a_conversion_is_shown_before_the_launch(upload: Upload, preview: Preview) -> None:
    fit = preview(upload({"question": "1+1?", "answer": "so #### 2"}), recipe="grpo")

    assert fit["fits"]
    assert fit["conversion"]["from"] == "prompt-answer"
    assert fit["conversion"]["to"] == "verl-rl"
    assert fit["conversion"]["columns"] == {"prompt": "question", "answer": "answer"}
    (after,) = fit["sample"]["after"]
    assert (after["prompt"], after["reward_model"]["ground_truth"]) == (CHAT[:1], "2")


def test_a_pair_teaches_its_chosen_side(upload: Upload, preview: Preview) -> None:
    fit = preview(upload({"chosen": CHAT, "rejected": WRONG}))

    assert (fit["fits"], fit["conversion"]["from"]) == (True, "preference")
    assert fit["sample"]["after"] == [{"messages": CHAT}]


def test_prompts_are_taken_where_the_model_is_sampled_for_its_pairs(upload: Upload, preview: Preview) -> None:
    truth = {"style": "rule", "ground_truth": "{}"}
    dataset = upload({"data_source": "tools", "prompt": CHAT[:1], "reward_model": truth})

    fit = preview(dataset, recipe="agent_dpo")

    assert (fit["fits"], fit["conversion"]["from"], fit["conversion"]["to"]) == (
        True,
        "verl-rl",
        "preference",
    )
    assert fit["sample"]["after"][0]["prompt"] == CHAT[:1]
    # Another recipe for pairs samples nothing.
    assert not preview(dataset, recipe="dpo")["fits"]


def test_a_missing_column_is_named_and_another_offered(upload: Upload, preview: Preview) -> None:
    dataset = upload({"question": "1+1?", "reply": "2", "score": 1.5})

    fit = preview(dataset, recipe="grpo")

    assert not fit["fits"]
    (missing,) = fit["missing"]
    assert missing["role"] == "answer"
    assert "solution" in missing["looked_for"]
    assert missing["reason"]["en"].startswith("No column is the answer")
    assert missing["reason"]["zh"]
    offers = [(offer["format"], offer["columns"]) for offer in fit["offers"]]
    assert offers[0] == ("prompt-answer", {"prompt": "question", "answer": "reply"})
    assert fit["sample"] is None
    taken = preview(dataset, recipe="grpo", columns=offers[0][1], data_format=offers[0][0])
    assert taken["fits"]
    assert taken["sample"]["after"][0]["prompt"] == CHAT[:1]


def test_named_columns_alone_choose_a_format(upload: Upload, preview: Preview) -> None:
    dataset = upload({"title": "1+1?", "body": "2"})
    assert not preview(dataset)["fits"]

    fit = preview(dataset, columns={"prompt": "title", "answer": "body"})

    assert (fit["fits"], fit["found"], fit["read_as"]) == (True, "unknown", "prompt-answer")
    assert fit["sample"]["after"] == [{"messages": CHAT}]


@pytest.mark.parametrize(
    ("columns", "role", "part"),
    [
        ({"answer": "reply"}, "answer", "has no column reply"),
        ({"answer": "flag"}, "answer", "Column flag is boolean; the answer must be number or text"),
        ({"target": "flag"}, "target", "has no role target"),
    ],
)
def test_a_wrong_choice_of_columns_is_explained(
    upload: Upload, preview: Preview, columns: dict[str, str], role: str, part: str
) -> None:
    dataset = upload({"question": "1+1?", "answer": "2", "flag": True})

    fit = preview(dataset, columns=columns, data_format="prompt-answer")

    assert not fit["fits"]
    (missing,) = fit["missing"]
    assert missing["role"] == role
    assert part in missing["reason"]["en"]
    assert fit["offers"][0]["columns"] == {"prompt": "question", "answer": "answer"}


def test_the_same_rows_can_be_read_as_another_format(upload: Upload, preview: Preview) -> None:
    dataset = upload({"question": "1+1?", "answer": "2", "text": "One and one are two."})
    refused = preview(dataset, recipe="cpt")
    assert not refused["fits"]
    assert refused["offers"][0]["format"] == "text"

    fit = preview(dataset, recipe="cpt", data_format="text")

    assert fit["fits"]
    assert fit["sample"]["after"] == [{"text": "One and one are two."}]


def test_a_format_that_the_recipe_cannot_take_is_refused(upload: Upload, preview: Preview) -> None:
    fit = preview(upload({"text": "One and one are two."}), data_format="text")

    assert (fit["fits"], fit["read_as"], fit["conversion"]) == (False, "text", None)


def test_a_first_row_that_cannot_be_converted_is_found_now_and_not_in_the_run(
    upload: Upload, preview: Preview
) -> None:
    fit = preview(upload({"prompt": "2+2?", "chosen": CHAT, "rejected": WRONG}))

    assert not fit["fits"]
    assert "after the prompt" in fit["sample"]["problem"]
    assert fit["sample"]["after"] == []


def test_long_texts_of_the_sample_are_cut(upload: Upload, preview: Preview) -> None:
    fit = preview(upload({"text": "a" * 5000}), recipe="cpt")

    assert len(fit["sample"]["before"]["text"]) == len(fit["sample"]["after"][0]["text"]) == 2001


def test_every_conversion_is_described() -> None:
    for form, sources in CONVERSIONS.items():
        for source in sources:
            assert source is form or describe_conversion(form, source).zh


PARTS = [{"role": "user", "content": [{"text": "x"}]}]
#: What looks like messages lies deeper than a message would.
NESTED = [{"inner": {"role": "user", "content": "x"}, "role": {"name": "user"}}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", ColumnKind.TEXT),
        (1, ColumnKind.NUMBER),
        (1.5, ColumnKind.NUMBER),
        (Decimal("1.5"), ColumnKind.NUMBER),
        (True, ColumnKind.BOOLEAN),
        (CHAT, ColumnKind.MESSAGES),
        (PARTS, ColumnKind.MESSAGES),
        (NESTED, ColumnKind.OTHER),
        ([{"role": "user"}], ColumnKind.OTHER),
        ({"a": 1, "role": "x", "content": "y"}, ColumnKind.OBJECT),
        (["a"], ColumnKind.OTHER),
    ],
    ids=str,
)
def test_kinds_of_columns_follow_from_the_descriptions_that_are_kept(value: object, kind: ColumnKind) -> None:
    assert kind_of(describe_type(pa.array([value]).type)) is kind


def test_many_columns_make_no_millions_of_offers(upload: Upload, preview: Callable[..., Any]) -> None:
    dataset = upload({f"column_{number}": "text" for number in range(800)} | {"flag": True, "good": False})

    found = preview(dataset, recipe="kto")

    assert not found["fits"]
    assert len(found["offers"]) == MAX_OFFERS


@pytest.mark.parametrize(
    ("said", "is_warned_of"),
    [
        ("It is a number that follows one.", True),
        ("它是一之后的那个数，也是最小的质数，而且是唯一的偶质数。", True),
        ("她在二零一九年搬到了北京。", True),
        ("Yes. It is.", True),
        ("2", False),
        ("2.", False),
        ("42 km", False),
        ("New York", False),
        ("St. Louis", False),
        ("It is 2.", True),
        ("1, 2", False),
        ("1/2 + 3", False),
        ("北京", False),
        (r"x^2 + 2xy + y^2 = (x + y)^2 + \frac{1}{2} - \frac{1}{2}", False),
        ("One and one make " + "very " * 500 + "much: #### 2 apples", False),
    ],
)
def test_conversations_without_checkable_answers_are_warned_of_where_answers_are_compared(
    said: str, is_warned_of: bool, upload: Upload, model: Model, client: TestClient
) -> None:
    dataset = upload({"messages": [CHAT[0], {"role": "assistant", "content": said}]})
    body = {"name": "a job", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}

    answer = client.post("/api/v1/jobs/preview", json=body).json()

    assert (answer["data"]["fits"], answer["errors"]) == (True, [])
    found = {each["code"]: each["suggestion"] for each in answer["warnings"]}
    assert found.get("answers_not_checkable") == ("sft" if is_warned_of else None)
    assert client.post("/api/v1/jobs", json=body).status_code == 201


def test_pairs_and_questions_have_answers_of_their_own(
    upload: Upload, model: Model, client: TestClient
) -> None:
    dataset = upload({"question": "1+1?", "answer": "It is two, as everybody knows."})
    body = {"name": "a job", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}

    answer = client.post("/api/v1/jobs/preview", json=body).json()

    assert "answers_not_checkable" not in [each["code"] for each in answer["warnings"]]


def test_rows_that_a_recipe_cannot_read_are_refused_with_the_recipes_for_them(
    upload: Upload, model: Model, client: TestClient
) -> None:
    dataset = upload({"chosen": CHAT, "rejected": WRONG})
    body = {"name": "a job", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}

    refused = client.post("/api/v1/jobs", json=body).json()

    assert "Recipes for preference data: dpo, orpo, reward_model, simpo." in refused["message"]
