"""verl's agent-loop worker and manager with the work between processes cut.

The same requests go to the same server and the same rows reach the TransferQueue;
only the number of hops differs (docs/adr/0008-rollouts-in-batches.md). Chosen through
``actor_rollout_ref.rollout.agent.agent_loop_manager_class``.
"""

import time
from functools import cache
from types import SimpleNamespace
from typing import Any

import ray
import transfer_queue as tq
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf
from verl.experimental.agent_loop import agent_loop
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.trainer.ppo.v1 import agent_loop_tq

from trellis_train.hooks.process_spans import SPANS
from trellis_train.platform.layer import Layer
from trellis_train.rollout.batched_puts import BatchingQueue, Group, current_group
from trellis_train.rollout.completion_signals import CompletionSignal, CompletionSignalFrom
from trellis_train.rollout.requests import batch_requests
from trellis_train.rollout.response_times import begin_response, end_response, measure_part
from trellis_train.rollout.rollout_columns import to_columns
from trellis_train.rollout.routing import FixedServers, route_in_worker
from trellis_train.rollout.scoring import SCORE_IN_WORKER, LocalRewardWorker, describe_sample
from trellis_train.rollout.seeding import is_seeded, seed_session, seed_turns
from trellis_train.rollout.single_turn import SharedSingleTurnLoop

#: The class under ``@ray.remote``.
WorkerTQ: Any = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class


class AgentLoopWorker(WorkerTQ):
    """Runs the agent loops of its share of the prompts."""

    reward_loop_worker_handles: list[Any] | None
    _local_rewards: LocalRewardWorker | None = None

    def __init__(self, config: Any, llm_client: Any, *args: Any, **kwargs: Any) -> None:
        config = llm_client.config = without_references(config)
        super().__init__(config, llm_client, *args, **kwargs)
        self._news = CompletionSignal()
        # verl's module converts rows and puts them; conversion moves into the grouped put.
        agent_loop_tq.tq = BatchingQueue(tq, to_columns, self._news.settle)
        agent_loop_tq.list_of_dict_to_tensordict = lambda rows: rows
        agent_loop.hydra = SimpleNamespace(utils=SimpleNamespace(instantiate=instantiate_agent_loop))
        if self.reward_loop_worker_handles == [SCORE_IN_WORKER]:
            self._local_rewards = LocalRewardWorker(RewardLoopWorker(self.config))
            self.reward_loop_worker_handles = [self._local_rewards]
        servers = self.llm_client._load_balancer
        if isinstance(servers, FixedServers):
            route_in_worker(self.llm_client, servers)
        batch_requests(self.llm_client)
        rollout = self.config.actor_rollout_ref.rollout
        self._seed = int(rollout.seed) if is_seeded(rollout) else None
        if self._seed is not None:
            seed_turns(self.llm_client)

    async def _run_agent_loop(
        self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any
    ) -> Any:
        if self._seed is not None:
            sampling_params = seed_session(
                sampling_params, seed=self._seed, trajectory=trajectory, row=kwargs
            )
        begin_response()
        with SPANS.measure("responses"):
            return await super()._run_agent_loop(sampling_params, trajectory, **kwargs)

    async def _agent_loop_postprocess(self, output: Any, *args: Any, **kwargs: Any) -> Any:
        end_response(output)
        return await super()._agent_loop_postprocess(output, *args, **kwargs)

    async def _compute_score(self, outputs: list[Any], kwargs: dict[str, Any]) -> None:
        if outputs[-1].reward_score is not None:  # by the agent loop itself
            await super()._compute_score(outputs, kwargs=kwargs)
            return
        with measure_part("reward"):
            if self._local_rewards is None:
                await self._score(outputs, kwargs)
            else:
                with SPANS.measure("reward"):
                    await self._score(outputs, kwargs)

    async def _score(self, outputs: list[Any], kwargs: dict[str, Any]) -> None:
        # Rewards may look at the whole prompt and at the number of tokens; verl hands over neither.
        row = {**kwargs, "extra_info": describe_sample(outputs, kwargs)}
        local = self._local_rewards
        if local is None or not local.scores_views or len(outputs) > 1 or outputs[0].reward_score is not None:
            await super()._compute_score(outputs, kwargs=row)
            return
        (output,) = outputs
        started = time.perf_counter()
        result = await local.score(output, row)
        output.reward_score = result["reward_score"]
        output.extra_fields["reward_extra_info"] = result["reward_extra_info"]
        output.metrics.compute_score = time.perf_counter() - started

    async def generate_sequences(self, batch: Any) -> None:
        self._news.expect(len(batch))
        await super().generate_sequences(batch)

    async def wait_for_news(self) -> None:
        """Return when prompts have reached a terminal status that were not told of yet."""
        await self._news.wait()

    async def _run_prompt(self, *args: Any, **kwargs: Any) -> None:
        # Each prompt is a task of its own, and its sessions inherit the task's context.
        current_group.set(Group())
        await super()._run_prompt(*args, **kwargs)


