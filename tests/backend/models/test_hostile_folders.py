"""Model folders and chat templates that are made to hang, to fill memory or to run code."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_api.models.chat_templates import RunawayTemplate, find_problem
from trellis_api.models.inspection import ModelFacts, UnusableFolder, inspect_folder

WriteModel = Callable[..., Path]
#: Of a busy machine; each must be ended long before it would end by itself.
LONGEST_S = 60

RUNAWAYS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "output": "{% for a in range(99999) %}{{ 'x' * 99999 }}{% endfor %}",
    "memory": "{{ ('x' * 9999999999) | length }}",
    "powers": "{{ 10 ** (10 ** 10) }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "doubling": "{% set n = namespace(x='x') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
}
#: Each takes too long only where one of the uses of trainers and engines comes to it.
ENDLESS = "{{ ('x' * 9999999999) | length }}"
HIDDEN = {
    "without a prompt": "{% if not add_generation_prompt %}" + ENDLESS + "{% endif %}",
    "with tools": "{% if tools %}" + ENDLESS + "{% endif %}",
    "of a turn on its own": "{% if messages | length == 1 %}" + ENDLESS + "{% endif %}",
    "of a tool": "{% for m in messages if m.role == 'tool' %}" + ENDLESS + "{% endfor %}",
    "of a tool call": "{% for m in messages if m.tool_calls %}" + ENDLESS + "{% endfor %}",
    "after a refusal": "{% if messages[0].role != 'tool' %}{{ raise_exception('no') }}{% endif %}" + ENDLESS,
    "while thinking": "{% if enable_thinking %}" + ENDLESS + "{% endif %}",
}
BROKEN = {
    "an include": ("{% include '/etc/passwd' %}", "no loader"),
    "an import": ("{% import 'os' as os %}", "no loader"),
    "a way to Python": ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
    "no template": ("{% for %}", "TemplateSyntaxError"),
}
ORDINARY = [
    "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{% endfor %}",
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ bos_token }}",
    "{% for m in messages %}{% generation %}{{ m.content | tojson }}{% endgeneration %}"
    "{% if loop.last %}{% break %}{% endif %}{% endfor %}{{ strftime_now('%Y') }}",
]


def inspect(folder: Path) -> ModelFacts:
    return inspect_folder(folder, root=folder.parent)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("loops", "powers", "doubling") else [])
        for name in RUNAWAYS
    ],
)
def test_a_template_without_end_is_ended(name: str) -> None:
    started = time.monotonic()

    with pytest.raises(RunawayTemplate):
        find_problem(RUNAWAYS[name])

    assert time.monotonic() - started < LONGEST_S


@pytest.mark.parametrize("template", HIDDEN.values(), ids=HIDDEN)
def test_a_template_without_end_in_one_of_its_uses_is_ended(template: str) -> None:
    with pytest.raises(RunawayTemplate):
        find_problem(template)


@pytest.mark.parametrize(("template", "told"), BROKEN.values(), ids=BROKEN)
def test_a_template_reaches_nothing_but_the_conversation(template: str, told: str) -> None:
    assert told in (find_problem(template) or "")


@pytest.mark.parametrize("template", ORDINARY)
def test_ordinary_templates_are_fine(template: str) -> None:
    assert find_problem(template) is None


@pytest.mark.parametrize("form", ["one", "list", "mapping"])
@pytest.mark.parametrize(
    "place",
    [
        "chat_template.jinja",
        "additional_chat_templates/tool_use.jinja",
        "chat_template.json",
        "tokenizer_config.json",
    ],
)
def test_a_model_with_a_runaway_template_is_refused(
    tmp_path: Path, write_model: WriteModel, place: str, form: str
) -> None:
    """Beside harmless ones in all other places: which of them is used differs between libraries."""
    folder, template = write_model(tmp_path / "m"), RUNAWAYS["memory"]
    forms = {"one": template, "list": [{"name": "a", "template": template}], "mapping": {"a": template}}
    for name in ("chat_template.jinja", "chat_template.json", "tokenizer_config.json"):
        fine = ORDINARY[0]
        (folder / name).write_text(fine if name.endswith("jinja") else json.dumps({"chat_template": fine}))
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text(
        template if place.endswith("jinja") else json.dumps({"chat_template": forms[form]})
    )

    with pytest.raises(UnusableFolder) as refused:
        inspect(folder)

    assert refused.value.code == "chat_template_runaway"


def test_a_template_that_fails_is_a_warning(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "chat_template.jinja").write_text(BROKEN["an include"][0])

    assert [each["code"] for each in inspect(folder).warnings] == ["chat_template_fails"]


def test_pickles_beside_safetensors_are_a_warning(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "training_args.bin").write_bytes(b"\x80\x04")

    assert [each["code"] for each in inspect(folder).warnings] == ["pickled_files"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"architectures": ["A"], "max_position_embeddings": NaN, "vocab_size": Infinity}', None),
        ('{"architectures": ["A"], "max_position_embeddings": 1' + "0" * 4000 + "}", None),
        ('{"architectures": ["A"], "vocab_size": 1' + "0" * 9000 + "}", "config_invalid"),
        ('{"a": ' * 100_000, "config_invalid"),
    ],
)
def test_numbers_and_nesting_that_json_allows_or_does_not(
    tmp_path: Path, write_model: WriteModel, content: str, code: str | None
) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "config.json").write_text(content)

    if code is None:
        facts = inspect(folder)
        assert (facts.context_length, facts.vocabulary_size) == (None, None)
        return
    with pytest.raises(UnusableFolder) as refused:
        inspect(folder)
    assert refused.value.code == code


def test_thousands_of_files_below_nested_folders_are_refused(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    deep = str(folder)
    for _ in range(200):  # pytest removes it by recursion afterwards
        deep += "/d"
        os.mkdir(deep)
    for number in range(9900):
        (folder / f"f{number}").touch()

    with pytest.raises(UnusableFolder) as refused:
        inspect(folder)

    assert refused.value.code == "too_many_files"
