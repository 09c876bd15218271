"""Private methods of verl's agent loops that ours override, so that processes have less to do (``rollout``).

Nothing is installed for these; the driver of a run has them checked before it begins.
"""

from trellis_train.compat.change import note_method
from trellis_train.compat.trainer_methods import GROUP

_RUN = "tests/train/engines/test_ppo_run.py"
_WORKER = "verl.trainer.ppo.v1.agent_loop_tq.AgentLoopWorkerTQ"
_CLIENT = "verl.workers.rollout.llm_server.LLMServerClient"
_LOOP = "verl.trainer.ppo.v1.agent_loop_tq"
note_method(
    f"{_LOOP}.tq",
    "on_object",
    "Puts responses into the queue together.",
    "Two round trips for each response.",
    kind="speed",
    reads=(f"{_LOOP}.AgentLoopWorkerTQ._run_prompt", f"{_LOOP}.AgentLoopWorkerTQ._agent_loop_postprocess"),
    tests=("tests/train/rollout/test_batched_puts.py::*",),
    group=GROUP,
)
note_method(
    f"{_LOOP}.list_of_dict_to_tensordict",
    "on_object",
    "Leaves columns as the queue stores them.",
    "Values are wrapped in objects, and taken out again, a column at a time.",
    kind="speed",
    tests=("tests/train/rollout/test_rollout_columns.py::*",),
    group=GROUP,
)
note_method(
    "verl.experimental.agent_loop.agent_loop.hydra",
    "on_object",
    "Makes a loop once for all sessions.",
    "A configuration is merged and a loop made for each response.",
    kind="speed",
    reads=("verl.experimental.agent_loop.agent_loop.AgentLoopWorker._run_agent_loop",),
    tests=(f"{_RUN}::test_every_step_has_rollouts_grouped_by_prompt",),
    group=GROUP,
)
note_method(
    f"{_WORKER}._run_agent_loop",
    "overridden",
    "Gives each session a seed of its own.",
    "The same job with the same seed samples otherwise each time.",
    kind="fix",
    tests=("tests/train/rollout/test_seeding.py::*",),
    group=GROUP,
)
note_method(
    f"{_WORKER}._agent_loop_postprocess",
    "overridden",
    "Notes when each response was begun and ended.",
    "A job's timeline has no responses, and nothing tells how long they took.",
    reads=(
        f"{_WORKER}._agent_loop_postprocess",
        "verl.experimental.agent_loop.agent_loop.AgentLoopWorker._run_agent_loop",
    ),
    tests=("tests/train/compat/test_timing.py::test_a_response_is_timed_before_verl_processes_it",),
    group=GROUP,
)
note_method(
    f"{_WORKER}._compute_score",
    "overridden",
    "Hands the prompt to rewards, and scores in the worker.",
    "Rewards see no prompt and no number of tokens.",
    kind="fix",
    tests=("tests/train/rollout/test_scoring.py::*",),
    group=GROUP,
)
note_method(
    f"{_WORKER}._run_prompt",
    "overridden",
    "Gathers the responses to a prompt.",
    "Each response is put by itself.",
    kind="speed",
    tests=("tests/train/rollout/test_batched_puts.py::*",),
    group=GROUP,
)
note_method(
    f"{_LOOP}.AgentLoopManagerTQ._init_agent_loop_workers",
    "overridden",
    "Uses workers that were started ahead.",
    "Workers import while cores idle.",
    kind="speed",
    tests=("tests/train/cpu/test_prestarted_actors.py::*",),
    group=GROUP,
)
for _manager in ("naive.NaiveRewardManager", "dapo.DAPORewardManager"):
    note_method(
        f"verl.experimental.reward_loop.reward_manager.{_manager}.run_single",
        "called",
        "Is given a view of one response, and no thread.",
        "A batch is made and taken apart for each response.",
        kind="speed",
        tests=("tests/train/rollout/test_scoring.py::*",),
        group=GROUP,
    )
note_method(
    f"{_CLIENT}._acquire_server",
    "on_object",
    "Chooses a server in the worker, and gathers requests.",
    "A call to an actor before each request.",
    kind="speed",
    tests=("tests/train/rollout/test_routing.py::*", "tests/train/rollout/test_requests.py::*"),
    group=GROUP,
)
note_method(
    f"{_CLIENT}._release_server",
    "on_object",
    "Counts requests in the worker.",
    "A call to an actor after each request.",
    kind="speed",
    tests=("tests/train/rollout/test_routing.py::*",),
    group=GROUP,
)
note_method(
    f"{_CLIENT}._vllm_request_id",
    "on_object",
    "Gives each request an id of its own.",
    "Under full determinism all requests have one id.",
    kind="fix",
    tests=("tests/train/rollout/test_seeding.py::*",),
    group=GROUP,
)
note_method(
    "verl.utils.tokenizer.continuous_token.ContinuousTokenBuilder._render_tokens",
    "on_object",
    "Renders what episodes have in common once.",
    "Each episode of a group renders the same prompt.",
    kind="speed",
    tests=("tests/train/agents/episode/test_rendering.py::test_a_prompt_is_rendered_once_and_as_verl_does",),
    group=GROUP,
)
