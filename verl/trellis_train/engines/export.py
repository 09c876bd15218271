"""Writes a checkpoint as a Hugging Face folder: ``python -m trellis_train.engines.export <spec.json>``.

Everything is written into a folder beside the final one, checked there, and then takes its place by
one rename: whoever looks sees the whole export or none. An isolated job can write to the final folder
alone, which is there already; it is filled at once at the end, and is no model before the job succeeds.
"""

import os
import shutil
import sys
from functools import partial
from pathlib import Path

from trellis_contracts.attempt import locate_staging
from trellis_contracts.events import Phase, ProgressEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, ExportTask, JobSpec

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.stop import StoppedByRequest, leave_if_asked

PRODUCER = "exporter"
#: Read, write, check, put in place.
TOTAL_STEPS = 4
#: In the output folder, where nothing can be written beside it.
_STAGING = ".partial"


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
        print("The export was stopped; its partial output was removed.", flush=True)
        return EXIT_STOPPED
    return EXIT_SUCCEEDED


class _Export:
    """One export, step by step."""

    def __init__(self, spec: JobSpec, task: ExportTask) -> None:
        self._spec = spec
        self._task = task
        self._base = Path(spec.model.path) if spec.model.path else None
        self._output = Path(task.output_path)
        self._is_confined = self._output.is_dir() and not os.access(self._output.parent, os.W_OK)
        self._staging = self._output / _STAGING if self._is_confined else locate_staging(self._output)
        self._spool = Spool(spec.attempt_dir, PRODUCER)

    def run(self) -> None:
        try:
            self._enter("loading", 0)
            # What an attempt that was killed has left.
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging.parent.mkdir(parents=True, exist_ok=True)
            if self._is_confined:
                _empty(self._output)
            self._write()
            self._enter("validating", 2)
            self._check()
            self._enter("saving", 3)
            self._put_in_place()
            self._report("finished", TOTAL_STEPS)
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _write(self) -> None:
        _say(f"Exporting step {self._task.step} of {self._task.job_id} ({self._task.form}).")
        if self._task.form == "adapter":
            self._write_adapter()
            return
        from trellis_train.export.gathering import gather_model

        self._enter("saving", 1)
        gather_model(
            Path(self._task.checkpoint_path),
            base=self._base,
            output=self._staging,
            scratch=Path(self._spec.attempt_dir),
            leave_if_asked=partial(leave_if_asked, self._spec.attempt_dir),
        )

    def _write_adapter(self) -> None:
        from trellis_train.export.adapters import write_adapter
        from trellis_train.export.errors import CheckpointIncomplete, CheckpointMismatch
        from trellis_train.export.layout import read_layout

        layout = read_layout(Path(self._task.checkpoint_path))
        if not layout.has_adapter:
            raise CheckpointMismatch(
                "The checkpoint contains full weights, not an adapter; export it merged."
            )
        if self._base is None:
            raise CheckpointIncomplete("The adapter's base model no longer exists.")
        self._enter("saving", 1)
        write_adapter(layout, base=self._base, output=self._staging)

    def _check(self) -> None:
        from trellis_train.export.checking import check_adapter, check_model

        check = check_adapter if self._task.form == "adapter" else check_model
        _say(check(self._staging))

    def _put_in_place(self) -> None:
        """Move the export to its final path; an attempt that dies right after this repeats the export."""
        if self._is_confined:
            for path in list(self._staging.iterdir()):
                path.rename(self._output / path.name)
        else:
            if self._output.exists():
                shutil.rmtree(self._output)
            self._staging.rename(self._output)
        _say(f"Written to {self._output}.")

    def _enter(self, phase: Phase, step: int) -> None:
        self._report(phase, step)
        leave_if_asked(self._spec.attempt_dir)

    def _report(self, phase: Phase, step: int) -> None:
        self._spool.write(ProgressEvent(time=now(), phase=phase, step=step, total_steps=TOTAL_STEPS))


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
