"""What vLLM's workers can do beside their own: take over the weights of another folder (``WeightsTaker``).

vLLM's documented ``--worker-extension-cls`` mixes the class into its workers, and the engine client's
``collective_rpc`` calls it by name.
"""

from typing import Any


class WeightsTaker:
    """Mixed into vLLM's worker."""

    def take_weights(self: Any, folder: str) -> None:
        """Load the weights of a folder in place of those that are there; the two have the same shape."""
        from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

        self.reload_weights(weights_path=folder)
        # A tied output layer (Llama's) has no weights in the files, so vLLM passes it over. On a CPU it holds
        # a packed copy of the embedding's, which would stay that of the old weights.
        for layer in self.model_runner.get_model().modules():
            if isinstance(layer, VocabParallelEmbedding):
                layer.quant_method.process_weights_after_loading(layer)