class AgentLoopManager(agent_loop_tq.AgentLoopManagerTQ):
    """Distributes prompts over :class:`AgentLoopWorker` actors."""

    #: May have started workers already; set by the engine.
    layer: Layer = Layer()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(AgentLoopWorker)
        self._news = CompletionSignalFrom()
        #: Constructors of started workers that were not waited for yet.
        self._constructions: list[Any] = []

    async def _init_agent_loop_workers(self) -> None:
        workers = self.layer.take_workers(self.rollout_config.agent.num_workers)
        if workers is None:
            await super()._init_agent_loop_workers()
            return
        arguments = (self.config, self.llm_client, self.teacher_client, self.reward_loop_worker_handles)
        self._constructions = [worker.construct.remote(*arguments) for worker in workers]
        self.agent_loop_workers = workers

    def generate_sequences(self, prompts: Any) -> None:
        # Calls of an asynchronous actor may overtake each other, and its constructor may have failed.
        ray.get(self._constructions)
        self._constructions = []
        super().generate_sequences(prompts)

    def wait_for_news(self, timeout_s: float) -> None:
        """Return when prompts have reached a terminal status since the last call, or after ``timeout_s``."""
        self._news.wait(self.agent_loop_workers, timeout_s)


def without_references(config: Any) -> Any:
    """Resolve the references to other keys in ``config``: verl reads it several times per request."""
    return OmegaConf.create(OmegaConf.to_container(config, resolve=True))


#: Loops that serve all episodes of this process, by class.
_shared: dict[type[Any], Any] = {}


@cache
def _plain_target(name: str) -> Any:
    return get_class(name)


def instantiate_agent_loop(config: Any, **kwargs: Any) -> Any:
    """Instantiate as Hydra does, without merging configurations where ``config`` needs none.

    verl's single-turn loop, and loops of ours that keep nothing between episodes (``is_shared``), are made
    once: a worker's ``config`` and ``kwargs`` are always the same.
    """
    cls = _plain_target(config["_target_"])
    if cls is SingleTurnAgentLoop and set(config) == {"_target_"}:
        return _share(SharedSingleTurnLoop, kwargs)
    if getattr(cls, "is_shared", False):
        return _share(cls, kwargs, config)
    return instantiate(config=config, **kwargs) if set(config) != {"_target_"} else cls(**kwargs)


def _share(cls: type[Any], kwargs: dict[str, Any], config: Any = None) -> Any:
    known = _shared.get(cls)
    if known is None or known.server_manager is not kwargs["server_manager"]:
        plain: Any = {} if config is None else OmegaConf.to_container(config, resolve=True)
        own = {name: value for name, value in plain.items() if name not in ("_target_", "name")}
        known = _shared[cls] = cls(**kwargs, **own)
    return known
