"""The catalogue over HTTP is the one on disk."""

from fastapi.testclient import TestClient
from trellis_recipes.catalogue import list_recipes


def test_every_recipe_of_the_catalogue_is_served_whole(client: TestClient) -> None:
    served = client.get("/api/v1/recipes").json()["items"]

    assert [recipe["id"] for recipe in served] == [recipe.id for recipe in list_recipes()]
    assert served == [recipe.model_dump(mode="json", exclude={"knobs"}) for recipe in list_recipes()]
    assert {"grpo", "sft"} <= {recipe["id"] for recipe in served}


def test_one_recipe_is_served_with_parameters_in_both_languages(client: TestClient) -> None:
    recipe = client.get("/api/v1/recipes/grpo").json()

    assert recipe["id"] == "grpo"
    assert recipe["knobs"] == recipe["parameters"]
    assert all(parameter["title"]["en"] and parameter["title"]["zh"] for parameter in recipe["parameters"])


def test_an_unknown_recipe_is_not_found(client: TestClient) -> None:
    answer = client.get("/api/v1/recipes/gpro")

    assert answer.status_code == 404
    assert answer.json()["error"] == "recipe_not_found"


def test_recipes_need_a_login(anonymous: TestClient) -> None:
    assert anonymous.get("/api/v1/recipes").status_code == 401
