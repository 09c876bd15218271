"""The layer that makes runs on a CPU faster: what it changes, what it starts ahead, what it forks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trellis_train.compat.applying import apply, apply_now
from trellis_train.cpu import changes
from trellis_train.cpu.changes import FORKING
from trellis_train.cpu.forking import start_fork_server
from trellis_train.cpu.pieces import PACKED_ATTENTION, PRESTARTING, SPINNING, is_used
from trellis_train.cpu.trainer_process import THREADS
from trellis_train.platform.layer import Layer

if TYPE_CHECKING:
    from trellis_train.cpu.forkserver.server import ForkServer
    from trellis_train.cpu.prestarted_actors import PrestartedActors


class CpuLayer(Layer):
    """What ``TRELLIS_CPU_ACCELERATION=0`` leaves out."""

    def __init__(self) -> None:
        self._fork_server: ForkServer | None = None
        self._early: PrestartedActors | None = None

    def change_trainer(self) -> None:
        for group in filter(is_used, changes.TRAINERS):
            apply(group)

    def change_models(self) -> None:
        if not is_used(PACKED_ATTENTION):
            return
        from trellis_train.cpu.packed_attention import register_packed_attention

        register_packed_attention()

    def change_rollout_engine(self) -> None:
        for group in filter(is_used, changes.ROLLOUT):
            apply(group)

    def change_driver(self) -> None:
        for group in filter(is_used, changes.DRIVER):
            apply_now(group)

    def environment(self) -> Mapping[str, str]:
        return THREADS if is_used(SPINNING) else {}

    def prepare(self) -> None:
        if is_used(FORKING):
            self._fork_server = start_fork_server()

    def interpreter(self) -> str | None:
        return None if self._fork_server is None else self._fork_server.shell_command()

    def start_servers(self, config: Any) -> None:
        if not is_used(PRESTARTING):
            return
        from trellis_train.cpu.prestarted_actors import PrestartedActors

        self._early = PrestartedActors(config)

    def start_workers(self) -> None:
        if self._early is not None:
            self._early.start_workers()

    def server_class(self, cls: Any) -> Any:
        from trellis_train.cpu.prestarted_actors import PrestartedServerClass

        return cls if self._early is None else PrestartedServerClass(cls, self._early)

    def take_workers(self, count: int) -> list[Any] | None:
        from trellis_train.cpu.prestarted_actors import AGENT_LOOP

        if self._early is None:
            return None
        taken = [self._early.take(AGENT_LOOP) for _ in range(count)]
        workers = [worker for worker in taken if worker is not None]
        return workers if len(workers) == count else None
