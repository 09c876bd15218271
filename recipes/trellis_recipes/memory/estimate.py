"""The estimate of a run's memory: which parts lie side by side in which phase, and which phase needs most."""

from dataclasses import dataclass, replace
from typing import Any

from trellis_contracts.recipe import Engine, Text

from trellis_recipes.memory import assumptions, parts
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.plan import Plan, Reference, Training, read_plan
from trellis_recipes.memory.schemas import MemoryEstimate, MemoryPart, MemoryPhase

_TITLES = {
    "rollout": Text(en="Rollout", zh="采样"),
    "log_probs": Text(en="Log-probabilities", zh="对数概率"),
    "reference_log_probs": Text(en="Reference log-probabilities", zh="参考模型的对数概率"),
    "update": Text(en="Update", zh="参数更新"),
    "critic_update": Text(en="Critic update", zh="评论家更新"),
    "train": Text(en="Training", zh="训练"),
    "evaluation": Text(en="Validation", zh="验证"),
}


@dataclass(frozen=True)
class Machine:
    """What is known of where the run will take place."""

    #: Memory of one GPU, or of the machine on a CPU platform; None where unknown.
    memory_bytes: int | None = None
    #: Size of /dev/shm; None where unknown.
    shared_memory_bytes: int | None = None


def estimate_memory(
    architecture: Architecture,
    *,
    engine: Engine,
    recipe: str,
    config: dict[str, Any],
    platform: str,
    gpus: int,
    env: dict[str, str],
    parameter_count: int | None = None,
    machine: Machine | None = None,
) -> MemoryEstimate:
    """Estimate the memory that a run needs on each GPU (or slot), phase by phase.

    ``parameter_count`` is what the files of the model hold; without it the count is
    computed from the architecture. Raises ``IncompleteConfiguration`` for a ``config``
    that leaves open what memory depends on.
    """
    machine = machine or Machine()
    plan = read_plan(engine, config, recipe=recipe, platform=platform, gpus=gpus, env=env)
    if architecture.base_bits:
        # Its files hold two weights in a byte, or one: their number says nothing of the parameters.
        parameter_count = None
        plan = replace(plan, training=replace(plan.training, base_bits=architecture.base_bits))
    parameters = parameter_count or architecture.parameters
    run = _Run(architecture, plan, parameters, machine)
    phases = run.phases()
    peak = max(phases, key=lambda phase: phase.total_bytes)
    together = peak.total_bytes * max(1, gpus)
    return MemoryEstimate(
        parameters=parameters,
        phases=phases,
        peak_phase=peak.name,
        per_gpu_bytes=peak.total_bytes,
        peak_bytes=together,
        available_bytes=machine.memory_bytes,
        assumptions=assumptions.list_assumptions(
            architecture, plan, counted=architecture.parameters, known=parameter_count
        ),
        warnings=assumptions.list_warnings(
            plan,
            needed=together if platform == "cpu" else peak.total_bytes,
            available=machine.memory_bytes,
            shared_memory=machine.shared_memory_bytes,
        ),
    )


