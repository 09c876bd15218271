"""What can go wrong with votes."""

from trellis_api.core.errors import Conflict, NotFound


class VoteNotFound(NotFound):
    """There is no vote of this id."""

    code = "vote_not_found"


class NoVotesToLearnFrom(Conflict):
    """No vote that was chosen has a better and a worse answer."""

    code = "no_votes_to_learn_from"
