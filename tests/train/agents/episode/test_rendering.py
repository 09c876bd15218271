"""Renderings that are kept: the same tokens, made once, and nobody else's to change."""

from typing import Any

from trellis_testing.episodes import make_tool_tokenizer
from trellis_train.agents.episode.rendering import remember_renderings
from verl.utils.tokenizer.continuous_token import ContinuousTokenBuilder

ASKED = [{"role": "user", "content": "who?"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]


def make(most: int = 8) -> tuple[Any, list[Any]]:
    builder, made = ContinuousTokenBuilder(make_tool_tokenizer()), []
    render = builder._render_tokens

    def counted(messages: Any, **options: Any) -> Any:
        made.append((messages, options))
        return render(messages, **options)

    builder._render_tokens = counted
    remember_renderings(builder, most)
    return builder, made


def test_a_prompt_is_rendered_once_and_as_verl_does() -> None:
    builder, made = make()

    first, second = (builder.build_initial_tokens(ASKED, tools=TOOLS) for _ in range(2))

    assert (
        first
        == second
        == ContinuousTokenBuilder(make_tool_tokenizer()).build_initial_tokens(ASKED, tools=TOOLS)
    )
    assert len(made) == 1


def test_other_messages_tools_and_ends_are_other_renderings() -> None:
    builder, made = make()
    other = [{"role": "user", "content": "where?"}]

    for messages, ends, tools in (
        (ASKED, True, None),
        (ASKED, False, None),
        (ASKED, True, TOOLS),
        (other, True, None),
    ):
        builder._render_tokens(messages, add_generation_prompt=ends, tools=tools)

    assert len(made) == 4


def test_what_one_episode_appends_is_not_in_the_next_ones_prompt() -> None:
    builder, _ = make()

    builder.build_initial_tokens(ASKED).append(0)

    assert builder.build_initial_tokens(ASKED) == ContinuousTokenBuilder(
        make_tool_tokenizer()
    ).build_initial_tokens(ASKED)


def test_only_the_last_ones_are_kept() -> None:
    builder, made = make(most=1)

    for messages in (ASKED, [{"role": "user", "content": "where?"}], ASKED):
        builder.build_initial_tokens(messages)

    assert len(made) == 3
