"""The app of Celery beat: ``celery -A trellis_workers.core.beat_app beat``. It sends tasks by their names.

The workers' app imports all that tasks need, which is more than 100 MB that beat would never use.
"""

from celery import Celery
from celery.signals import after_setup_logger

from trellis_workers.core import logs
from trellis_workers.core.configuration import build_configuration

app = Celery("trellis")
app.add_defaults(build_configuration)
after_setup_logger.connect(logs.set_up, weak=False)