class _Run:
    """The phases of one plan."""

    def __init__(self, architecture: Architecture, plan: Plan, parameters: int, machine: Machine) -> None:
        self._model, self._plan, self._count = architecture, plan, parameters
        self._machine = machine

    def phases(self) -> list[MemoryPhase]:
        """Return the phases in the order in which they run."""
        if self._plan.rollout_engine is None:
            return self._supervised()
        found = [
            _phase("rollout", [*self._rest(is_training=False), *self._rollout_engine()]),
            _phase("log_probs", self._log_probs()),
        ]
        if self._plan.reference is not None:
            own = self._reference_log_probs(self._plan.reference)
            found.append(_phase("reference_log_probs", own))
        found.append(_phase("update", self._update()))
        if self._plan.critic is not None:
            found.append(_phase("critic_update", self._critic_update(self._plan.critic)))
        return found

    def _supervised(self) -> list[MemoryPhase]:
        training = self._plan.training
        resting = [*self._rest(is_training=True)]
        found = [_phase("train", [*resting, *self._step(training)])]
        if self._plan.evaluates:
            found.append(_phase("evaluation", [*resting, *self._forward(training, training.tokens)]))
        return found

    def _rest(self, *, is_training: bool) -> list[MemoryPart]:
        """List the memory held between two computations; ``is_training`` while the actor computes."""
        plan, training = self._plan, self._plan.training
        is_cpu = plan.platform == "cpu"  # there is no other place to move it to
        found = [parts.runtime(plan)]
        if is_training or is_cpu or not training.is_offloaded:
            found.append(parts.weights(self._model, training, self._count))
        if is_training or is_cpu or not training.is_optimizer_offloaded:
            found.append(parts.optimizer(self._model, training, self._count))
        if plan.reference is not None and (is_cpu or not plan.reference.is_offloaded):
            found.append(parts.reference_weights(plan.reference, self._count))
        if plan.critic is not None and (is_cpu or not plan.critic.is_offloaded):
            found.append(_as_critic(parts.weights(self._model, plan.critic, self._critic_count())))
        if plan.critic is not None and (is_cpu or not plan.critic.is_optimizer_offloaded):
            found.append(_as_critic(parts.optimizer(self._model, plan.critic, self._critic_count())))
        return found

    def _critic_count(self) -> int:
        """Return the critic's parameter count: the actor's, with a scalar value head for the LM head."""
        return self._count - self._model.head_parameters + self._model.hidden

    def _update(self) -> list[MemoryPart]:
        return [*self._rest(is_training=True), *self._awake(), *self._step(self._plan.training)]

    def _step(self, training: Training) -> list[MemoryPart]:
        """List the memory of the forward pass, the backward pass and the update of the weights."""
        return _present(
            parts.gathered(self._model, training),
            parts.gradients(self._model, training, self._count),
            parts.activations(self._model, training, training.tokens),
            parts.adapter_outputs(self._model, training, self._plan.platform),
            parts.logits(self._model, training, _scored(training, training.tokens), is_training=True),
        )

    def _forward(self, training: Training, tokens: int) -> list[MemoryPart]:
        return _present(
            parts.gathered(self._model, training),
            parts.forward_activations(self._model, training, tokens),
            parts.logits(self._model, training, _scored(training, tokens), is_training=False),
        )

    def _log_probs(self) -> list[MemoryPart]:
        """List the memory of the policy's pass; its weights come back for it if they were moved away."""
        training = self._plan.training
        own = parts.weights(self._model, training, self._count)
        found = _with([*self._rest(is_training=False), *self._awake()], own)
        return [*found, *self._forward(training, self._plan.log_prob_tokens)]

    def _reference_log_probs(self, reference: Reference) -> list[MemoryPart]:
        own = parts.reference_weights(reference, self._count)
        found = _with([*self._rest(is_training=False), *self._awake()], own)
        return [*found, *self._forward(self._plan.training, self._plan.log_prob_tokens)]

    def _critic_update(self, critic: Training) -> list[MemoryPart]:
        found = [*self._rest(is_training=False), *self._awake()]
        count = self._critic_count()
        found = _with(found, _as_critic(parts.weights(self._model, critic, count)))
        found = _with(found, _as_critic(parts.optimizer(self._model, critic, count)))
        return found + _present(
            parts.gathered(self._model, critic),
            _as_critic(parts.gradients(self._model, critic, count)),
            parts.activations(self._model, critic, critic.tokens),
        )

    def _awake(self) -> list[MemoryPart]:
        """List the memory of the rollout engine while other models compute; empty if it sleeps."""
        rollout_engine = self._plan.rollout_engine
        return [] if rollout_engine is None or rollout_engine.sleeps else self._rollout_engine()

    def _rollout_engine(self) -> list[MemoryPart]:
        rollout_engine = self._plan.rollout_engine
        if rollout_engine is None:
            return []
        own = parts.rollout_weights(rollout_engine, self._count)
        cache = parts.kv_cache(
            self._model, rollout_engine, weight_bytes=own.bytes, available=self._machine.memory_bytes
        )
        return [own, cache, parts.bucket(rollout_engine, self._count)]


def _scored(training: Training, tokens: int) -> int:
    """Count the tokens of a pass whose scores over the vocabulary are computed."""
    if training.logits_tokens is None:
        return tokens
    return -(-tokens * training.logits_tokens // max(1, training.tokens))


def _as_critic(part: MemoryPart) -> MemoryPart:
    title = Text(en=f"Critic: {part.title.en.lower()}", zh=f"评论家：{part.title.zh}")
    return part.model_copy(update={"name": f"critic_{part.name}", "title": title})


def _with(found: list[MemoryPart], part: MemoryPart) -> list[MemoryPart]:
    """Add a part that comes back for this phase to the list, unless it never left."""
    return found if part.name in {each.name for each in found} else [*found, part]


def _present(*found: MemoryPart | None) -> list[MemoryPart]:
    return [part for part in found if part is not None]


def _phase(name: str, found: list[MemoryPart]) -> MemoryPhase:
    return MemoryPhase(
        name=name, title=_TITLES[name], parts=found, total_bytes=sum(part.bytes for part in found)
    )
