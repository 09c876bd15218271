"""Serves the built dashboard from the API process."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

#: Addresses that belong to the API: an unknown one is an error there, never the page.
RESERVED = ("api/", "v1/", "healthz", "readyz", "metrics")


class Dashboard(StaticFiles):
    """Files of the build; any other address is a view of the page, which routes by itself."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or the page."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            is_view = error.status_code == 404 and "." not in path.rpartition("/")[2]
            if not is_view or path.startswith(RESERVED):
                raise
            response = await super().get_response("index.html", scope)
        is_hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
        return response


def mount_frontend(app: FastAPI, folder: Path | None, *, docs_path: str) -> None:
    """Serve the dashboard at the root and the API's reference page at ``docs_path``, behind all routes."""
    if folder is not None:
        reference = folder / "api.html"
        app.add_api_route(docs_path, lambda: FileResponse(reference), include_in_schema=False)
        app.mount("/", Dashboard(directory=folder, html=True), name="dashboard")
