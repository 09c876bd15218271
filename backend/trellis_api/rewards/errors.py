"""What can go wrong with rewards."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class RewardFileNotFound(NotFound):
    """No file has this id."""

    code = "reward_file_not_found"


class RewardFileNameTaken(Conflict):
    """Another file has this name."""

    code = "reward_file_name_taken"


class RewardFileInvalid(InvalidRequest):
    """The file is no Python, or has no function ``score``."""

    code = "reward_file_invalid"


class RewardFileInUse(Conflict):
    """An unfinished job or dry run scores with the file."""

    code = "reward_file_in_use"


class InvalidRewards(InvalidRequest):
    """The mixture cannot be used; details name each option that is wrong."""

    code = "invalid_rewards"


class UnknownRewardFile(InvalidRequest):
    """A reward names a file that does not exist."""

    code = "unknown_reward_file"


class UnknownRewardModel(InvalidRequest):
    """A reward names a model that does not exist, is not here, or is no reward model."""

    code = "unknown_reward_model"


class UnknownJudge(InvalidRequest):
    """A reward names a judge's endpoint that is not set up."""

    code = "unknown_judge"


class RewardUnavailable(Conflict):
    """A reward of the mixture cannot be used on this platform."""

    code = "reward_unavailable"


class DryRunNotFound(NotFound):
    """No dry run has this id."""

    code = "dry_run_not_found"


class DryRunFinished(Conflict):
    """The dry run is over and cannot be cancelled."""

    code = "dry_run_finished"


class NoRollouts(Conflict):
    """The job has not recorded responses (at this step)."""

    code = "no_rollouts"
