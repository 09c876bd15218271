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
    ("/datasets/rows", "post"): {
        "name": "hand-written",
        "rows": [
            {"messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]}
        ],
    },
    ("/datasets/{dataset_id}/tags", "post"): {"name": "reviewed", "version": "main"},
    ("/datasets/{dataset_id}/diff", "post"): {"before": "reviewed", "after": "main"},
    ("/pipelines/runs", "post"): {
        "pipeline": {
            "name": "clean",
            "format": "messages",
            "steps": [{"operator": "empty_answers"}, {"operator": "minhash_duplicates"}],
        },
        "dataset": "ds_abcdefgh2345",
        "output": {"kind": "dataset", "name": "clean rows"},
    },
    ("/rewards/files", "post"): {
        "name": "short",
        "code": "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return 1.0 if ground_truth in solution_str and len(solution_str) < 200 else 0.0\n",
    },
    ("/rewards/dry-runs", "post"): {
        "dataset": "ds_abcdefgh2345",
        "rewards": [{"name": "exact", "weight": 1.0}],
        "rows": 64,
    },
    ("/jobs/{job_id}", "patch"): {
        "name": "lr 1e-5",
        "add_tags": ["baseline"],
        "notes": "First run that fits.",
    },
    ("/jobs/{job_id}/checkpoints/{step}", "patch"): {"is_kept": True},
    ("/evaluations/estimate", "post"): {
        "targets": [{"kind": "checkpoint", "job": "job_abcdefgh2345", "step": 100}],
        "benchmarks": [{"benchmark": "gsm8k", "limit": 100}],
    },
    ("/reports", "post"): {
        "name": "before and after",
        "evaluations": ["ev_abcdefgh2345", "ev_abcdefgh2346"],
        "formats": ["md", "html"],
    },
    ("/models/{model_id}/push", "post"): {"repo_id": "team/first-model", "private": True},
    ("/models/{model_id}/gguf", "post"): {"type": "q8_0"},
    ("/registry", "post"): {
        "name": "support-bot",
        "model": "mdl_abcdefgh2345",
        "note": "Trained on the tickets.",
    },
    ("/registry/{registry_name}/aliases/{alias}", "put"): {"version": 2, "note": "Better on GSM8K."},
    ("/workflows", "post"): {
        "name": "calculator",
        "code": "async def workflow(task, model):\n"
        "    reply = await model([{'role': 'user', 'content': task['question']}])\n"
        "    return float(str(task['answer']) in reply.message['content'])\n",
    },
    ("/votes/dataset", "post"): {"name": "preferred answers", "blind_only": True},
}
#: Of requests as OpenAI's clients send them, by whole path and method.
OPENAI_EXAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("/v1/chat/completions", "post"): {
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_tokens": 64,
    },
    ("/v1/completions", "post"): {
        "model": "job_abcdefgh2345:latest",
        "prompt": "The capital of France is",
        "max_tokens": 16,
    },
    ("/v1/embeddings", "post"): {"model": "my-encoder", "input": ["a sentence", "another one"]},
    ("/v1/responses", "post"): {"model": "support-bot:production", "input": "Where is my order?"},
    ("/v1/fine_tuning/jobs", "post"): {
        "model": "smollm2-135m-instruct",
        "training_file": "file-abcdefgh2345",
        "method": {"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 1}}},
        "suffix": "support",
    },
}


def add_examples(schema: dict[str, Any], prefix: str) -> None:
    """Put the examples beside the bodies' schemas. Raises ``KeyError`` for a request that there is not."""
    own = {(f"{prefix}{path}", method): example for (path, method), example in EXAMPLES.items()}
    for (path, method), example in {**own, **OPENAI_EXAMPLES}.items():
        content = schema["paths"][path][method]["requestBody"]["content"]
        content["application/json"]["example"] = example
