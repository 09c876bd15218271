"""Chat endpoints that the platform may ask: to judge, to write, to be measured against."""

from pydantic import Field

from trellis_contracts.recipe import Strict

#: Before the paths of the platform's own API that speaks this protocol.
OPENAI_PREFIX = "/v1"


class ChatEndpoint(Strict):
    """A chat endpoint (OpenAI's protocol) and what it takes for a call. Holds no key."""

    base_url: str = Field(pattern=r"^https?://")
    model: str
    #: Environment variable that holds the key where calls are made; None for an endpoint without one.
    key_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    requests_per_minute: float = Field(default=60.0, gt=0)
    #: US dollars for a million tokens.
    input_price: float = Field(default=0.0, ge=0)
    output_price: float = Field(default=0.0, ge=0)
    timeout_s: float = Field(default=60.0, gt=0)


class JudgeEndpoint(ChatEndpoint):
    """A chat endpoint that may judge responses."""
