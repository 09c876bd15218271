"""Uploads that become datasets with rows: the workers' own code carries out what the API asked for."""

from functools import partial

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.uploads import Finish, Upload, upload_file


@pytest.fixture
def finish(settings: Settings, database: Database) -> Finish:
    """Carries out everything that waits."""
    return partial(finish_data_tasks, settings, database)


@pytest.fixture
def upload(client: TestClient, finish: Finish) -> Upload:
    """Uploads a file in one request and waits for its rows."""
    return partial(upload_file, client, finish)
