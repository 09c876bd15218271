"""Advantages of sessions that have several training samples (branches of a conversation).

verl's V1 trainer compares sessions by their last sample and gives the result to the others, for GRPO only;
with any other estimator each sample counts as a response of its own, so that sessions with many of them
set the baseline. Here all estimators of outcomes compare sessions. A session of which nothing was sampled
(it failed) is no response: it has no part in the baseline of its group (docs/adr/0016).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from trellis_recipes.mapping import REWARD_ALONE

from trellis_train.rollout.sample_ids import SampleKey

#: Whose advantage is one number for a whole response.
OF_OUTCOMES = frozenset(
    {"grpo", "grpo_vectorized", "grpo_passk", "rloo", "rloo_vectorized", "opo", "gpg",
     "reinforce_plus_plus_baseline", REWARD_ALONE}
)  # fmt: skip
#: Whose baseline needs at least two responses.
_OF_GROUPS = OF_OUTCOMES - {"gpg", REWARD_ALONE}


def last_samples(keys: Sequence[str]) -> dict[tuple[str, int], int]:
    """Return the row of the last sample of each session (prompt, number), in session order."""
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for row, key in enumerate(keys):
        sample = SampleKey.parse(key)
        session = (sample.uid, sample.session)
        if session not in last or last[session][0] < sample.index:
            last[session] = (sample.index, row)
    return {session: row for session, (_, row) in last.items()}


def compare_sessions(compute: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``original`` (verl's ``compute_advantage_for_multi_trajectories``) for sessions of many samples.

    ``compute`` is verl's ``compute_advantage``: rows of responses → ``advantages`` (responses, tokens).
    """

    @wraps(original)
    def compute_by_session(data: Any, batch_keys: list[str], adv_estimator: Any, **options: Any) -> Any:
        name = str(getattr(adv_estimator, "value", adv_estimator))
        if name not in OF_OUTCOMES:
            return original(data, batch_keys=batch_keys, adv_estimator=adv_estimator, **options)
        mask = data.batch["response_mask"]
        last = last_samples(batch_keys)
        was_sampled = mask.any(dim=1).tolist()
        sound = {session: row for session, row in last.items() if was_sampled[row]}
        sizes = Counter(uid for uid, _ in sound)
        if name in _OF_GROUPS and options.get("num_repeat", 1) > 1:
            sound = {session: row for session, row in sound.items() if sizes[session[0]] > 1}
        by_session: dict[tuple[str, int], float] = {}
        if sound:
            rows = list(sound.values())
            # Where each session has one sample, as most have, all rows are compared, and none is copied.
            compared = data if rows == list(range(len(batch_keys))) else data.select_idxs(rows)
            found = compute(compared, adv_estimator=adv_estimator, **options)
            first = found.batch["response_mask"].int().argmax(dim=1, keepdim=True)
            advantages = found.batch["advantages"].gather(1, first).squeeze(1)
            by_session = dict(zip(sound, advantages.tolist(), strict=True))
        samples = [SampleKey.parse(key) for key in batch_keys]
        scores = mask.new_tensor(
            [by_session.get((sample.uid, sample.session), 0.0) for sample in samples],
            dtype=data.batch["token_level_rewards"].dtype,
        )
        data.batch["advantages"] = data.batch["returns"] = scores.unsqueeze(-1) * mask
        return data

    return compute_by_session
