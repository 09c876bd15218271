"""Chat templates that show no tools: found out, and given what they lack."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from trellis_train.agents.episode.tool_template import HERMES, OWN, choose_template, shows_tools, with_tools
from trellis_train.agents.starter import make_tokenizer
from trellis_train.agents.unusable import AgentUnusable

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]},
    {"role": "tool", "content": "2"},
    {"role": "tool", "content": "2"},
    {"role": "assistant", "content": "Two."},
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer(["find Ada"] * 3, vocabulary=300)


def render(tokenizer: Any, template: str, talk: list[dict[str, Any]], tools: Any = None) -> str:
    return str(tokenizer.apply_chat_template(talk, tools=tools, chat_template=template, tokenize=False))


def test_tools_calls_and_results_are_told_in_the_hermes_form(tokenizer: Any) -> None:
    shown = render(tokenizer, with_tools(CHATML), TALK, [TOOL])

    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    result = "<tool_response>\n2\n</tool_response>"
    system, *turns = shown.split("<|im_start|>")[1:]
    assert system.startswith("system\nBe brief.\n\n# Tools\n\nYou may call one or more functions")
    assert '<tools>\n{"type": "function", "function": {"name": "add"' in system
    assert turns == [
        "user\n1+1?<|im_end|>\n",
        f"assistant\n{call}\n{call}<|im_end|>\n",
        f"user\n{result}\n{result}<|im_end|>\n",
        "assistant\nTwo.<|im_end|>\n",
    ]


def test_without_tools_it_is_the_models_own(tokenizer: Any) -> None:
    talk = [each for each in TALK if each["role"] != "tool" and "tool_calls" not in each]

    assert render(tokenizer, with_tools(CHATML), talk) == render(tokenizer, CHATML, talk)


def test_tools_are_told_where_nobody_says_anything_first(tokenizer: Any) -> None:
    shown = render(tokenizer, with_tools(CHATML), TALK[1:2], [TOOL])

    assert shown.startswith("<|im_start|>system\n# Tools")
    assert '"name": "add"' in shown


def test_a_template_is_refused_or_replaced_as_asked(tokenizer: Any, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path / "knows")
    plain = AutoTokenizer.from_pretrained(tmp_path / "knows")
    plain.chat_template = CHATML
    plain.save_pretrained(tmp_path / "plain")
    plain.chat_template = None
    plain.save_pretrained(tmp_path / "none")

    assert choose_template(str(tmp_path / "knows"), OWN) is None
    assert choose_template(str(tmp_path / "plain"), HERMES) == with_tools(CHATML)
    with pytest.raises(AgentUnusable, match=r"does not support tools.*set tool_template to hermes"):
        choose_template(str(tmp_path / "plain"), OWN)
    with pytest.raises(AgentUnusable, match="has no chat template"):
        choose_template(str(tmp_path / "none"), HERMES)


def test_the_template_reaches_verl_as_it_is(tokenizer: Any) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from trellis_recipes.hydra_text import text

    override = OverridesParser.create().parse_override(f"a.b={text(with_tools(CHATML))}")

    assert OmegaConf.create({"a": override.value()}).a == with_tools(CHATML)


def test_a_template_that_fails_on_tools_shows_none(tokenizer: Any) -> None:
    class Failing:
        chat_template = "x"

        def apply_chat_template(self, *_: Any, **__: Any) -> str:
            raise ValueError("no system message, please")

    assert not shows_tools(Failing())
    assert shows_tools(tokenizer)
