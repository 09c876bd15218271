"""Loads adapters into an engine that serves their base model, and unloads them, as the platform asks.

The platform names them in the reply to a heartbeat; the supervisor writes them to a file of the attempt's
folder, which is read here. vLLM reads adapters in PEFT's format, so checkpoints are brought into that first.
The folders stay while the engine runs: vLLM drops adapters that are not in use and reads them again.
"""

import json
import logging
import shutil
import threading
import urllib.error
import urllib.request
from pathlib import Path

from trellis_contracts.attempt import ADAPTERS_FILE, ADAPTERS_FOLDER
from trellis_contracts.evaluation import AdapterList, AdapterTask
from trellis_contracts.events import AdapterEvent
from trellis_contracts.spec import JobSpec

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool

logger = logging.getLogger(__name__)

_POLL_S = 0.3
#: Of a request to the engine: it may be busy with a long batch.
_TIMEOUT_S = 120.0
_MAX_REASON = 500


class AdapterRefused(Exception):
    """The engine can't serve an adapter; the message is its own."""


class AdapterLoader:
    """A thread that keeps the adapters of an engine equal to what the platform asks for."""

    def __init__(self, spec: JobSpec, url: str, key: str, spool: Spool) -> None:
        self._attempt_dir, self._base = Path(spec.attempt_dir), Path(spec.model.path)
        self._url, self._key, self._spool = url, key, spool
        #: What was asked for and has been tried, by the endpoint's id: the name, or None where it failed.
        self._handled: dict[str, str | None] = {}
        self._read = ""
        self._thread = threading.Thread(target=self._run, name="adapters", daemon=True)

    def start(self) -> None:
        """Begin; it ends with the process."""
        shutil.rmtree(self._attempt_dir / ADAPTERS_FOLDER, ignore_errors=True)
        self._thread.start()

    def advance(self) -> None:
        """Load and unload once, if the platform has changed its mind since the last call."""
        path = self._attempt_dir / ADAPTERS_FILE
        try:
            text = path.read_text()
        except FileNotFoundError:
            return
        if text == self._read:
            return
        wanted = AdapterList.model_validate_json(text).adapters
        ids = {task.endpoint_id for task in wanted}
        for endpoint_id in [each for each in self._handled if each not in ids]:
            self._unload(endpoint_id)
        for task in wanted:
            if task.endpoint_id not in self._handled:
                self._load_and_report(task)
        self._read = text

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(_POLL_S):
            try:
                self.advance()
            except Exception:  # the edge of the thread: the engine goes on without the change
                logger.exception("the adapters could not be brought up to date")
                pause.wait(_POLL_S * 10)

    def _load_and_report(self, task: AdapterTask) -> None:
        reason: str | None = None
        try:
            self._load(task)
        except Exception as error:  # noqa: BLE001 - whatever it is: the platform gives it an engine of its own
            reason = (str(error) or type(error).__name__)[:_MAX_REASON]
            print(f"The adapter '{task.served_name}' can't be loaded: {reason}", flush=True)
        self._handled[task.endpoint_id] = task.served_name if reason is None else None
        self._spool.write(AdapterEvent(time=now(), endpoint_id=task.endpoint_id, reason=reason))

    def _load(self, task: AdapterTask) -> None:
        from trellis_train.export.adapters import write_adapter
        from trellis_train.export.layout import read_layout

        folder = self._folder_of(task.endpoint_id)
        write_adapter(read_layout(Path(task.checkpoint.path)), base=self._base, output=folder)
        self._post("load_lora_adapter", {"lora_name": task.served_name, "lora_path": str(folder)})
        print(f"The adapter '{task.served_name}' is loaded.", flush=True)

    def _unload(self, endpoint_id: str) -> None:
        name = self._handled[endpoint_id]
        if name is not None:
            self._post("unload_lora_adapter", {"lora_name": name})
            print(f"The adapter '{name}' is unloaded.", flush=True)
        shutil.rmtree(self._folder_of(endpoint_id), ignore_errors=True)
        del self._handled[endpoint_id]

    def _folder_of(self, endpoint_id: str) -> Path:
        return self._attempt_dir / ADAPTERS_FOLDER / endpoint_id

    def _post(self, path: str, body: dict[str, str]) -> None:
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self._url}/v1/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
                return
        except urllib.error.HTTPError as error:
            raise AdapterRefused(_read_message(error.read()) or f"status {error.code}") from error


def _read_message(content: bytes) -> str | None:
    try:
        return str(json.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return None
