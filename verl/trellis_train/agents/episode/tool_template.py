"""Whether a model's chat template shows tools, and a template that shows them for one that does not."""

from typing import Any

from trellis_train.agents.unusable import AgentUnusable

#: Values of the parameter ``tool_template``: the model's own template, or that with tools put into it.
OWN, HERMES = "model", "hermes"
_PROBE = "probe_of_tools"
_PROBED = {
    "type": "function",
    "function": {"name": _PROBE, "description": "", "parameters": {"type": "object", "properties": {}}},
}
_TURNS = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Who?"}]
#: Says to the model what Qwen2.5's own template says. What stands behind it is the model's template, which
#: gets tools in the system's text, calls in the assistant's, and results as a user's turn.
_PRELUDE = r"""
{%- set shown = namespace(messages=[], tools='', in_results=false) -%}
{%- if tools -%}
{%- set shown.tools = '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' ~
    'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' -%}
{%- for tool in tools -%}{%- set shown.tools = shown.tools ~ '\n' ~ (tool | tojson) -%}{%- endfor -%}
{%- set shown.tools = shown.tools ~ '\n</tools>\n\nFor each function call, return a json object with ' ~
    'function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n' ~
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' -%}
{%- if not messages or messages[0]['role'] != 'system' -%}
{%- set shown.messages = [{'role': 'system', 'content': shown.tools}] -%}
{%- set shown.tools = '' -%}
{%- endif -%}
{%- endif -%}
{%- for message in messages -%}
{%- set content = message['content'] if message['content'] is string else '' -%}
{%- if message['role'] == 'tool' -%}
{%- set result = '<tool_response>\n' ~ content ~ '\n</tool_response>' -%}
{%- if shown.in_results -%}
{%- set last = shown.messages[-1]['content'] ~ '\n' ~ result -%}
{%- set shown.messages = shown.messages[:-1] + [{'role': 'user', 'content': last}] -%}
{%- else -%}
{%- set shown.messages = shown.messages + [{'role': 'user', 'content': result}] -%}
{%- endif -%}
{%- elif message['role'] == 'system' and shown.tools -%}
{%- set shown.messages = shown.messages + [{'role': 'system', 'content': content ~ '\n\n' ~ shown.tools}] -%}
{%- set shown.tools = '' -%}
{%- elif message['tool_calls'] -%}
{%- set said = namespace(text=content) -%}
{%- for call in message['tool_calls'] -%}
{%- set function = call['function'] if call['function'] else call -%}
{%- set given = function['arguments'] -%}
{%- set arguments = given if given is string else given | tojson -%}
{%- set said.text = said.text ~ ('\n' if said.text else '') ~ '<tool_call>\n{"name": ' ~
    (function['name'] | tojson) ~ ', "arguments": ' ~ arguments ~ '}\n</tool_call>' -%}
{%- endfor -%}
{%- set shown.messages = shown.messages + [{'role': 'assistant', 'content': said.text}] -%}
{%- else -%}
{%- set shown.messages = shown.messages + [message] -%}
{%- endif -%}
{%- set shown.in_results = message['role'] == 'tool' -%}
{%- endfor -%}
{%- set messages = shown.messages -%}
{%- set tools = none -%}
"""


def with_tools(template: str) -> str:
    """Return the chat template extended to show tools in the Hermes format."""
    return _PRELUDE.strip() + template


def shows_tools(tokenizer: Any) -> bool:
    """Tell whether the tokenizer's chat template shows tools; one that fails on them does not."""
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        return False
    try:
        text = tokenizer.apply_chat_template(
            _TURNS, tools=[_PROBED], add_generation_prompt=True, tokenize=False
        )
    except (TemplateError, ValueError, TypeError, KeyError):
        return False
    return _PROBE in str(text)


def choose_template(model: str, choice: str) -> str | None:
    """Return the chat template that replaces the model's own; None to keep the model's own.

    Raises ``AgentUnusable`` where tools would not be shown.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise AgentUnusable(f"The tokenizer of {model} cannot be read: {reason}") from error
    require_shown(tokenizer, model, choice)
    return str(tokenizer.chat_template) if choice == HERMES else None


def require_shown(tokenizer: Any, model: str, choice: str) -> None:
    """Raise ``AgentUnusable`` where tools are not shown. Of ``hermes`` the tokenizer gets the template."""
    if not tokenizer.chat_template:
        raise AgentUnusable(f"The model {model} has no chat template. Choose a chat model.")
    if choice == HERMES:
        tokenizer.chat_template = with_tools(tokenizer.chat_template)
    if not shows_tools(tokenizer):
        advice = (
            "Choose a model with tool support."
            if choice == HERMES
            else f"Choose a model with tool support, or set tool_template to {HERMES}."
        )
        raise AgentUnusable(f"The chat template of {model} does not support tools. {advice}")
