"""Adds to the OpenAPI schema what FastAPI does not see: bodies that are parsed by hand, results of tasks."""

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema
from trellis_contracts.events import IngestBatch
from trellis_contracts.token_view import TokenView
from trellis_data.generate.report import GenerationReport
from trellis_data.pipeline.preview import Preview

from trellis_api.openapi_examples import add_examples

#: What tasks of some kinds leave as ``result``.
_RESULTS = (TokenView, Preview, GenerationReport)


def describe_contracts(app: FastAPI, *, prefix: str) -> None:
    """Describe that ``IngestBatch`` is sent compressed, and that a task's result depends on its kind.

    Requests below ``prefix`` get their examples.
    """
    build = app.openapi

    def build_with_contracts() -> dict[str, Any]:
        if app.openapi_schema is None:
            _, contracts = models_json_schema(
                [(IngestBatch, "validation"), *((model, "serialization") for model in _RESULTS)],
                ref_template="#/components/schemas/{model}",
            )
            schema = build()
            for name, definition in contracts["$defs"].items():
                schema["components"]["schemas"].setdefault(name, definition)
            add_examples(schema, prefix)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = build_with_contracts  # type: ignore[method-assign]
