"""``/llms.txt``: what a language model with curl needs to know to use the platform (https://llmstxt.org)."""

from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

router = APIRouter()
_TEXT = Path(__file__).with_name("llms.txt")


@router.get("/llms.txt", include_in_schema=False)
def read_llms(request: Request) -> PlainTextResponse:
    """Return the text with this platform's own addresses; it holds nothing that needs a token."""
    base = str(request.base_url).rstrip("/")
    return PlainTextResponse(_read().format(base=base), headers={"Cache-Control": "no-cache"})


@cache
def _read() -> str:
    return _TEXT.read_text(encoding="utf-8")
