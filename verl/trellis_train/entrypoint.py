"""The one command that a Ray job runs: ``python -m trellis_train.entrypoint <spec.json>``.

A light parent (it imports no torch) that prepares the data, runs the engine as a child
process, and reports everything to the platform, the end included. The exit code decides
how the attempt ended: see ``trellis_contracts.spec``.

With ``--alone`` there is no platform: events stay in the attempt's spool, and the run leaves
at a checkpoint when the process that started it dies.
"""

import logging
import shutil
import sys
from pathlib import Path

from pydantic import ValidationError
from trellis_contracts.attempt import TEMPORARY_FOLDER, TOKEN_FILE
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import EXIT_BAD_SPEC, SPEC_VERSION, JobSpec
from trellis_contracts.temporary import own_temporary_folder

from trellis_train.supervise.run import SupervisedRun
from trellis_train.supervise.standalone import leave_with_parent

ENGINE_MODULES = {
    Engine.VERL_PPO: "trellis_train.engines.ppo",
    Engine.VERL_SFT: "trellis_train.engines.sft",
    Engine.EXPORT: "trellis_train.engines.export",
    Engine.TRL: "trellis_train.engines.trl",
    Engine.RETRIEVAL: "trellis_train.engines.retrieval",
    Engine.EVALUATE: "trellis_train.engines.evaluate",
    Engine.SERVE: "trellis_train.engines.serve",
}
#: The option of a run that no platform is told of.
ALONE = "--alone"


class BadSpecError(Exception):
    """The spec cannot be used; the message says what is wrong with it."""


def main(arguments: list[str]) -> int:
    """Run the attempt that the spec file describes; the exit code of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    is_alone = ALONE in arguments
    paths = [argument for argument in arguments if argument != ALONE]
    if len(paths) != 1:
        print(f"usage: python -m trellis_train.entrypoint [{ALONE}] <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec_path = Path(paths[0]).resolve()
    try:
        spec = load_spec(spec_path)
        token = None if is_alone else read_token(Path(spec.attempt_dir))
    except BadSpecError as error:
        print(f"bad spec: {error}", file=sys.stderr)
        return EXIT_BAD_SPEC
    if is_alone:
        leave_with_parent()
    command = [sys.executable, "-m", ENGINE_MODULES[spec.engine], str(spec_path)]
    try:
        with own_temporary_folder():
            return SupervisedRun(spec, token, command).execute()
    finally:
        # Of processes that Ray has started as well, where the run is isolated.
        shutil.rmtree(Path(spec.attempt_dir) / TEMPORARY_FOLDER, ignore_errors=True)


def load_spec(path: Path) -> JobSpec:
    """Read the spec, or raise ``BadSpecError``."""
    try:
        spec = JobSpec.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadSpecError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadSpecError(f"{path}: {error}") from error
    if spec.version != SPEC_VERSION:
        raise BadSpecError(
            f"{path} has spec version {spec.version}, but this version of the code reads {SPEC_VERSION}"
        )
    return spec


def read_token(attempt_dir: Path) -> str:
    """Read the ingest token of this attempt. Raises ``BadSpecError``."""
    try:
        return (attempt_dir / TOKEN_FILE).read_text().strip()
    except OSError as error:
        raise BadSpecError(f"the ingest token cannot be read: {error}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
