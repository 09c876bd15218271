"""How the client reaches a platform: requests, pages, files, streams; what it refuses is ``ApiError``."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

API = "/api/v1"
Json = dict[str, Any]


class ApiError(RuntimeError):
    """The platform refused, or did not answer (``status`` None)."""

    def __init__(self, message: str, *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        #: The API's name for what went wrong.
        self.code = code


class Transport:
    """Requests to one platform."""

    def __init__(
        self, url: str, token: str, *, timeout_s: float, transport: httpx.BaseTransport | None
    ) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_s,
            transport=transport,
        )

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Call an endpoint below /api/v1 and return its decoded answer; raise ``ApiError`` on an error."""
        try:
            answer = self._http.request(method, f"{API}{path}", **options)
        except httpx.HTTPError as error:
            raise self._no_answer(error) from error
        if answer.is_error:
            raise _read_error(answer)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise ApiError(
                f"{self._http.base_url} answers {method} {path} with something else than JSON"
            ) from None

    def send_file(self, file: Path) -> str:
        """Upload a file; the id of the upload."""
        name = base64.b64encode(file.name.encode(errors="replace")).decode()
        size = file.stat().st_size
        protocol = {"Tus-Resumable": "1.0.0"}
        begun = {**protocol, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
        try:
            answer = self._http.post(f"{API}/uploads", headers=begun)
            if answer.is_error:
                raise _read_error(answer)
            upload = answer.headers["Location"].rpartition("/")[2]
            piece = {**protocol, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
            with file.open("rb") as content:
                sized = {**piece, "Content-Length": str(size)}
                sent = self._http.patch(
                    f"{API}/uploads/{upload}", content=content, headers=sized, timeout=None
                )
        except httpx.HTTPError as error:
            raise self._no_answer(error) from error
        if sent.is_error:
            raise _read_error(sent)
        return str(upload)

    def pages(self, path: str, **params: Any) -> Iterator[Any]:
        """Iterate over a paged list, requesting more pages as needed."""
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params=given(cursor=cursor, **params))
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def download(self, path: str, target: Path, **params: Any) -> Path:
        """Write an answer into a file, piece by piece; beside it first: a file that is there is whole."""
        draft = target.with_name(f".{target.name}.partial")
        try:
            with self._stream(path, given(**params)) as answer, draft.open("wb") as file:
                for piece in answer.iter_bytes():
                    file.write(piece)
            draft.replace(target)
        except httpx.HTTPError as error:
            raise self._no_answer(error) from error
        finally:
            draft.unlink(missing_ok=True)
        return target

    def events(self, path: str, **params: Any) -> Iterator[tuple[str, str, Any]]:
        """Yield server-sent events as (name, id, data), until the platform ends the stream."""
        name, identifier, data = "", "", []
        try:
            with self._stream(path, given(**params)) as answer:
                for line in answer.iter_lines():
                    field, _, value = line.partition(":")
                    value = value.removeprefix(" ")
                    if field == "event":
                        name = value
                    elif field == "id":
                        identifier = value
                    elif field == "data":
                        data.append(value)
                    elif not line and data:
                        yield name, identifier, json.loads("\n".join(data))
                        name, data = "", []
        except httpx.HTTPError as error:
            raise self._no_answer(error) from error

    def _stream(self, path: str, params: Mapping[str, Any]) -> "_Answer":
        return _Answer(self._http.stream("GET", f"{API}{path}", params=params, timeout=None))

    def _no_answer(self, error: Exception) -> ApiError:
        return ApiError(f"the platform at {self._http.base_url} does not answer ({error})")


class _Answer:
    """A streamed answer; what the platform refuses is raised at its beginning."""

    def __init__(self, opening: Any) -> None:
        self._opening = opening

    def __enter__(self) -> httpx.Response:
        answer: httpx.Response = self._opening.__enter__()
        if answer.is_error:
            try:
                answer.read()
                raise _read_error(answer)
            finally:
                self._opening.__exit__(None, None, None)
        return answer

    def __exit__(self, *exception: Any) -> None:
        self._opening.__exit__(*exception)


def given(**values: Any) -> Json:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _read_error(answer: httpx.Response) -> ApiError:
    try:
        body = answer.json()
        message, code = str(body["message"]), body.get("error")
        issues = [each for each in body.get("details") or [] if isinstance(each, dict) and "message" in each]
    except (ValueError, KeyError, TypeError):
        place = f"{answer.request.method} {answer.request.url.path}"
        return ApiError(f"{place}: HTTP {answer.status_code}", status=answer.status_code)
    lines = [message, *(f"  {each.get('field') or ''}: {each['message']}" for each in issues)]
    return ApiError("\n".join(lines), status=answer.status_code, code=code)
