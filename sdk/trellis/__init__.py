"""Trellis from Python: train any agent that you can write as a function, and talk to a platform.

>>> import trellis
>>> sorted(trellis.__all__)[:3]
['AgentLoRATrainer', 'AgentRLTrainer', 'AgentRewardConfig']
"""

from trellis_contracts.workflows import (
    AuxiliaryModel,
    ChatReply,
    ContextExceeded,
    JudgeOutput,
    ModelError,
    TunableChatModel,
    WorkflowOutput,
)

from trellis.agent_trainers import (
    AgentLoRATrainer,
    AgentRLTrainer,
    AgentSFTTrainer,
    AgentTrainingEvaluator,
    AgentTrainingFailed,
    AgentTrainResult,
    PreparedDatasets,
    search_tools,
)
from trellis.agent_training import (
    AgentRewardConfig,
    AgentRewardModel,
    AgentSFTConfig,
    AgentSFTFormatter,
    CoresetSelector,
    OnlineContinualLearner,
    RLTrainingConfig,
    write_settings,
)
from trellis.client import ApiError, Client
from trellis.searching import SearchResult, tune_search
from trellis.tuning import TuneFailed, TuneResult, tune

__all__ = [
    "AgentLoRATrainer",
    "AgentRLTrainer",
    "AgentRewardConfig",
    "AgentRewardModel",
    "AgentSFTConfig",
    "AgentSFTFormatter",
    "AgentSFTTrainer",
    "AgentTrainResult",
    "AgentTrainingEvaluator",
    "AgentTrainingFailed",
    "ApiError",
    "AuxiliaryModel",
    "ChatReply",
    "Client",
    "ContextExceeded",
    "CoresetSelector",
    "JudgeOutput",
    "ModelError",
    "OnlineContinualLearner",
    "PreparedDatasets",
    "RLTrainingConfig",
    "SearchResult",
    "TunableChatModel",
    "TuneFailed",
    "TuneResult",
    "WorkflowOutput",
    "search_tools",
    "tune",
    "tune_search",
    "write_settings",
]
