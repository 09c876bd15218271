"""What runs report as their cause is what the API has a hint for."""

import pytest
from trellis_api.jobs.failures.hints import find_hint
from trellis_train.supervise.failure_causes import KNOWN_CAUSES

#: Causes that are not found in the output: judged by signals, by the workers, or on a request.
OTHER_CAUSES = [
    *("bad_data", "bad_spec", "killed", "native_crash", "terminated"),
    *("heartbeat_lost", "frozen", "node_lost", "launch_failed", "storage_full", "storage_unwritable"),
    "other_platform",
    *("unknown_dataset", "unknown_model", "reward_unusable", "agent_unusable"),
    *("unknown_environment", "environment_not_ready", "unsuitable_environment", "unknown_workflow"),
    *("tools_not_shown", "chat_template_runaway"),
    *("stage_job_deleted", "stage_not_exported", "pipeline_stage_failed"),
]


@pytest.mark.parametrize("cause", sorted({known.code for known in KNOWN_CAUSES} | set(OTHER_CAUSES)))
def test_every_cause_has_a_hint_in_both_languages(cause: str) -> None:
    hint = find_hint(cause)

    assert hint is not None
    assert hint.en
    assert hint.zh
