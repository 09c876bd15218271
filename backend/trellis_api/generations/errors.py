"""What can go wrong with generations."""

from trellis_api.core.errors import Conflict, InvalidRequest


class WriterMissing(InvalidRequest):
    """Rows are written by an endpoint or by a model of the platform: exactly one of them."""

    code = "generation_writer_missing"


class EndpointUnknown(InvalidRequest):
    """No endpoint has this name."""

    code = "unknown_endpoint"


class ModelWithoutTemplate(InvalidRequest):
    """The model has no chat template, so nothing can be asked of it."""

    code = "model_without_chat_template"


class NoFreeSlot(Conflict):
    """No GPU is free to serve the model."""

    code = "no_free_slot"


class SeedsUnfit(InvalidRequest):
    """The rows ask nothing that could be answered, or lack what answers are checked by."""

    code = "seeds_unfit"
