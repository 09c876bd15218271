"""The program that pushes a model to a hub: ``python -m trellis_workers.transfers.push FOLDER``.

Large files are sent one after the other and become part of the repository with one commit at the end: a
push that is cancelled leaves the repository as it was. What the hub has already is not sent again, so that
a push that is resumed goes on with the file at which it stopped.
"""

import json
import os
import sys
from pathlib import Path

import httpx
from huggingface_hub import CommitOperationAdd, HfApi, get_session
from huggingface_hub import constants as hub_constants
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_contracts.parent_death import die_with
from trellis_contracts.transfers import PROGRESS_FILE, PUSH_ORDER_FILE, PushOrder
from trellis_data.guarded_clients import guard_hub
from trellis_data.operator import OperatorProblem
from trellis_recipes.modelscope import ModelScopeError

from trellis_workers.models.modelscope import ModelScope

_CARD = "README.md"
_REFUSED = (401, 403)
#: Characters of a hub's own words that are passed on.
_MAX_WORDS = 500


class PushRefused(Exception):
    """The hub does not take it; the message is one sentence for people."""


def push(folder: Path) -> dict[str, object]:
    """Carry out the order in the folder; the result as ``TransferResult`` reads it."""
    order = PushOrder.model_validate_json((folder / PUSH_ORDER_FILE).read_bytes())
    if order.hub == "modelscope":
        return _push_to_modelscope(order, folder / PROGRESS_FILE)
    endpoint = os.environ.get("HF_ENDPOINT") or hub_constants.ENDPOINT
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise PushRefused("Pushing needs a token with write access: set HF_TOKEN for the workers.")
    guard_hub(endpoint)
    api = HfApi(endpoint=endpoint, token=token)
    try:
        return _push(api, order, folder / PROGRESS_FILE)
    except Exception as error:  # the hub's client raises whatever an answer leads to
        said = _explain(error, order, httpx.URL(endpoint).host)
        if said is None:
            raise
        raise PushRefused(said) from error


def _push(api: HfApi, order: PushOrder, progress: Path) -> dict[str, object]:
    _check_card(api, order.card)
    api.create_repo(order.repo_id, private=order.private, exist_ok=True)
    if order.revision != hub_constants.DEFAULT_REVISION:
        api.create_branch(order.repo_id, branch=order.revision, exist_ok=True)
    sizes = {file.name: Path(file.path).stat().st_size for file in order.files}
    card = order.card.encode()
    total = sum(sizes.values()) + len(card)
    done = 0
    additions = []
    for file in order.files:
        _tell(progress, done, total, file.name)
        addition = CommitOperationAdd(file.name, file.path)
        api.preupload_lfs_files(
            order.repo_id, [addition], revision=order.revision, num_threads=1, free_memory=False
        )
        additions.append(addition)
        done += sizes[file.name]
    _tell(progress, done, total, _CARD)
    additions.append(CommitOperationAdd(_CARD, card))
    commit = api.create_commit(
        order.repo_id, additions, commit_message=order.message, revision=order.revision, num_threads=1
    )
    _tell(progress, total, total, None)
    return {
        "url": f"{api.endpoint}/{order.repo_id}/tree/{order.revision}",
        "commit": commit.oid,
        "size_bytes": total,
    }


def _check_card(api: HfApi, card: str) -> None:
    """Let the hub read the card first: it refuses a commit for it, which comes after all the weights."""
    answer = get_session().post(
        f"{api.endpoint}/api/validate-yaml",
        json={"content": card, "repoType": "model"},
        headers={"Authorization": f"Bearer {api.token}"},
    )
    if answer.status_code == httpx.codes.BAD_REQUEST:
        said = "; ".join(str(error.get("message")) for error in answer.json().get("errors", []))
        raise PushRefused(f"The hub refuses the model card, so that nothing was sent: {_shorten(said)}")
    if not answer.is_success:
        raise HfHubHTTPError("The hub did not read the card.", response=answer)


def _push_to_modelscope(order: PushOrder, progress: Path) -> dict[str, object]:
    card = order.card.encode()
    files: dict[str, Path | bytes] = {file.name: Path(file.path) for file in order.files}
    total = sum(Path(file.path).stat().st_size for file in order.files) + len(card)
    try:
        result = ModelScope().push(
            order.repo_id,
            {**files, _CARD: card},
            private=order.private,
            message=order.message,
            tell=lambda done, name: _tell(progress, done, total, name),
        )
    except ModelScopeError as error:
        raise PushRefused(str(error)) from error
    _tell(progress, total, total, None)
    return result


def _tell(path: Path, done: int, total: int, file: str | None) -> None:
    """Replace the file of the progress, so that nobody reads half of it."""
    staging = path.with_suffix(".new")
    staging.write_text(json.dumps({"done_bytes": done, "total_bytes": total, "file": file}), "utf-8")
    staging.replace(path)


def _explain(error: BaseException, order: PushOrder, host: str) -> str | None:
    """Explain an error without addresses or secrets; None for what is not the hub's fault."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OperatorProblem):
            return f"{host} leads to an address that isn't opened. {cause.message}"
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            if status in _REFUSED or isinstance(cause, RepositoryNotFoundError):
                return f"HF_TOKEN has no write access to '{order.repo_id}' on {host} (HTTP {status})."
            words = _shorten(cause.server_message or "")
            return f"{host} returned HTTP {status}{': ' if words else '.'}{words}"
        if isinstance(cause, httpx.HTTPError):
            return f"{host} cannot be reached, or the connection was lost; resume the push."
        cause = cause.__cause__
    return None


def _shorten(words: str) -> str:
    """Shorten a hub's message to one line that ends with a period."""
    line = " ".join(words.split())[:_MAX_WORDS]
    return line if not line or line.endswith((".", "!")) else f"{line}."


def main(arguments: list[str]) -> int:
    """Push a model and print the result; the last line of standard error says what is wrong."""
    die_with(os.getppid())
    try:
        result = push(Path(arguments[0]))
    except PushRefused as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
