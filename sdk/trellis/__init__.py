"""Trellis from Python: train any agent that you can write as a function, and talk to a platform.

>>> import trellis
>>> sorted(trellis.__all__)[:3]
['ApiError', 'ChatReply', 'Client']
"""

from trellis_contracts.workflows import (
    ChatReply,
    ContextExceeded,
    JudgeOutput,
    ModelError,
    TunableChatModel,
    WorkflowOutput,
)

from trellis.client import ApiError, Client
from trellis.searching import SearchResult, tune_search
from trellis.tuning import TuneFailed, TuneResult, tune

__all__ = [
    "ApiError",
    "ChatReply",
    "Client",
    "ContextExceeded",
    "JudgeOutput",
    "ModelError",
    "SearchResult",
    "TunableChatModel",
    "TuneFailed",
    "TuneResult",
    "WorkflowOutput",
    "tune",
    "tune_search",
]
