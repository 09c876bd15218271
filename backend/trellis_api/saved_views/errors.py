"""What can go wrong with saved views."""

from trellis_api.core.errors import Conflict, NotFound


class SavedViewNotFound(NotFound):
    """There is no saved view with this id."""

    code = "saved_view_not_found"


class SavedViewNameTaken(Conflict):
    """Another view of the page has this name."""

    code = "saved_view_name_taken"


class TooManySavedViews(Conflict):
    """The page has as many saved views as its menu can show."""

    code = "too_many_saved_views"
