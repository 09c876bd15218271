"""What can go wrong with shared conversations."""

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest, NotFound


class SharedConversationNotFound(NotFound):
    """It was never there, was deleted, or has expired."""

    code = "shared_conversation_not_found"


class SharedConversationTooLarge(InvalidRequest):
    """It has more texts than a link may have behind it."""

    code = "shared_conversation_too_large"


class TooManySharedConversations(Conflict):
    """Whoever shares has as many links as one may have."""

    code = "too_many_shared_conversations"


class SharedBySomebodyElse(DomainError):
    """Only who has shared a conversation may delete it."""

    status = 403
    code = "shared_by_somebody_else"
