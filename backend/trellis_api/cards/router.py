"""``/models/{id}/card``: what is known of a model, as Markdown, and whether a card is still right."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from trellis_api.cards import service
from trellis_api.cards.schemas import CardCheck, CardChecked
from trellis_api.core.dependencies import ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES

MARKDOWN: dict[int | str, dict[str, Any]] = {
    200: {"description": "The card.", "content": {"text/markdown": {"schema": {"type": "string"}}}}
}
router = APIRouter(tags=["models"], responses={401: ERROR_RESPONSES[401], 404: ERROR_RESPONSES[404]})
ModelId = Annotated[str, Path(description="ID or name of the model.")]


@router.get(
    "/models/{model_id}/card",
    summary="A model's card",
    response_class=Response,
    responses=MARKDOWN,
)
def read_model_card(model_id: ModelId, session: ReadSession, settings: SettingsDep) -> Response:
    """Return Markdown with front matter as hubs read it: base, data, parameters, metrics, scores."""
    text = service.read_card(session, settings, model_id=model_id)
    return Response(text, media_type="text/markdown; charset=utf-8")


@router.post(
    "/models/{model_id}/card/check",
    summary="Check whether a card is up to date",
    responses={409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]},
)
def check_model_card(
    model_id: ModelId, body: CardCheck, session: ReadSession, settings: SettingsDep
) -> CardChecked:
    """Check a card; 409 with each difference if a number no longer matches its run."""
    return service.check_card(session, settings, model_id=model_id, text=body.card)
