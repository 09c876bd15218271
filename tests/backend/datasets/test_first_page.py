"""The first page of rows after a start waits for nothing that could have been done before."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.database import Database
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_testing.datasets import add_dataset

#: What a request for a page of rows loads in a process that has just started.
FRESH = """
import json, sys, threading
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.main import create_app

root, token, dataset = sys.argv[1:]
app = create_app(Settings(data_root=root))
with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join()
    place = f"/api/v1/datasets/{dataset}"
    client.get(place).raise_for_status()
    before = set(sys.modules)
    rows = client.get(f"{place}/rows").raise_for_status().json()["rows"]
    print(json.dumps({"rows": len(rows), "loaded": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(data_root=tmp_path, database_url=None, redis_url=None)
    upgrade(settings)
    return settings


def test_the_first_page_loads_no_library(settings: Settings) -> None:
    database = Database(settings)
    token = ensure_admin_token(database, path=settings.admin_token_path)
    with database.write() as session:
        dataset = add_dataset(session, settings)
    database.dispose()

    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(settings.data_root), token, dataset.id],
        check=True,
        capture_output=True,
        text=True,
    )

    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": 50, "loaded": []}
