"""A bounded sample of each step's rollouts, read from the TransferQueue before it is cleared."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from trellis_contracts.agents import Trajectory
from trellis_contracts.events import PromptMessage, Rollout, RolloutsEvent, Split, TokenTrace

from trellis_train.agents.episode.shortening import shorten
from trellis_train.hooks.clock import now
from trellis_train.hooks.metrics import to_scalars
from trellis_train.hooks.step_responses import EARNED_KEY
from trellis_train.hooks.token_traces import TokenTracing, choose_traced, trace_tokens
from trellis_train.hooks.watching import watch
from trellis_train.rewards.mixture import ERROR_KEY
from trellis_train.rewards.probes import LiveResponse
from trellis_train.rewards.sample import plain_row
from trellis_train.rollout.sample_ids import SampleKey, real_keys

#: Prompts whose responses are shown, of each step.
MAX_GROUPS = 8
#: Characters of all texts of an event together: an event must fit a batch of the shipper (1 MB).
MAX_EVENT_CHARS = 200_000
#: No text is cut below this.
MIN_TEXT_CHARS = 400
#: Of an agent's episodes so many are shown: a turn takes more room than its text.
MAX_EPISODES = 32
#: Characters of all episodes of an event together, beside the texts.
MAX_EPISODE_CHARS = 250_000
#: Characters of all conversations of an event together, beside the texts: one of each prompt.
MAX_MESSAGE_CHARS = 100_000
#: Of training, so many of the prompts are the first by their hash: they come back in every epoch, and can be
#: followed. The others are spread over the batch.
FOLLOWED_GROUPS = MAX_GROUPS // 2
FIELDS = [
    "prompts",
    "responses",
    "rm_scores",
    "advantages",
    "response_mask",
    "reward_model",
    "raw_prompt",
    "extra_fields",
]
#: What rewards look at besides.
ROW_FIELDS = ["extra_info", "data_source"]


def choose_keys(
    keys: Iterable[str], *, max_groups: int = MAX_GROUPS, wanted: Collection[str] = ()
) -> list[SampleKey]:
    """Choose the last output of every session of up to ``max_groups`` prompts, evenly over the batch.

    The prompts of ``wanted`` (uids) are among them.
    """
    groups: dict[str, dict[int, SampleKey]] = {}
    for key in keys:
        sample = SampleKey.parse(key)
        sessions = groups.setdefault(sample.uid, {})
        if sample.session not in sessions or sessions[sample.session].index < sample.index:
            sessions[sample.session] = sample
    uids = list(groups)
    first = [uid for uid in uids if uid in wanted][:max_groups]
    others = [uid for uid in uids if uid not in wanted]
    room = max_groups - len(first)
    stride = max(1, len(others) // max(1, room))
    picked = {*first, *others[::stride][:room]}
    chosen = [uid for uid in uids if uid in picked]
    return [groups[uid][session] for uid in chosen for session in sorted(groups[uid])]


def hash_prompts(keys: Sequence[str], partition_id: str) -> dict[str, str]:
    """Hash each prompt's tokens, by uid; a prompt has the same hash at every step."""
    import transfer_queue as tq

    # All outputs of a uid answer the same prompt: one of them tells it.
    by_uid = {SampleKey.parse(key).uid: key for key in keys}
    if not by_uid:
        return {}
    data = tq.kv_batch_get(keys=list(by_uid.values()), partition_id=partition_id, select_fields=["prompts"])
    prompts = zip(by_uid, _rows(data["prompts"]), strict=True)
    return {uid: hashlib.sha256(prompt.numpy().tobytes()).hexdigest()[:16] for uid, prompt in prompts}


