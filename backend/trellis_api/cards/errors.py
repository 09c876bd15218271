"""What can go wrong with model cards."""

from trellis_api.core.errors import Conflict, InvalidRequest


class CardUnreadable(InvalidRequest):
    """The text is no model card of this platform."""

    code = "card_unreadable"


class CardOutdated(Conflict):
    """Numbers of the card are no longer those of the platform; the details name each."""

    code = "card_outdated"
