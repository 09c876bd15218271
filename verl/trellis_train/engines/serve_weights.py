"""Lets a newer checkpoint of a job take the place of the weights in the engine that serves an older one.

The platform names it in the reply to a heartbeat, as it names adapters (``serve_adapters``). What can't be
taken is reported with the reason and gets an engine of its own; the older checkpoint stays. What is withdrawn
before the engine has it is dropped. One that fails in the middle ends: it may have weights of both.
"""

import json
import logging
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from safetensors import safe_open
from trellis_contracts.attempt import ADAPTERS_FILE, REPLACE_TIMEOUT_S
from trellis_contracts.evaluation import AdapterList, AdapterTask
from trellis_contracts.events import AdapterEvent
from trellis_contracts.spec import JobSpec

from trellis_train.compat.applying import require_group
from trellis_train.compat.change import EngineMoved
from trellis_train.compat.other_methods import REPLACEMENT
from trellis_train.engines.engine_client import POLL_S, EngineClient, EngineRefused, describe
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.stop import StoppedByRequest, leave_if_asked
from trellis_train.serve_gate import REPLACE_PATH, STATUS_BUSY

logger = logging.getLogger(__name__)

#: Those with which it was seen that an engine answers after a replacement exactly as one that starts with the
#: new weights (``tests/train/engines/test_serve_real.py``). vLLM reloads others, some of them wrong without
#: a word: https://github.com/vllm-project/vllm/pull/48284
ARCHITECTURES = frozenset({"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"})
#: The server reads them once, when it starts.
_READ_ONCE = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
#: Of ``config.json``: what says nothing of the shape.
_NO_SHAPE = frozenset({"transformers_version", "_name_or_path"})


class WeightsRefused(Exception):
    """The weights can't take the place of the engine's; the message says why. The engine is as it was."""


class WeightsWithdrawn(Exception):
    """The platform no longer asks for the weights. The engine is as it was."""


class WeightsBroken(Exception):
    """The engine failed while it took the weights; nobody knows which it has."""


class WeightsReplacer:
    """A thread that replaces an engine's weights as the platform asks.

    ``folder`` has the weights that it started with; ``fail`` is told why the engine has to end.
    """

    def __init__(
        self, spec: JobSpec, url: str, key: str, spool: Spool, *, folder: Path, fail: Callable[[str], None]
    ) -> None:
        self._spec, self._engine, self._spool = spec, EngineClient(url, key), spool
        self._folder, self._fail = folder, fail
        #: Removes the files of the current weights, once others have taken their place.
        self._kept = ExitStack()
        if folder.is_relative_to(spec.attempt_dir):  # gathered for this engine, which has read them
            self._kept.callback(_remove_weights, folder)
        self._handled: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="weights", daemon=True)

    def start(self) -> None:
        """Begin; it ends with the process."""
        self._thread.start()

    def advance(self) -> None:
        """Replace the weights, if the platform asks for that and did not before."""
        for task in self._read_wanted():
            if task.replaces and task.load_id not in self._handled:
                self._handled.add(task.load_id)
                self._replace_and_report(task)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(POLL_S):
            try:
                self.advance()
            except StoppedByRequest:
                return
            except Exception:  # the edge of the thread: the engine goes on as it is
                logger.exception("the weights could not be brought up to date")
                pause.wait(POLL_S * 10)

    def _replace_and_report(self, task: AdapterTask) -> None:
        reason: str | None = None
        broken = False
        try:
            self._replace(task)
        except StoppedByRequest:
            raise
        except WeightsWithdrawn:  # nobody waits for an answer
            print(f"The weights of '{task.served_name}' are no longer asked for.", flush=True)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is: the platform gives it an engine of its own
            reason = describe(error)
            broken = isinstance(error, WeightsBroken)
            print(f"The weights of '{task.served_name}' can't replace those here: {reason}", flush=True)
        else:
            print(f"The weights are those of '{task.served_name}' now.", flush=True)
        self._spool.write(
            AdapterEvent(time=now(), endpoint_id=task.endpoint_id, load_id=task.load_id, reason=reason)
        )
        if broken:
            self._fail(f"The weights could not be replaced: {reason}")

    def _replace(self, task: AdapterTask) -> None:
        from trellis_train.evaluate.weights import gather_checkpoint

        if task.checkpoint is None:
            raise WeightsRefused("Its files are gone.")

        def go_on() -> None:
            leave_if_asked(self._spec.attempt_dir)
            self._require_wanted(task)

        require_room(Path(self._spec.attempt_dir), self._folder)
        with ExitStack() as stack:
            folder = stack.enter_context(gather_checkpoint(self._spec, task.checkpoint, go_on))
            require_same_shape(folder, self._folder)
            go_on()
            self._post({"folder": str(folder), "name": task.served_name})
            self._folder = folder
            self._kept.close()
            self._kept = stack.pop_all()

    def _read_wanted(self) -> list[AdapterTask]:
        try:
            text = (Path(self._spec.attempt_dir) / ADAPTERS_FILE).read_text()
        except FileNotFoundError:
            return []
        return AdapterList.model_validate_json(text).adapters

    def _require_wanted(self, task: AdapterTask) -> None:
        if all(each.load_id != task.load_id for each in self._read_wanted()):
            raise WeightsWithdrawn

    def _post(self, body: dict[str, str]) -> None:
        try:
            self._engine.post(REPLACE_PATH, body, timeout_s=REPLACE_TIMEOUT_S)
        except EngineRefused as error:
            raise (WeightsRefused if error.status == STATUS_BUSY else WeightsBroken)(str(error)) from error
        except OSError as error:
            raise WeightsBroken(str(error)) from error


