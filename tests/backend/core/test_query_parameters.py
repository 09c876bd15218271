"""A misspelt filter is refused with the nearest name, wherever it is sent."""

import pytest
from fastapi.testclient import TestClient


@pytest.mark.parametrize(
    ("path", "field", "suggestion"),
    [
        ("/jobs?stat=running", "stat", "state"),
        ("/datasets?limt=3", "limt", "limit"),
        ("/auth/me?zzz=1", "zzz", None),
        ("/recipes?recipe=sft", "recipe", None),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_name(
    client: TestClient, path: str, field: str, suggestion: str | None
) -> None:
    refused = client.get(f"/api/v1{path}")

    assert refused.status_code == 422, refused.text
    body = refused.json()
    assert (body["error"], body["details"][0]["field"]) == ("unknown_query_parameter", field)
    assert body["details"][0]["suggestion"] == suggestion
    assert f"Unknown query parameter '{field}'." in body["message"]


def test_known_parameters_pass_also_repeated(client: TestClient) -> None:
    assert client.get("/api/v1/jobs?state=running&state=queued&limit=3").status_code == 200


def test_who_is_not_logged_in_learns_nothing_of_parameters(anonymous: TestClient) -> None:
    assert anonymous.get("/api/v1/jobs?stat=running").status_code == 401
