"""Chat templates are tried before a transaction begins that writes: it finds the verdicts, and nobody waits.

A trial takes up to seconds of a process of its own. On SQLite, nobody else could write meanwhile.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

from sqlmodel import Session

from trellis_api.core.ids import is_id
from trellis_api.core.settings import Settings
from trellis_api.jobs.repository import find_job
from trellis_api.models.repository import list_models_called
from trellis_api.models.tried_templates import note_verdicts

#: Opens a transaction that is never committed.
Read = Callable[[], AbstractContextManager[Session]]
_JOB = "job"
#: More texts than any sensible request has; the templates of others are tried in the transaction.
_MOST_NAMED = 500
_LONGEST_NAME = 200


def try_templates_of(read: Read, settings: Settings, named: Any) -> None:
    """Try the chat templates of the models whose ids or names, or whose jobs' ids, occur in a document.

    What is wrong with one is said by whoever asks for it, with the request's field.
    """
    for path in _find_paths(read, named):
        note_verdicts(settings.data_root / path)


def _find_paths(read: Read, named: Any) -> list[str]:
    with read() as session:
        job_ids = islice((each for each in _list_texts(named) if is_id(each, prefix=_JOB)), _MOST_NAMED)
        jobs = [job for each in set(job_ids) if (job := find_job(session, job_id=each)) is not None]
        texts = _list_texts([named, *([job.model_id, job.params] for job in jobs)])
        # Halves of surrogate pairs and NUL can be in no name, and a database takes neither.
        possible = (each for each in texts if len(each) <= _LONGEST_NAME and each.isprintable())
        called = islice(dict.fromkeys(possible), _MOST_NAMED)
        models = list_models_called(session, called=list(called))
    return sorted({model.path for model in models if model.path})


def _list_texts(document: Any) -> Iterator[str]:
    """Yield all texts of a document, however deeply nested, without recursion."""
    left = [document]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
