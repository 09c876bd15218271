"""verl's dataset of conversations, heeding weights; supervised runs name it as ``data.custom_cls``."""

from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

from trellis_train.data.message_weights import weigh

WeighedDataset = weigh(MultiTurnSFTDataset)
