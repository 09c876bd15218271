"""The body of ``POST /v1/embeddings``: texts or tokens in, a vector for each out."""

from typing import Annotated, Any, Literal

from pydantic import Field

from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.messages import Strict
from trellis_api.endpoints.openai.requests import TokenId

#: As at OpenAI's.
MAX_INPUTS = 2048
Text = Annotated[str, Field(min_length=1)]
Tokens = Annotated[list[TokenId], Field(min_length=1)]


class EmbeddingRequest(Strict):
    """``POST /v1/embeddings``."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    input: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=MAX_INPUTS)]
        | Tokens
        | Annotated[list[Tokens], Field(min_length=1, max_length=MAX_INPUTS)]
    )
    encoding_format: Literal["float", "base64"] = "float"
    #: For encoders that were trained for shorter vectors (Matryoshka); the engine refuses for others.
    dimensions: int | None = Field(default=None, ge=1, le=2**16)
    # Meant for OpenAI's own service: taken, and without effect.
    user: str | None = Field(default=None, exclude=True)

    def limit(self) -> None:
        """Return None: nothing is generated."""

    @property
    def shows_usage(self) -> bool:
        """The tokens that it took stand in the answer itself."""
        return True

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """Build the request body for the engine."""
        return {**self.model_dump(mode="json", exclude_none=True), "model": model}
