"""Says what a model is for, by its architecture: to hubs, and as the lines that load it."""

from dataclasses import dataclass

from trellis_api.cards.schemas import CardFacts
from trellis_api.evaluations.targets import is_encoder
from trellis_api.rewards.resources import CLASSIFIER_SUFFIX

_ADAPTER = "adapter"


@dataclass(frozen=True)
class Use:
    """A task by the name that hubs have for it, and what models of it are loaded with."""

    task: str
    library: str
    of_transformers: str


_WRITES = Use("text-generation", "transformers", "ForCausalLM")
_JUDGES = Use("text-classification", "transformers", "ForSequenceClassification")
_EMBEDS = Use("feature-extraction", "sentence-transformers", "ForFeatureExtraction")


def find_use(facts: CardFacts) -> Use:
    """Return what the model does: it writes texts, gives a number for one (rewards), or a vector."""
    architecture = facts.architecture or ""
    if architecture.endswith(CLASSIFIER_SUFFIX):
        return _JUDGES
    return _EMBEDS if is_encoder(architecture) else _WRITES


def name_library(facts: CardFacts) -> str:
    """Return the library that loads the model's files."""
    return "peft" if facts.form == _ADAPTER else find_use(facts).library


def write_loading(facts: CardFacts) -> str:
    """Return lines of Python that load the model from its folder."""
    use = find_use(facts)
    if facts.form == _ADAPTER:
        name = f"AutoPeftModel{use.of_transformers}"
        return f'from peft import {name}\n\nmodel = {name}.from_pretrained(".")'
    if use is _EMBEDS:
        return (
            "from sentence_transformers import SentenceTransformer\n\n"
            'vectors = SentenceTransformer(".").encode(["a text"])'
        )
    name = f"AutoModel{use.of_transformers}"
    return (
        f"from transformers import {name}, AutoTokenizer\n\n"
        f'model, tokenizer = {name}.from_pretrained("."), AutoTokenizer.from_pretrained(".")'
    )
