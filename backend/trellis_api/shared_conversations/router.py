"""``/shared-conversations``: a conversation of the playground behind a link."""

from typing import Annotated

from fastapi import APIRouter, Path

from trellis_api.auth.dependencies import UserDep
from trellis_api.core.dependencies import ReadSession, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.shared_conversations import repository, service
from trellis_api.shared_conversations.schemas import Conversation, SharedConversationRead

router = APIRouter(prefix="/shared-conversations", tags=["shared conversations"], responses=ERROR_RESPONSES)
SharedId = Annotated[
    str, Path(description="ID of the shared conversation.", pattern=id_pattern(repository.PREFIX))
]


@router.post("", status_code=201, summary="Share a conversation")
def share_conversation(body: Conversation, session: WriteSession, user: UserDep) -> SharedConversationRead:
    """Keep a conversation of up to 256 KiB for 90 days. Any signed-in user with its ID can read it."""
    return service.present(service.share(session, content=body, user=user.name), user=user.name)


@router.get("/{shared_id}", summary="Get a shared conversation")
def read_shared_conversation(
    shared_id: SharedId, session: ReadSession, user: UserDep
) -> SharedConversationRead:
    """Get the conversation with models, settings, prompts and responses."""
    return service.present(service.find(session, shared_id=shared_id), user=user.name)


@router.delete("/{shared_id}", status_code=204, summary="Delete a shared conversation")
def delete_shared_conversation(shared_id: SharedId, session: WriteSession, user: UserDep) -> None:
    """Delete a conversation that you shared; its link stops working."""
    service.delete(session, shared_id=shared_id, user=user.name)
