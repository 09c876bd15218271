"""A job of which only recipe, model and dataset are said: every recipe has defaults that run."""

import json
from dataclasses import asdict
from itertools import islice
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_contracts.recipe import DataFormat, Recipe
from trellis_data.samples.addition import make_sets
from trellis_data.samples.preferences import make_pairs, unpair
from trellis_recipes.catalogue import list_recipes
from trellis_testing.datasets import add_dataset
from trellis_testing.model_folders import write_model_folder
from trellis_train.agents.tooluse.data.tool_queries import make_tool_queries
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.formatting.training_rows import retrieval_row
from trellis_train.starter.model import CHAT_TEMPLATE, MAX_POSITIONS, SIZES, STARTER

from tests.backend.conftest import build_model

SEED = 1
ROWS = 512
STARTER_CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": SIZES[STARTER].hidden,
    "intermediate_size": SIZES[STARTER].intermediate,
    "num_hidden_layers": SIZES[STARTER].layers,
    "num_attention_heads": SIZES[STARTER].heads,
    "num_key_value_heads": SIZES[STARTER].key_value_heads,
    "max_position_embeddings": MAX_POSITIONS,
    "tie_word_embeddings": True,
    "vocab_size": 259,
}
#: As SmolLM2-135M-Instruct has them.
SMOLLM_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "head_dim": 64,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "vocab_size": 49_152,
}
SMOLLM_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, "
    "trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MODELS = {"starter": (STARTER_CONFIG, CHAT_TEMPLATE), "smollm2": (SMOLLM_CONFIG, SMOLLM_TEMPLATE)}
#: What only a person can choose: an agent's code, where it searches, and how a model is told of tools.
NEEDS_MORE = {
    "linksearch": {("environment_missing", "params.environment"), ("tools_not_shown", "model")},
    "tune": {("workflow_missing", "params.workflow")},
}
Rows = list[dict[str, Any]]


def make_rows(recipe: Recipe) -> Rows:
    """Rows that suit a recipe, as the sample datasets have them."""
    if recipe.id == "agent_retrieval":
        tools = make_tools(SEED)
        by_name = {tool.name: tool.row for tool in tools.all}
        queries = islice(make_tool_queries(tools, seed=SEED), ROWS)
        return [retrieval_row(query, by_name, index=place) for place, query in enumerate(queries)]
    pairs = make_pairs(SEED)[0][:ROWS]
    if recipe.row_format is DataFormat.PREFERENCE:
        return [asdict(pair) for pair in pairs]
    if recipe.row_format is DataFormat.UNPAIRED_PREFERENCE:
        return [row for pair in pairs for row in unpair([pair])]
    if recipe.row_format is DataFormat.TEXT:
        return [{"text": f"{pair.prompt} {pair.chosen}"} for pair in pairs]
    return [{"prompt": row.prompt, "answer": row.answer} for row in make_sets(SEED).rl_train[:ROWS]]


@pytest.mark.parametrize("name", MODELS)
def test_recipe_model_and_dataset_are_enough(
    name: str, client: TestClient, database: Database, settings: Settings
) -> None:
    config, template = MODELS[name]
    recipes = list_recipes()
    kinds = {(recipe.id == "agent_retrieval", recipe.row_format): recipe for recipe in recipes}
    with database.write() as session:
        model = build_model(settings)
        session.add(model)
        datasets = {
            kind: add_dataset(session, settings, make_rows(recipe)).id for kind, recipe in kinds.items()
        }
        model_id, folder = model.id, settings.data_root / str(model.path)
    folder.rmdir()
    write_model_folder(folder, **config)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))

    found = {}
    for recipe in recipes:
        dataset = datasets[recipe.id == "agent_retrieval", recipe.row_format]
        request = {"name": "defaults", "recipe": recipe.id, "model": model_id, "dataset": dataset}
        answer = client.post("/api/v1/jobs/preview", json=request)
        assert answer.status_code == 200, answer.text
        preview = answer.json()
        assert preview["data"]["fits"], recipe.id
        assert preview["memory"]["peak_bytes"], recipe.id
        if preview["errors"]:
            found[recipe.id] = {(error["code"], error["field"]) for error in preview["errors"]}

    assert found == NEEDS_MORE
