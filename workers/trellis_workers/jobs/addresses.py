"""Tells runs under way where the API is: it may have moved since they were started."""

import logging
from collections.abc import Iterable
from typing import ClassVar

from trellis_api.jobs.models import Job
from trellis_contracts.attempt import ADDRESS_FILE
from trellis_contracts.private_files import write_private

from trellis_workers.core.settings import get_settings

logger = logging.getLogger(__name__)


class _Told:
    """What this process has written, by attempt."""

    addresses: ClassVar[dict[tuple[str, int], str]] = {}


def tell_addresses(jobs: Iterable[Job]) -> None:
    """Write the API's address to the folder of each attempt, where this process has not yet.

    A worker is started anew when the address changes.
    """
    settings, told = get_settings(), {}
    for job in jobs:
        attempt, address = (job.id, job.attempt), settings.base_url
        folder = settings.attempt_dir(job.id, job.attempt)
        if _Told.addresses.get(attempt) != address:
            if not folder.is_dir():
                continue  # not launched yet
            try:
                write_private(folder / ADDRESS_FILE, address + "\n")
            except OSError as error:  # tried again by the next sweep
                logger.warning("job %s: the API's address could not be written: %s", job.id, error)
                continue
        told[attempt] = address
    _Told.addresses = told
