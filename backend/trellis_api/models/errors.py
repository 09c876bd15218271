"""What can go wrong with models."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class ModelNotFound(NotFound):
    """No model has this id."""

    code = "model_not_found"


class ModelNotReady(Conflict):
    """A model that is needed does not exist, or its files are not here."""

    code = "model_not_ready"


class ModelNameTaken(Conflict):
    """Another model has this name."""

    code = "model_name_taken"


class ModelInUse(Conflict):
    """An unfinished job reads the model."""

    code = "model_in_use"


class ModelPathOutside(InvalidRequest):
    """The path leads out of the data root."""

    code = "model_path_outside"


class ModelFolderInvalid(InvalidRequest):
    """The folder does not hold a model that can be trained; ``details.code`` says what is wrong."""

    code = "model_folder_invalid"


class ChatTemplateRunaway(InvalidRequest):
    """A chat template of the model takes too much time or memory on an ordinary conversation."""

    code = "chat_template_runaway"


class CheckpointNotUsable(InvalidRequest):
    """The checkpoint does not exist or has no weights in Hugging Face format."""

    code = "checkpoint_not_usable"


class ModelNotRetryable(Conflict):
    """There is no failed fetch to try again."""

    code = "model_not_retryable"


class ModelNotCancellable(Conflict):
    """There is no fetch to end."""

    code = "model_not_cancellable"


class ModelNotInCatalogue(InvalidRequest):
    """The catalogue has no entry of this name."""

    code = "model_not_in_catalogue"