def clip_text(text: str, limit: int) -> str:
    """Clip ``text`` to ``limit`` characters, keeping the beginning and end, with question and answer."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]} … [{len(text) - limit} characters] … {text[len(text) - (limit - head) :]}"


def collect_rollouts(
    *,
    batch: Any,
    tokenizer: Any,
    step: int,
    split: Split,
    max_response_tokens: int,
    tracing: TokenTracing | None = None,
    probe: Callable[[list[LiveResponse]], object] | None = None,
) -> RolloutsEvent:
    """Read a sample of ``batch`` (verl's ``KVBatchMeta``) and make it an event.

    ``max_response_tokens`` is the configured bound: a response that reached it was cut. With ``tracing``, a
    few responses have what was measured of their tokens. ``probe`` is given the best response to each prompt.
    """
    import transfer_queue as tq

    keys = real_keys(batch)
    hashes = hash_prompts(keys, batch.partition_id)
    by_hash = sorted(hashes, key=lambda uid: hashes[uid])
    if split == "validation":
        # verl names validation prompts at random; so the same ones are chosen at every step.
        keys = sorted(keys, key=lambda key: hashes[SampleKey.parse(key).uid])
    wanted = [] if split == "validation" else by_hash[:FOLLOWED_GROUPS]
    if tracing is not None:
        wanted += [SampleKey.parse(extreme.key).uid for extreme in tracing.extremes]
    samples = choose_keys(keys, wanted=wanted)
    fields = FIELDS if probe is None else [*FIELDS, *ROW_FIELDS]
    data = tq.kv_batch_get(
        keys=[sample.key for sample in samples], partition_id=batch.partition_id, select_fields=fields
    )
    columns = {name: _rows(data[name]) for name in fields if name in data}
    limit = max(MIN_TEXT_CHARS, MAX_EVENT_CHARS // max(1, 2 * len(samples)))
    extra_fields = columns.get("extra_fields", [None] * len(samples))
    shown = _choose_episodes(samples, extra_fields)
    conversations = _collect_messages(samples, columns.get("raw_prompt", [None] * len(samples)))
    traces = watch(
        "tokens", lambda: _trace(samples, columns, batch.partition_id, tracing), dict[str, TokenTrace]()
    )
    rollouts = [
        _to_rollout(
            sample,
            {name: column[row] for name, column in columns.items()},
            prompt_key=hashes[sample.uid],
            messages=conversations.get(row),
            tokens=traces.get(sample.key),
            trajectory=_trajectory_of(extra_fields[row]) if row in shown else None,
            tokenizer=tokenizer,
            text_limit=limit,
            max_response_tokens=max_response_tokens,
        )
        for row, sample in enumerate(samples)
    ]
    if probe is not None:
        watch("probes of the rewards", lambda: probe(_find_best(samples, columns, tokenizer)), None)
    return RolloutsEvent(time=now(), step=step, split=split, rollouts=rollouts)


def _find_best(
    samples: Sequence[SampleKey], columns: Mapping[str, Any], tokenizer: Any
) -> list[LiveResponse]:
    """Return the best response to each prompt, whole, with all that rewards look at; no episodes."""
    best: dict[str, int] = {}
    scores = [float(score.sum()) for score in columns["rm_scores"]]
    for place, sample in enumerate(samples):
        if sample.uid not in best or scores[place] > scores[best[sample.uid]]:
            best[sample.uid] = place
    rows = [{name: column[place] for name, column in columns.items()} for place in best.values()]
    return [_as_live(row, tokenizer) for row in rows if not _has_trajectory(row.get("extra_fields"))]


def _has_trajectory(extra_fields: Any) -> bool:
    return isinstance(extra_fields, dict) and extra_fields.get("trajectory") is not None


def _as_live(row: Mapping[str, Any], tokenizer: Any) -> LiveResponse:
    prompt = getattr(row.get("raw_prompt"), "data", row.get("raw_prompt"))
    messages = [dict(turn) for turn in prompt] if prompt is not None else []
    if not messages:
        messages = [{"role": "user", "content": tokenizer.decode(row["prompts"], skip_special_tokens=True)}]
    info = row.get("extra_info")
    return LiveResponse(
        messages=messages,
        response=tokenizer.decode(row["responses"], skip_special_tokens=True),
        answer=_answer_of(row) or "",
        row={
            **(plain_row(info) if isinstance(info, dict) else {}),
            "data_source": str(row.get("data_source", "")),
        },
        tokens=int(row["responses"].numel()),
        earned=_reward_parts(row.get("extra_fields")),
    )


def _answer_of(row: Mapping[str, Any]) -> str | None:
    reward_model = row.get("reward_model")
    truth = reward_model.get("ground_truth") if isinstance(reward_model, dict) else None
    return None if truth is None else str(truth)


def _rows(column: Any) -> Sequence[Any]:
    """Return one entry per sample, whether the column is a (nested) tensor or a stack of objects."""
    if hasattr(column, "unbind") and not isinstance(column, list):
        return list(column.unbind())
    return list(column.tolist()) if hasattr(column, "tolist") else list(column)


def _choose_episodes(samples: Sequence[SampleKey], extra_fields: Sequence[Any]) -> set[int]:
    """Choose the episodes to show turn by turn: the same number for every prompt, from its first."""
    by_prompt: dict[str, list[int]] = {}
    for place, (sample, fields) in enumerate(zip(samples, extra_fields, strict=True)):
        if isinstance(fields, dict) and fields.get("trajectory") is not None:
            by_prompt.setdefault(sample.uid, []).append(place)
    each = max(1, MAX_EPISODES // max(1, len(by_prompt)))
    return {place for places in by_prompt.values() for place in places[:each]}


def _trace(
    samples: Sequence[SampleKey], columns: Mapping[str, Any], partition_id: str, tracing: TokenTracing | None
) -> dict[str, TokenTrace]:
    if tracing is None:
        return {}
    with tracing.watch.measure():
        scores = {
            sample.key: float(score.sum())
            for sample, score in zip(samples, columns["rm_scores"], strict=True)
        }
        keys = choose_traced(list(scores), scores, tracing.extremes)
        return trace_tokens(keys, partition_id, tracing)


def _collect_messages(samples: Sequence[SampleKey], prompts: Sequence[Any]) -> dict[int, list[PromptMessage]]:
    """Return each prompt's conversation, by the row of its first response; none if it is not plain text."""
    first: dict[str, int] = {}
    for row, sample in enumerate(samples):
        first.setdefault(sample.uid, row)
    limit = MAX_MESSAGE_CHARS // max(1, len(first))
    found = {row: _as_messages(prompts[row], limit) for row in first.values()}
    return {row: messages for row, messages in found.items() if messages}


def _as_messages(prompt: Any, limit: int) -> list[PromptMessage]:
    turns = getattr(prompt, "data", prompt)
    turns = list(turns) if isinstance(turns, list | tuple) or hasattr(turns, "tolist") else []
    is_plain = all(isinstance(turn, dict) and isinstance(turn.get("content"), str) for turn in turns)
    if not turns or not is_plain:
        return []
    each = max(MIN_TEXT_CHARS, limit // len(turns))
    return [
        PromptMessage(role=str(turn.get("role", "")), content=clip_text(turn["content"], each))
        for turn in turns[: max(1, limit // each)]
    ]


def _trajectory_of(fields: Any) -> Trajectory:
    whole = Trajectory.model_validate(fields["trajectory"])
    return shorten(whole, MAX_EPISODE_CHARS // MAX_EPISODES)


def _to_rollout(
    sample: SampleKey,
    row: dict[str, Any],
    *,
    prompt_key: str,
    messages: list[PromptMessage] | None,
    tokens: TokenTrace | None,
    trajectory: Trajectory | None,
    tokenizer: Any,
    text_limit: int,
    max_response_tokens: int,
) -> Rollout:
    response = row["responses"]
    truth = _answer_of(row)
    return Rollout(
        group=sample.uid,
        prompt_key=prompt_key,
        messages=messages,
        prompt=clip_text(tokenizer.decode(row["prompts"], skip_special_tokens=True), text_limit),
        response=clip_text(tokenizer.decode(response, skip_special_tokens=True), text_limit),
        ground_truth=None if truth is None else clip_text(truth, text_limit),
        score=_shortest(row["rm_scores"].sum()),
        reward_parts=_reward_parts(row.get("extra_fields")),
        response_tokens=int(response.numel()),
        advantage=_mean_over_mask(row.get("advantages"), row.get("response_mask")),
        is_truncated=int(response.numel()) >= max_response_tokens,
        tokens=tokens,
        trajectory=trajectory,
    )


def _reward_parts(extra_fields: Any) -> dict[str, float]:
    """Return the numbers that the reward function, or an agent's own reward, returned besides its score."""
    fields = extra_fields if isinstance(extra_fields, dict) else {}
    # An agent may name a part like a number that is reported of all responses; then that number is shown.
    info = {**(fields.get(EARNED_KEY) or {}), **(fields.get("reward_extra_info") or {})}
    # Tensors too: verl's DAPO manager computes its penalty for length from one.
    parts = {name: _shortest(value) for name, value in to_scalars(info).items() if name != "score"}
    if not parts.get(ERROR_KEY):
        parts.pop(ERROR_KEY, None)  # worth a word only where there was one
    return parts


def _mean_over_mask(values: Any, mask: Any) -> float | None:
    """Average ``values`` over the tokens that the policy wrote; None if there are none."""
    if values is None or mask is None or not mask.any():
        return None
    return _shortest(values[mask.bool()].mean())


def _shortest(scalar: Any) -> float:
    """Round a float32 to its usual notation: 0.1, not 0.10000000149."""
    return float(f"{float(scalar):.7g}")
