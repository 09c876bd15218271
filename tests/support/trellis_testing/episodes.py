"""Episodes without a model: a server that writes what a script says, behind verl's own agent-loop helpers."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from trellis_train.starter.model import make_tokenizer

#: ChatML with tools and their results, as Qwen2.5 writes them.
TOOL_TEMPLATE = (
    "{%- if messages[0].role == 'system' %}"
    "{% set system = messages[0].content %}{% set rest = messages[1:] %}"
    "{%- else %}{% set system = 'You are helpful.' %}{% set rest = messages %}{% endif -%}"
    "<|im_start|>system\n{{ system }}"
    "{%- if tools %}\n<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>{% endif -%}"
    "<|im_end|>\n"
    "{%- for message in rest %}"
    "{%- if message.role == 'tool' %}"
    "{%- if loop.first or rest[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ message.content }}\n</tool_response>"
    "{%- if loop.last or rest[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{%- else %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}"
    "\n<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Policy = Callable[[Sequence[int], int], str]


def make_tool_tokenizer() -> Any:
    """Make a tokenizer with one token per byte and a chat template that supports tools."""
    tokenizer = make_tokenizer()
    tokenizer.chat_template = TOOL_TEMPLATE
    return tokenizer


class ScriptedServer:
    """Answers like verl's ``LLMServerClient``, turn by turn; text ``n`` of ``script`` in turn ``n``."""

    def __init__(self, tokenizer: Any, script: Sequence[str] | Policy, *, token_s: float = 0.0) -> None:
        self.tokenizer = tokenizer
        self.script = script
        self.token_s = token_s
        #: What was sampled, request by request.
        self.sampled: list[list[int]] = []
        self.prompts: list[list[int]] = []
        self.params: list[dict[str, Any]] = []
        self._turns: dict[str, int] = {}

    async def generate(
        self, request_id: str, *, prompt_ids: Sequence[int], sampling_params: dict[str, Any], **_: Any
    ) -> Any:
        turn = self._turns.get(request_id, 0)
        self._turns[request_id] = turn + 1
        text = self.script(prompt_ids, turn) if callable(self.script) else self.script[turn]
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        ids = ids[: sampling_params["max_tokens"]]
        if self.token_s:
            await asyncio.sleep(self.token_s * len(ids))
        self.sampled.append(ids)
        self.prompts.append(list(prompt_ids))
        self.params.append(dict(sampling_params))
        logprobs = [-0.001 * (place + 1) for place in range(len(ids))]
        return SimpleNamespace(
            token_ids=ids, log_probs=logprobs, num_preempted=0, stop_reason="completed", extra_fields={}
        )


def loop_arguments(
    server: Any, tokenizer: Any, *, prompt_length: int = 4000, response_length: int = 4000
) -> dict[str, Any]:
    """Return the arguments with which verl's worker creates an agent loop."""
    rollout = SimpleNamespace(prompt_length=prompt_length, response_length=response_length)
    config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout), data={})
    return {
        "trainer_config": SimpleNamespace(config=config),
        "server_manager": server,
        "tokenizer": tokenizer,
        "processor": None,
        "dataset_cls": None,
        "data_config": SimpleNamespace(config={}),
        "hf_model_type": "qwen2",
    }
