"""Prints the OpenAPI schema: ``python -m trellis_api.openapi > frontend/openapi.json``."""

import json
from typing import Any

from trellis_api.core.settings import Settings
from trellis_api.main import create_app


def build_schema() -> dict[str, Any]:
    """Build the schema of the whole API; nothing is started or written for it."""
    return create_app(Settings(redis_url=None)).openapi()


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2, ensure_ascii=False, sort_keys=True))
