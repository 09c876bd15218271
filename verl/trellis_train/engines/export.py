"""Writes a checkpoint as a Hugging Face folder: ``python -m trellis_train.engines.export <spec.json>``.

Everything is written into a folder beside the final one, checked there, and then takes its place by
one rename: whoever looks sees the whole export or none.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from trellis_contracts.attempt import locate_staging
from trellis_contracts.events import Phase, ProgressEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, ExportTask, JobSpec

from trellis_train.hooks.clock import now
from trellis_train.hooks.spool import Spool, is_stop_requested
from trellis_train.hooks.stop import StoppedByRequest

PRODUCER = "exporter"
#: Read, write, check, put in place.
TOTAL_STEPS = 4


def main(arguments: list[str]) -> int:
    """Run the export of the spec file named in ``arguments``; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.export <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    if spec.export is None:
        print("bad spec: it does not say what to export", file=sys.stderr)
        return EXIT_BAD_SPEC
    # Before transformers and verl are imported: they read the environment then.
    os.environ.update(spec.env)
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    try:
        _Export(spec, spec.export).run()
    except StoppedByRequest:
        print("The export was stopped; nothing of it is left.", flush=True)
        return EXIT_STOPPED
    return EXIT_SUCCEEDED


class _Export:
    """One export, step by step."""

    def __init__(self, spec: JobSpec, task: ExportTask) -> None:
        self._spec = spec
        self._task = task
        self._base = Path(spec.model.path) if spec.model.path else None
        self._output = Path(task.output_path)
        self._staging = locate_staging(self._output)
        self._spool = Spool(spec.attempt_dir, PRODUCER)

    def run(self) -> None:
        try:
            self._enter("loading", 0)
            # What an attempt that was killed has left.
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging.parent.mkdir(parents=True, exist_ok=True)
            self._write()
            self._enter("validating", 2)
            self._check()
            self._enter("saving", 3)
            self._put_in_place()
            self._report("finished", TOTAL_STEPS)
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _write(self) -> None:
        from trellis_train.export.adapters import merge_adapter, write_adapter
        from trellis_train.export.errors import CheckpointIncomplete, CheckpointMismatch
        from trellis_train.export.layout import read_layout
        from trellis_train.export.shards import gather
        from trellis_train.export.writing import choose_dtype, copy_companions, copy_model, write_state

        layout = read_layout(Path(self._task.checkpoint_path))
        if self._task.form == "adapter" and not layout.has_adapter:
            raise CheckpointMismatch("The checkpoint holds whole weights, no adapter; export it merged.")
        dtype = choose_dtype(self._base, layout.config)
        _say(f"Exporting step {self._task.step} of {self._task.job_id} ({self._task.form}).")
        self._enter("saving", 1)
        if layout.has_adapter:
            base = self._base
            if base is None:
                raise CheckpointIncomplete("The adapter's base model is no longer there.")
            if self._task.form == "adapter":
                write_adapter(layout, base=base, output=self._staging)
                return
            with tempfile.TemporaryDirectory(dir=self._spec.attempt_dir) as folder:
                write_adapter(layout, base=base, output=Path(folder))
                self._leave_if_asked()
                merge_adapter(Path(folder), base=base, output=self._staging, dtype=dtype)
        elif layout.model is not None:
            copy_model(layout.model, self._staging, dtype=dtype)
        elif layout.shards is not None and layout.config is not None:
            state = gather(layout.shards)
            self._leave_if_asked()
            write_state(state, config_folder=layout.config, output=self._staging, dtype=dtype)
        else:
            raise CheckpointIncomplete("The checkpoint does not say what model its weights are of.")
        if self._base is not None:  # a tokenizer or a generation config that the trainer did not save
            copy_companions(self._base, self._staging, replaces=False)

    def _check(self) -> None:
        from trellis_train.export.checking import check_adapter, check_model

        check = check_adapter if self._task.form == "adapter" else check_model
        _say(check(self._staging))

    def _put_in_place(self) -> None:
        """The moment at which the export exists. An attempt that died right behind it is done again."""
        if self._output.exists():
            shutil.rmtree(self._output)
        self._staging.rename(self._output)
        _say(f"Written to {self._output}.")

    def _enter(self, phase: Phase, step: int) -> None:
        self._report(phase, step)
        self._leave_if_asked()

    def _report(self, phase: Phase, step: int) -> None:
        self._spool.write(ProgressEvent(time=now(), phase=phase, step=step, total_steps=TOTAL_STEPS))

    def _leave_if_asked(self) -> None:
        if is_stop_requested(self._spec.attempt_dir):
            raise StoppedByRequest


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
