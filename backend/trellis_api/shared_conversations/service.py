"""Decides about shared conversations: who opens them, and when they go."""

import json
from datetime import timedelta

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.texts import storable_tree
from trellis_api.shared_conversations import repository
from trellis_api.shared_conversations.errors import (
    SharedBySomebodyElse,
    SharedConversationNotFound,
    SharedConversationTooLarge,
    TooManySharedConversations,
)
from trellis_api.shared_conversations.models import SharedConversation
from trellis_api.shared_conversations.schemas import (
    Conversation,
    SharedConversationLink,
    SharedConversationRead,
)

#: Links are sent around for a discussion; what is worth keeping becomes a row of a dataset.
LIFETIME = timedelta(days=90)
#: Of the content as JSON.
MAX_BYTES = 256 * 1024
#: Of one user: with conversations of the full size they take 128 MB.
MAX_LINKS = 500


def share(session: Session, *, content: Conversation, user: str) -> SharedConversation:
    """Keep a conversation for ``LIFETIME``; links that have expired are deleted on the way."""
    kept = storable_tree(content.model_dump(mode="json"))
    size = len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_BYTES:
        raise SharedConversationTooLarge(
            f"The conversation has {size:,} bytes; links can hold {MAX_BYTES:,}. Remove long turns, or save "
            "it as a row of a dataset.",
            {"size": size, "limit": MAX_BYTES},
        )
    now = utc_now()
    repository.delete_expired(session, before=now)
    count, first = repository.find_first_expiry(session, owner=user)
    if count >= MAX_LINKS and first is not None:
        raise TooManySharedConversations(
            f"At most {MAX_LINKS} shared conversations are kept for a user. Delete one, or wait until "
            f"{first:%Y-%m-%d}, when the first expires.",
            {"limit": MAX_LINKS},
        )
    row = SharedConversation(
        id=new_id(repository.PREFIX),
        content=kept,
        created_by=user,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    repository.add_shared(session, row)
    return row


def find(session: Session, *, shared_id: str) -> SharedConversation:
    """Return the conversation; 404 where there is none, or where it has expired."""
    row = repository.find_shared(session, shared_id=shared_id)
    if row is None or row.expires_at <= utc_now():
        raise SharedConversationNotFound(
            f"Shared conversation '{shared_id}' not found. It may have expired or been deleted."
        )
    return row


def list_page(session: Session, *, user: str, cursor: str | None, limit: int) -> Page[SharedConversationLink]:
    """List a user's own links; those of others are only known to who was given them."""
    before = decode_time_position(cursor) if cursor else None
    rows = repository.list_links(session, owner=user, now=utc_now(), before=before, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    items = [SharedConversationLink.model_validate(row, from_attributes=True) for row in shown]
    return Page(items=items, next_cursor=next_cursor)


def delete(session: Session, *, shared_id: str, user: str) -> None:
    """Delete what the user has shared; its link opens nothing any more."""
    row = find(session, shared_id=shared_id)
    if row.created_by != user:
        raise SharedBySomebodyElse(
            f"Only {row.created_by}, who shared this conversation, can delete it.", {"owner": row.created_by}
        )
    repository.delete_shared(session, shared_id=shared_id)


def present(row: SharedConversation, *, user: str) -> SharedConversationRead:
    """Return the conversation as a user sees it."""
    return SharedConversationRead(
        id=row.id,
        content=Conversation.model_validate(row.content),
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        can_delete=row.created_by == user,
    )
