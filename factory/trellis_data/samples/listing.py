"""Lists the sample datasets: what each is for, and its rows."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trellis_contracts.recipe import DataFormat, Text

from trellis_data.samples.addition import Problem, make_sets
from trellis_data.samples.preferences import make_pairs
from trellis_data.samples.tickets import Ticket, make_tickets

#: Of all samples: everyone gets the same rows.
_SEED = 0


@dataclass(frozen=True)
class Sample:
    """A sample dataset."""

    name: str
    title: Text
    description: Text
    format: DataFormat
    make_rows: Callable[[], list[dict[str, Any]]]


def list_samples() -> tuple[Sample, ...]:
    """List all samples: first tasks that a starter model can learn, then those for pretrained models."""
    return _SAMPLES


def find_sample(name: str) -> Sample | None:
    """Return the sample of this name, or None."""
    return next((sample for sample in _SAMPLES if sample.name == name), None)


def _answers(problems: Sequence[Problem | Ticket]) -> list[dict[str, Any]]:
    return [{"prompt": each.prompt, "answer": each.answer} for each in problems]


_SAMPLES = (
    Sample(
        "addition-answers",
        Text(en="Addition: worked answers", zh="加法：示范答案"),
        Text(
            en="One-digit sums in six wordings, for SFT. Half of the answers hedge (“~7”).",
            zh="六种问法的一位数加法，用于监督训练；一半答案含糊（“~7”）。",
        ),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_sets(_SEED).sft),
    ),
    Sample(
        "addition-prompts",
        Text(en="Addition: prompts for RL", zh="加法：强化学习提示"),
        Text(
            en="Other prompts with the right sum, for GRPO with an exact-match reward.",
            zh="另一些提示及正确的和，用于 GRPO 与精确匹配奖励。",
        ),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_sets(_SEED).rl_train),
    ),
    Sample(
        "addition-prompts-held-out",
        Text(en="Addition: held-out prompts", zh="加法：留出提示"),
        Text(en="Prompts of no other set, for validation.", zh="不与其他数据重复的提示，用于验证。"),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_sets(_SEED).rl_validation),
    ),
    Sample(
        "addition-pairs",
        Text(en="Addition: preference pairs", zh="加法：偏好对"),
        Text(
            en="The right sum against a wrong or hedged one, for DPO and other preference methods.",
            zh="正确的和对比错误或含糊的回答，用于 DPO 等偏好方法。",
        ),
        DataFormat.PREFERENCE,
        lambda: [asdict(pair) for pair in make_pairs(_SEED)[0]],
    ),
    Sample(
        "tickets-answers",
        Text(en="Customer messages: worked answers", zh="客户留言：示范答案"),
        Text(
            en="Which team takes a message, as JSON. For SFT of models with 100 M parameters and more.",
            zh="判断留言归哪个团队，以 JSON 回答；用于一亿参数以上模型的监督训练。",
        ),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_tickets(_SEED)["sft"]),
    ),
    Sample(
        "tickets-prompts",
        Text(en="Customer messages: prompts for RL", zh="客户留言：强化学习提示"),
        Text(
            en="512 other messages with the right team, for GRPO with a checkable reward.",
            zh="另外 512 条留言及正确团队，用于可核对奖励的 GRPO。",
        ),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_tickets(_SEED)["rl_train"]),
    ),
    Sample(
        "tickets-prompts-held-out",
        Text(en="Customer messages: held-out prompts", zh="客户留言：留出提示"),
        Text(en="Messages of no other set, for validation.", zh="不与其他数据重复的留言，用于验证。"),
        DataFormat.PROMPT_ANSWER,
        lambda: _answers(make_tickets(_SEED)["rl_validation"]),
    ),
)