def is_replaceable(folder: Path) -> bool:
    """Tell whether the weights of an engine that serves this folder can be replaced."""
    try:
        require_group(REPLACEMENT)
    except EngineMoved as error:
        print(f"The weights can't be replaced while the engine runs: {error}", flush=True)
        return False
    config = _read_json(folder / "config.json")
    named = config.get("architectures") or [None]
    return named[0] in ARCHITECTURES and "quantization_config" not in config


def require_room(disk: Path, current: Path) -> None:
    """Raise ``WeightsRefused`` unless the disk has room for as many weights as the current folder has."""
    needed, free = sum(path.stat().st_size for path in _list_weights(current)), shutil.disk_usage(disk).free
    if free < needed:
        raise WeightsRefused(
            f"A copy of its weights takes {needed / 1e9:.1f} GB, and the disk has {free / 1e9:.1f} GB left."
        )


def require_same_shape(folder: Path, current: Path) -> None:
    """Raise ``WeightsRefused`` unless two folders differ in nothing but the values of their weights."""
    configs = [_read_json(each / "config.json") for each in (folder, current)]
    new, old = ({key: value for key, value in each.items() if key not in _NO_SHAPE} for each in configs)
    if new != old:
        raise WeightsRefused("Its configuration differs from that of the running checkpoint.")
    for name in _READ_ONCE:
        if _read_json(folder / name) != _read_json(current / name):
            raise WeightsRefused(f"Its {name} differs from that of the running checkpoint.")
    if _read_shapes(folder) != _read_shapes(current):
        raise WeightsRefused("Its weights have other names, shapes or types than those that are loaded.")


def _read_shapes(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Read the type and shape of each weight, from the heads of the files."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for path in _list_weights(folder):
        with safe_open(path, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - no mapping
                part = weights.get_slice(name)
                found[name] = (str(part.get_dtype()), tuple(part.get_shape()))
    return found


def _read_json(path: Path) -> Any:
    """Read a file; the text where it is not JSON, and nothing where it is not there."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list_weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _remove_weights(folder: Path) -> None:
    """Remove a folder's weights. The rest stays: the engine was started from the folder."""
    for path in _list_weights(folder):
        path.unlink(missing_ok=True)
