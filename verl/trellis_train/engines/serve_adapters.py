"""Loads adapters into an engine that serves their base model, and unloads them, as the platform asks.

The platform names them in the reply to a heartbeat; the supervisor writes them to a file of the attempt's
folder, which is read here. vLLM reads adapters in PEFT's format, so checkpoints are brought into that first.
The folders stay while the engine runs: vLLM drops adapters that are not in use and reads them again.
"""

import json
import logging
import shutil
import threading
import time
from pathlib import Path

from trellis_contracts.attempt import ADAPTERS_FILE, ADAPTERS_FOLDER
from trellis_contracts.evaluation import AdapterList, AdapterTask
from trellis_contracts.events import AdapterEvent
from trellis_contracts.spec import JobSpec

from trellis_train.engines.engine_client import POLL_S, EngineClient, EngineRefused, describe
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.serve import read_template

logger = logging.getLogger(__name__)

#: Of a request to the engine: it may be busy with a long batch.
_TIMEOUT_S = 120.0
#: Longer than a request waits in the engine before it is computed.
_KEPT_S = 1800.0
_UNKNOWN = 404


class AdapterRefused(Exception):
    """The engine can't serve an adapter; the message is its own."""


class AdapterUnknown(AdapterRefused):
    """The engine has no adapter of the name."""


class AdapterLoader:
    """A thread that keeps the adapters of an engine equal to what the platform asks for.

    ``refusal`` says why the engine runs without room for adapters, where it does: each is refused with it.
    """

    def __init__(
        self, spec: JobSpec, url: str, key: str, spool: Spool, *, refusal: str | None = None
    ) -> None:
        self._spec = spec
        self._attempt_dir, self._base = Path(spec.attempt_dir), Path(spec.model.path)
        self._engine, self._spool, self._refusal = EngineClient(url, key), spool, refusal
        #: What was asked for and has been tried, by the request's identity; whether it is loaded.
        self._handled: dict[str, bool] = {}
        #: What the engine has, by name: the request that it was loaded for.
        self._loaded: dict[str, str] = {}
        #: Folders of unloaded adapters, with the time from which no request in flight needs them.
        self._left: list[tuple[float, Path]] = []
        self._read = ""
        self._thread = threading.Thread(target=self._run, name="adapters", daemon=True)

    def start(self) -> None:
        """Begin; it ends with the process."""
        shutil.rmtree(self._attempt_dir / ADAPTERS_FOLDER, ignore_errors=True)
        self._thread.start()

    def advance(self) -> None:
        """Load and unload once, if the platform has changed its mind since the last call."""
        self._remove_left()
        path = self._attempt_dir / ADAPTERS_FILE
        try:
            text = path.read_text()
        except FileNotFoundError:
            return
        if text == self._read:
            return
        wanted = {task.load_id: task for task in AdapterList.model_validate_json(text).adapters}
        for load_id in [each for each in self._handled if each not in wanted]:
            self._forget(load_id)
        for load_id, task in wanted.items():
            if load_id not in self._handled:
                self._load_and_report(task)
        self._read = text

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(POLL_S):
            try:
                self.advance()
            except Exception:  # the edge of the thread: the engine goes on without the change
                logger.exception("the adapters could not be brought up to date")
                pause.wait(POLL_S * 10)

    def _load_and_report(self, task: AdapterTask) -> None:
        reason: str | None = None
        try:
            self._load(task)
        except Exception as error:  # noqa: BLE001 - whatever it is: the platform gives it an engine of its own
            reason = describe(error)
            print(f"The adapter '{task.served_name}' can't be loaded: {reason}", flush=True)
        self._handled[task.load_id] = reason is None
        self._spool.write(
            AdapterEvent(time=now(), endpoint_id=task.endpoint_id, load_id=task.load_id, reason=reason)
        )

    def _load(self, task: AdapterTask) -> None:
        from trellis_train.export.adapters import write_adapter
        from trellis_train.export.layout import read_layout

        if self._refusal is not None:
            raise AdapterRefused(self._refusal)
        if task.checkpoint is None:
            raise AdapterRefused("Its files are gone.")
        if task.served_name in self._loaded:  # it could not be unloaded before
            self._unload(task.served_name)
        folder = self._folder_of(task.load_id)
        layout = read_layout(Path(task.checkpoint.path))
        for own in (layout.adapter, layout.config):
            if own is not None:
                require_same_prompts(own, base=self._base)
        write_adapter(layout, base=self._base, output=folder)
        self._post("load_lora_adapter", {"lora_name": task.served_name, "lora_path": str(folder)})
        self._loaded[task.served_name] = task.load_id
        print(f"The adapter '{task.served_name}' is loaded.", flush=True)

    def _forget(self, load_id: str) -> None:
        """Unload what is no longer asked for. One that stays loaded harms no other: nothing names it."""
        del self._handled[load_id]
        for name in [each for each, loaded in self._loaded.items() if loaded == load_id]:
            try:
                self._unload(name)
            except (AdapterRefused, OSError) as error:
                logger.warning("the adapter '%s' can't be unloaded: %s", name, error)

    def _unload(self, name: str) -> None:
        """Unload one; what the engine does not know is unloaded."""
        try:
            self._post("unload_lora_adapter", {"lora_name": name})
        except AdapterUnknown:
            logger.warning("the engine no longer has the adapter '%s'", name)
        else:
            print(f"The adapter '{name}' is unloaded.", flush=True)
        # A request that waits in the engine may need the files: a missing one would end the engine.
        self._left.append((time.monotonic() + _KEPT_S, self._folder_of(self._loaded.pop(name))))

    def _remove_left(self) -> None:
        while self._left and self._left[0][0] <= time.monotonic():
            shutil.rmtree(self._left.pop(0)[1], ignore_errors=True)

    def _folder_of(self, load_id: str) -> Path:
        return self._attempt_dir / ADAPTERS_FOLDER / load_id

    def _post(self, path: str, body: dict[str, str]) -> None:
        try:
            self._engine.post(f"/v1/{path}", body, timeout_s=_TIMEOUT_S)
        except EngineRefused as error:
            if error.status == _UNKNOWN:
                raise AdapterUnknown(path) from error
            raise AdapterRefused(str(error)) from error


def require_same_prompts(adapter: Path, *, base: Path) -> None:
    """Raise ``AdapterRefused`` where an adapter was trained with another template or other tokens.

    The engine renders every prompt as the base model's. Merged weights keep the adapter's own.
    """
    template = read_template(adapter)
    if template and template != read_template(base):
        raise AdapterRefused("Its chat template differs from its base model's.")
    own, bases = _read_tokens(adapter), _read_tokens(base)
    if own is not None and bases is not None and own != bases:
        raise AdapterRefused("Its tokenizer has other tokens than its base model's.")


def _read_tokens(folder: Path) -> tuple[int, list[tuple[int, str]]] | None:
    """Read how many tokens there are, and which were added; None if the tokenizer has another format."""
    try:
        found = json.loads((folder / "tokenizer.json").read_text())
        added = sorted((int(each["id"]), str(each["content"])) for each in found["added_tokens"])
        return len(found["model"]["vocab"]), added
    except (OSError, ValueError, KeyError, TypeError):
        return None
