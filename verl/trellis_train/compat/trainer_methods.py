"""Private methods of verl's trainer that ours overrides (``hooks``), for the platform and for algorithms.

Nothing is installed for these; the driver of a run has them checked before it begins.
"""

from trellis_train.compat.change import note_method

GROUP = "ppo"
_TRAINER = "verl.trainer.ppo.v1.trainer_base.PPOTrainer"
_BUFFER = "verl.trainer.ppo.v1.replay_buffer.ReplayBuffer"
_RUN = "tests/train/engines/test_ppo_run.py"
_HOOKS = "tests/train/hooks/test_trainer.py"
_REPORTS = (f"{_HOOKS}::test_the_hooks_override_methods_that_every_trainer_of_verl_has",)
_ADDITIONS = "tests/train/algorithms/test_additions.py"

# -- verl's trainer of reinforcement learning: what it tells the platform, and algorithms (``hooks``) --------
note_method(
    f"{_TRAINER}._build_replay_buffer",
    "overridden",
    "Connects the buffer with what is told of answers.",
    "No rollouts are shown, and answered prompts wait for 2 s.",
    tests=_REPORTS,
    note="trainer.v1.sampler.custom_sampler is no door: with one verl leaves out the filtering of groups.",
    group=GROUP,
)
note_method(
    f"{_BUFFER}._wait_for_next_poll",
    "on_object",
    "Returns as soon as prompts are answered.",
    "The trainer looks every 2 s.",
    kind="speed",
    tests=("tests/train/rollout/test_completion_signals.py::*",),
    group=GROUP,
)
note_method(
    f"{_BUFFER}.sample",
    "on_object",
    "Sorts the samples of a step, shows them, takes baselines out.",
    "The same job trains on other mini-batches each time; ReMax has no baselines.",
    kind="fix",
    tests=(
        f"{_ADDITIONS}::test_greedy_responses_are_scored_and_leave_the_batch",
        "tests/train/rollout/test_seeding.py::"
        "test_samples_are_trained_on_in_the_order_of_prompts_and_not_of_arrival",
    ),
    group=GROUP,
)
note_method(
    f"{_BUFFER}._select_prompt_uids",
    "on_object",
    "Takes the first prompts in the data where too many fit.",
    "DAPO trains on the prompts that a set happens to begin with.",
    kind="fix",
    tests=(f"{_ADDITIONS}::*",),
    group=GROUP,
)
note_method(
    f"{_TRAINER}._fetch_one_gen_batch",
    "overridden",
    "Names prompts after their place in the step.",
    "Names are random, and with them the order of samples and the seeds of requests.",
    kind="fix",
    tests=("tests/train/rollout/test_seeding.py::test_prompts_are_named_after_their_place_in_the_step",),
    group=GROUP,
)
note_method(
    f"{_TRAINER}._compute_reward_colocate",
    "overridden",
    "Shows validation samples of a reward model.",
    "They are missing on the page of the job.",
    tests=_REPORTS,
    group=GROUP,
)
note_method(
    f"{_TRAINER}._init_dataloader",
    "overridden",
    "Tells of progress and leaves where that is asked.",
    "A stop waits for the first step.",
    tests=_REPORTS,
    group=GROUP,
)
note_method(
    f"{_TRAINER}._compute_metrics",
    "overridden",
    "Adds signals of trouble, shows samples, checks rewards.",
    "The page of a job has no rollouts, and a run whose rewards fail goes on.",
    tests=_REPORTS,
    group=GROUP,
)
note_method(
    f"{_TRAINER}._save_checkpoint",
    "overridden",
    "Announces a checkpoint that is complete.",
    "The platform knows of no checkpoints.",
    tests=(f"{_RUN}::test_it_leaves_at_a_checkpoint_of_its_last_step",),
    group=GROUP,
)
note_method(
    f"{_TRAINER}._validate",
    "overridden",
    "Ends an agent's run by its accuracy, and keeps the best; is left out where a stop ends the run.",
    "`patience` and `target_accuracy` have no effect, and a stop waits for a validation.",
    tests=(
        "tests/train/hooks/test_accuracy_stop.py::*",
        f"{_HOOKS}::test_a_stop_waits_neither_for_the_validation_after_its_step_nor_for_another_step",
    ),
    group=GROUP,
)
note_method(
    f"{_TRAINER}.timing_raw",
    "overridden",
    "Keeps when each phase of a step ran, beside how long.",
    "A job's timeline has no phases.",
    reads=(f"{_TRAINER}.fit", "verl.utils.profiler.performance._timer"),
    tests=("tests/train/compat/test_timing.py::test_verls_timers_write_into_what_keeps_the_spans",),
    note="An attribute that `fit` sets anew for each step; a property of ours receives it.",
    group=GROUP,
)
note_method(
    "verl.single_controller.ray.base.create_colocated_worker_cls",
    "on_object",
    "Times the calls that reach the workers of a process.",
    "A job's timeline has no lanes of the processes that hold the models.",
    reads=(
        "verl.single_controller.ray.base.create_colocated_worker_cls",
        "verl.single_controller.ray.base._bind_workers_method_to_parent",
    ),
    tests=("tests/train/hooks/test_worker_spans.py::*",),
    note="Public methods are wrapped on the objects: verl's profiler takes no profilers of others.",
    group=GROUP,
)
note_method(
    f"{_TRAINER}._submit_batch_to_rollout",
    "overridden",
    "Asks for a greedy response to each prompt too.",
    "verl gives ReMax's estimator no baselines.",
    kind="fix",
    tests=(f"{_ADDITIONS}::*",),
    group=GROUP,
)
note_method(
    f"{_TRAINER}._compute_advantage",
    "overridden",
    "Hands ReMax's baselines to its estimator.",
    "verl collects no such column.",
    kind="fix",
    tests=(f"{_ADDITIONS}::*",),
    group=GROUP,
)
note_method(
    f"{_TRAINER}._next_train_batch",
    "overridden",
    "Ends dynamic sampling at its bound.",
    "A dataset far too hard is sampled from for ever.",
    kind="fix",
    tests=(f"{_ADDITIONS}::test_a_step_that_cannot_be_filled_gives_up",),
    group=GROUP,
)
note_method(
    "verl.trainer.ppo.v1.trainer_base.TRAINER_REGISTRY",
    "on_object",
    "Holds the trainer that reports.",
    "verl makes its own trainer.",
    tests=(f"{_RUN}::*",),
    note="register_trainer refuses a name that is taken, and a mode is also read elsewhere.",
    group=GROUP,
)
note_method(
    "verl.trainer.ppo.core_algos.ADV_ESTIMATOR_REGISTRY",
    "on_object",
    "Holds GPG's estimator of the paper, and ReMax's with baselines.",
    "GPG is scaled by responses that give no gradient; ReMax fails.",
    kind="fix",
    note="register_adv_est refuses names that verl has; it serves where they are ours.",
    tests=("tests/train/algorithms/test_advantages.py::*",),
    group=GROUP,
)
