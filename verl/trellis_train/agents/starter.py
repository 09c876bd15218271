"""A small model that agents begin from: weights by seed, a tokenizer trained on their conversations.

``python -m trellis_train.agents.starter --rows FILE --model DIR`` takes conversations (``messages`` and,
where the tools are not in the system's text, ``tools``). What every conversation repeats becomes one token
each (``phrases``): a prompt of a thousand words is then some dozen tokens, and a CPU trains on episodes in
seconds.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis_data.json_objects import read_objects

from trellis_train.agents.induction import add_induction_heads
from trellis_train.starter.model import (
    END_OF_TEXT,
    TURN_END,
    TURN_START,
    ModelSize,
    draw_model,
    save,
    wrap_tokenizer,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

#: ChatML with tools and their results in the hermes form, as Qwen2.5's template has them.
CHAT_TEMPLATE = (
    "{%- set system = messages[0].content if messages[0].role == 'system' else '' -%}"
    "{%- set rest = messages[1:] if messages[0].role == 'system' else messages -%}"
    "{%- if system or tools -%}<|im_start|>system\n{{ system }}"
    "{%- if tools -%}{{ '\n\n# Tools\n<tools>' }}"
    "{%- for tool in tools -%}{{ '\n' + tool | tojson }}{%- endfor -%}"
    "{{ '\n</tools>\nCall one so:\n<tool_call>\n"
    '{"name": <its name>, "arguments": <an object>}'
    "\n</tool_call>' }}{%- endif -%}"
    "{{ '<|im_end|>\n' }}{%- endif -%}"
    "{%- for message in rest -%}"
    "{%- if message.role == 'tool' -%}"
    "{%- if loop.first or rest[loop.index0 - 1].role != 'tool' -%}<|im_start|>user{%- endif -%}"
    "{{ '\n<tool_response>\n' + message.content + '\n</tool_response>' }}"
    "{%- if loop.last or rest[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\n' }}{%- endif -%}"
    "{%- else -%}"
    "{{ '<|im_start|>' + message.role + '\n' + (message.content or '') }}"
    "{%- for call in message.tool_calls or [] -%}"
    "{{ '\n<tool_call>\n' + (call.function or call) | tojson + '\n</tool_call>' }}{%- endfor -%}"
    "{{ '<|im_end|>\n' }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)
#: What the template itself says with tools.
TEMPLATE_PHRASES = (
    "# Tools",
    "<tools>",
    "</tools>",
    "Call one so:",
    '{"name": <its name>, "arguments": <an object>}',
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
#: About 0.7M parameters with 1,500 tokens.
SIZE = ModelSize(hidden=128, intermediate=320, layers=3, heads=4, key_value_heads=4)
VOCABULARY = 1024
MAX_POSITIONS = 16384
#: As Qwen2.5 has it: what a head compares is alike over hundreds of tokens.
ROPE_THETA = 1e6
#: Words and signs by themselves: a name is the same tokens in a question, a statement and a result.
_PIECES = r"""[ \n"'%;,.:(){}\[\]\\/|<>?=+*\-_]"""


def make_tokenizer(
    texts: Iterable[str], *, phrases: Sequence[str] = (), vocabulary: int = VOCABULARY
) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE of at most ``vocabulary`` tokens on ``texts``, plus a token for each phrase.

    A line break is always a token of its own: verl's token builder relies on it.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    whole = sorted({*TEMPLATE_PHRASES, *phrases}, key=lambda phrase: (-len(phrase), phrase))
    between = re.compile("|".join(re.escape(each) for each in (*whole, TURN_START, TURN_END)))
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
        min_frequency=2,
    )
    tokenizer.train_from_iterator((piece for text in texts for piece in between.split(text)), trainer)
    tokenizer.add_special_tokens([END_OF_TEXT, TURN_START, TURN_END])
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in whole])
    return wrap_tokenizer(tokenizer, chat_template=CHAT_TEMPLATE, longest=MAX_POSITIONS)


def write_model(
    folder: Path, tokenizer: "PreTrainedTokenizerFast", *, seed: int, size: ModelSize = SIZE
) -> None:
    """Write weights drawn by ``seed``, configuration and tokenizer in Hugging Face format."""
    model = draw_model(
        size,
        tokenizer,
        seed=seed,
        finish=add_induction_heads,
        max_position_embeddings=MAX_POSITIONS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        # Of a layer that keeps the size of what passes through it; transformers' 0.02 is meant for wide ones.
        initializer_range=round(size.hidden**-0.5, 4),
    )
    save(folder, model, tokenizer)


def conversation_texts(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts to train a tokenizer on: each row's messages, and its tools, one per line."""
    for row in rows:
        for message in row["messages"]:
            yield str(message["role"])
            yield str(message.get("content") or "")
            for call in message.get("tool_calls") or []:
                yield json.dumps(call.get("function", call), ensure_ascii=False)
        for tool in _tools_of(row):
            yield json.dumps(tool, ensure_ascii=False)


def common_phrases(rows: Sequence[Mapping[str, Any]], *, shortest: int = 12) -> list[str]:
    """Return the lines that all rows begin with, without numbers: their system prompt and tools."""
    system = {str(row["messages"][0]["content"]) for row in rows if row["messages"][0]["role"] == "system"}
    tools = {json.dumps(tool, ensure_ascii=False) for row in rows for tool in _tools_of(row)}
    lines = {line for text in system for line in text.splitlines()} | tools
    if len(lines) > 200:  # as many prompts as rows: nothing is common to them
        return []
    parts = {part for line in lines for part in re.split(r"\d+", line)}
    return sorted(part for part in parts if len(part) >= shortest)


def _tools_of(row: Mapping[str, Any]) -> list[Any]:
    tools = row.get("tools") or []
    return list(json.loads(tools) if isinstance(tools, str) else tools)


def main(arguments: list[str]) -> int:
    """Write the model; prints its size as JSON."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.starter", description=__doc__)
    parser.add_argument("--rows", type=Path, action="append", required=True, help="conversations, JSON lines")
    parser.add_argument("--model", type=Path, required=True, help="folder for the model")
    parser.add_argument("--phrases", type=Path, help="a JSON list of texts that become one token each")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    given = parser.parse_args(arguments)
    rows = [row for path in given.rows for row in read_objects(path)]
    phrases = json.loads(given.phrases.read_text()) if given.phrases else common_phrases(rows)
    tokenizer = make_tokenizer(conversation_texts(rows), phrases=phrases, vocabulary=given.vocabulary)
    write_model(given.model, tokenizer, seed=given.seed)
    print(json.dumps({"model": str(given.model), "tokens": len(tokenizer), "phrases": len(phrases)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
