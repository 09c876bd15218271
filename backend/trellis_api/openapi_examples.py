"""Request bodies that can be sent as they are, but for ids: for those who read the schema to write a curl."""

from typing import Any

#: By path below the API's prefix and method.
EXAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("/models", "post"): {"source": {"kind": "catalogue", "name": "smollm2-135m-instruct"}},
    ("/datasets/imports", "post"): {
        "source": {"kind": "hub", "repo_id": "openai/gsm8k", "under": "main"},
        "name": "gsm8k",
    },
    ("/jobs", "post"): {
        "name": "first",
        "recipe": "sft",
        "model": "mdl_abcdefgh2345",
        "dataset": "ds_abcdefgh2345",
        "params": {"epochs": 1, "learning_rate": 1e-5},
        "export_as": {"name": "first-model"},
    },
    ("/jobs/preview", "post"): {
        "name": "first",
        "recipe": "grpo",
        "model": "mdl_abcdefgh2345",
        "dataset": "ds_abcdefgh2345",
        "params": {"total_steps": 100},
    },
    ("/jobs/{job_id}/checkpoints/{step}/export", "post"): {"name": "first-model", "form": "merged"},
    ("/evaluations", "post"): {
        "targets": [{"kind": "model", "model": "mdl_abcdefgh2345"}],
        "benchmarks": [{"benchmark": "gsm8k", "limit": 100}],
    },
    ("/environments", "post"): {
        "name": "people",
        "kind": "linksearch",
        "parameters": {"profiles": 2000, "train": 1000, "eval": 100},
    },
    ("/environments/{environment_id}/calls", "post"): {
        "tool": "search_profile",
        "arguments": {"sql": "SELECT name FROM profiles LIMIT 3"},
    },
    ("/sweeps", "post"): {
        "name": "learning rate",
        "job": {
            "name": "learning rate",
            "recipe": "sft",
            "model": "mdl_abcdefgh2345",
            "dataset": "ds_abcdefgh2345",
        },
        "parameters": {"learning_rate": {"min": 1e-6, "max": 1e-4, "scale": "log"}},
        "budget": {"runs": 20},
        "search": {"method": "bayesian"},
    },
    ("/job-pipelines", "post"): {
        "name": "reasoning",
        "stages": [
            {
                "id": "sft",
                "recipe": "sft",
                "dataset": "ds_abcdefgh2345",
                "model": {"base": "mdl_abcdefgh2345"},
            },
            {"id": "grpo", "recipe": "grpo", "dataset": "ds_abcdefgh2346", "model": {"stage": "sft"}},
        ],
    },
}


def add_examples(schema: dict[str, Any], prefix: str) -> None:
    """Put the examples beside the bodies' schemas. Raises ``KeyError`` for a request that there is not."""
    for (path, method), example in EXAMPLES.items():
        content = schema["paths"][f"{prefix}{path}"][method]["requestBody"]["content"]
        content["application/json"]["example"] = example
