"""Requests that succeed: what an address answers."""

from typing import Any

from fastapi.testclient import TestClient

#: The least that agent code can be.
AGENT_CODE = """
from typing import Any, Dict

async def workflow(task: Dict[str, Any], model: Any) -> float:
    return 1.0
"""


def get(client: TestClient, path: str, **query: str) -> Any:
    """Return what ``GET`` answers below ``/api/v1``."""
    response = client.get(f"/api/v1{path}", params=query)
    assert response.is_success, response.text
    return response.json()


def post(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    """Return what ``POST`` answers below ``/api/v1``."""
    response = client.post(f"/api/v1{path}", json=body)
    assert response.is_success, response.text
    return response.json()
