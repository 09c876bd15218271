"""What is said about a dataset and a recipe, in both languages."""

from collections.abc import Mapping, Sequence

from trellis_contracts.recipe import DataFormat, Text

_HOW: dict[tuple[DataFormat, DataFormat], Text] = {
    (DataFormat.MESSAGES, DataFormat.PROMPT_ANSWER): Text(
        en="The prompt becomes the user turn and the answer the assistant turn.",
        zh="提示作为用户的发言，答案作为助手的回复。",
    ),
    (DataFormat.MESSAGES, DataFormat.PREFERENCE): Text(
        en="The prompt and chosen response become a conversation; the rejected response is ignored.",
        zh="提示与被选中的回答组成对话；被拒绝的回答不使用。",
    ),
    (DataFormat.VERL_RL, DataFormat.PROMPT_ANSWER): Text(
        en="The prompt is answered by the model; what follows #### or stands in \\boxed{} in the answer "
        "(else all of it) is the reference.",
        zh="由模型回答提示；答案中 #### 之后或 \\boxed{} 内的内容（否则整个答案）作为参考答案。",
    ),
    (DataFormat.VERL_RL, DataFormat.MESSAGES): Text(
        en="Everything before the last assistant turn becomes the prompt, and that turn's "
        "answer the reference.",
        zh="助手最后一次回复之前的对话作为提示，该回复中的答案作为参考答案。",
    ),
    (DataFormat.PREFERENCE, DataFormat.VERL_RL): Text(
        en="The model answers each prompt several times before training; the best and the worst response "
        "by the tool-use reward become a pair.",
        zh="训练前由模型对每个提示作答多次；按工具使用奖励，最好与最差的回答组成一个偏好对。",
    ),
    (DataFormat.UNPAIRED_PREFERENCE, DataFormat.PREFERENCE): Text(
        en="Each pair becomes two rows: one desirable and one undesirable response.",
        zh="每个偏好对变成两行：被选中的回答为期望，被拒绝的回答为不期望。",
    ),
}


def describe_conversion(form: DataFormat, source: DataFormat) -> Text:
    """Describe how rows are converted from one format to the other."""
    return _HOW[form, source]


def describe_reading(data_format: DataFormat, columns: Mapping[str, str]) -> Text:
    """Describe a way to read a dataset: its format and which column is what."""
    pairs = ", ".join(f"{role}: {column}" for role, column in columns.items())
    return Text(en=f"Read as {data_format} ({pairs})", zh=f"按 {data_format} 读取（{pairs}）")


def no_column(role: str, looked_for: Sequence[str]) -> Text:
    """Say that no column has the role."""
    names = ", ".join(looked_for)
    return Text(
        en=f"No column is the {role} (looked for: {names}).", zh=f"没有列作为 {role}（查找过：{names}）。"
    )


def no_such_column(role: str, column: str) -> Text:
    """Explain that a named column does not exist."""
    return Text(
        en=f"The dataset has no column {column}, which was to be the {role}.",
        zh=f"数据集没有列 {column}（指定为 {role}）。",
    )


def wrong_kind(role: str, column: str, found: str, wanted: Sequence[str]) -> Text:
    """Explain that a column's type does not fit its role."""
    kinds = " or ".join(wanted)
    return Text(
        en=f"Column {column} is {found[:80]}; the {role} must be {kinds}.",
        zh=f"列 {column} 的类型是 {found[:80]}；{role} 必须是 {' 或 '.join(wanted)}。",
    )


def no_such_role(role: str, data_format: DataFormat, roles: Sequence[str]) -> Text:
    """Say that the format has no such role."""
    names = ", ".join(roles) or "—"
    return Text(
        en=f"The format {data_format} has no role {role}; its roles are {names}.",
        zh=f"格式 {data_format} 没有角色 {role}；它的角色有 {names}。",
    )
