"""Adds the contracts of bodies that are parsed by hand to the OpenAPI schema."""

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema
from trellis_contracts.events import IngestBatch


def describe_contracts(app: FastAPI) -> None:
    """``IngestBatch`` arrives compressed, so FastAPI does not see it; its schema is added here."""
    build = app.openapi

    def build_with_contracts() -> dict[str, Any]:
        if app.openapi_schema is None:
            _, contracts = models_json_schema(
                [(IngestBatch, "validation")], ref_template="#/components/schemas/{model}"
            )
            schema = build()
            for name, definition in contracts["$defs"].items():
                schema["components"]["schemas"].setdefault(name, definition)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = build_with_contracts  # type: ignore[method-assign]
