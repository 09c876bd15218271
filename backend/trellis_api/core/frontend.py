"""Serves the built dashboard from the API process."""

import os
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, PathLike, StaticFiles
from starlette.types import Scope

from trellis_api.core.content_encoding import choose_encoding

#: Addresses of the API and of the build's files: an unknown one is an error there, never the page.
RESERVED = ("api/", "v1/", "assets/", "healthz", "readyz", "metrics")
#: What the build leaves beside a file (`frontend/scripts/precompress.mjs`), the smaller first.
_SUFFIXES = {"br": ".br", "gzip": ".gz"}


class Dashboard(StaticFiles):
    """Files of the build; any other address is a view of the page, which routes by itself."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file, or the dashboard's page for an address without one."""
        if path.endswith(tuple(_SUFFIXES.values())):
            raise HTTPException(status_code=404)  # they are forms of another file, not files to ask for
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

    def file_response(
        self, full_path: PathLike, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the file in the smallest encoding that the client accepts, each with its own ETag."""
        headers = Headers(scope=scope)
        forms = _find_forms(Path(full_path), stat_result)
        encoding = choose_encoding(headers.get("accept-encoding", ""), list(forms))
        path, stat = forms[encoding] if encoding is not None else (Path(full_path), stat_result)
        kind = FileResponse(full_path).media_type
        response = FileResponse(path, status_code=status_code, stat_result=stat, media_type=kind)
        if forms:
            response.headers["Vary"] = "Accept-Encoding"
        if encoding is not None:
            response.headers["Content-Encoding"] = encoding
        is_known = self.is_not_modified(response.headers, headers)
        return NotModifiedResponse(response.headers) if is_known else response


def _find_forms(path: Path, original: os.stat_result) -> dict[str, tuple[Path, os.stat_result]]:
    """Find the compressed forms beside a file, by encoding; one that is older belongs to another build."""
    forms = {}
    for encoding, suffix in _SUFFIXES.items():
        form = path.with_name(path.name + suffix)
        try:
            stat = form.stat()
        except FileNotFoundError:
            continue
        if stat.st_mtime >= original.st_mtime:
            forms[encoding] = form, stat
    return forms


def mount_frontend(app: FastAPI, folder: Path | None, *, docs_path: str) -> None:
    """Serve the dashboard at the root and the API's reference page at ``docs_path``, behind all routes."""
    if folder is None:
        return
    dashboard = Dashboard(directory=folder, html=True)

    async def read_reference(request: Request) -> Response:
        return await dashboard.get_response("api.html", request.scope)

    app.add_api_route(docs_path, read_reference, include_in_schema=False)
    app.mount("/", dashboard, name="dashboard")
