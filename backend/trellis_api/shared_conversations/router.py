"""``/shared-conversations``: a conversation of the playground behind a link."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from trellis_api.auth.dependencies import UserDep
from trellis_api.core.dependencies import ReadSession, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.shared_conversations import repository, service
from trellis_api.shared_conversations.schemas import (
    Conversation,
    SharedConversationLink,
    SharedConversationRead,
)

router = APIRouter(prefix="/shared-conversations", tags=["shared conversations"], responses=ERROR_RESPONSES)
SharedId = Annotated[
    str, Path(description="ID of the shared conversation.", pattern=id_pattern(repository.PREFIX))
]


@router.post("", status_code=201, summary="Share a conversation")
def share_conversation(body: Conversation, session: WriteSession, user: UserDep) -> SharedConversationRead:
    """Keep a conversation of up to 256 KiB for 90 days. Any signed-in user with its ID can read it."""
    return service.present(service.share(session, content=body, user=user.name), user=user.name)


@router.get("", summary="List shared conversations, newest first")
def list_shared_conversations(
    session: ReadSession,
    user: UserDep,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[SharedConversationLink]:
    """List the conversations that you shared and whose links still work."""
    return service.list_page(session, user=user.name, cursor=cursor, limit=limit)


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
