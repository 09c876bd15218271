"""Nudges to the workers by task name; a lost nudge costs seconds, because the workers sweep anyway."""

import logging
from typing import Any

from celery import Celery
from fastapi import BackgroundTasks
from kombu.exceptions import OperationalError

from trellis_api.core.settings import Settings

log = logging.getLogger(__name__)
BROKER_TIMEOUT_S = 1.0


class TaskQueue:
    """Sends task names to the broker without ever failing or holding up a request."""

    def __init__(self, settings: Settings) -> None:
        self._celery: Celery | None = None
        if settings.redis_url:
            self._celery = Celery("trellis-api", broker=settings.redis_url)
            self._celery.conf.update(
                broker_connection_timeout=BROKER_TIMEOUT_S,
                broker_transport_options={
                    "socket_connect_timeout": BROKER_TIMEOUT_S,
                    "socket_timeout": BROKER_TIMEOUT_S,
                    "max_retries": 0,
                },
                task_ignore_result=True,
            )

    def send_later(self, background: BackgroundTasks, task: str, *args: Any) -> None:
        """Send after the response, which is after the commit: the worker then sees the row."""
        if self._celery is not None:
            background.add_task(self.send, task, *args)

    def send(self, task: str, *args: Any) -> None:
        """Send now; a broker that is away is logged and forgotten."""
        if self._celery is None:
            return
        try:
            self._celery.send_task(task, args=args, retry=False, ignore_result=True)
        except (OperationalError, OSError) as error:
            log.warning("the broker did not take %s; the next sweep will find the work: %s", task, error)
