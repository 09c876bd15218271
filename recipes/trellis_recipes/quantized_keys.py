"""Base models in fewer bits, by keys or by name: taken where the engine can, else refused with the reason."""

import re
from typing import Any

BITS = {"load_in_4bit": "4bit", "load_in_8bit": "8bit"}
NO_BITS = (
    "verl trains and samples with the base model in 16 or 32 bits and has no way to hold it in fewer;"
    " lora_rank takes most of the memory away, and agent_sft and agent_dpo can hold the base in 4 or 8 bits"
)

#: Repositories with the weights of another one in fewer bits, as unsloth, Qwen and others name them.
_QUANTIZED_NAME = re.compile(
    r"(?P<whole>[^/]+/.+?)-(?:unsloth-)?(?P<kind>bnb-4bit|bnb-8bit|4bit|8bit|GGUF|AWQ|GPTQ|GPTQ-Int[48])",
    re.I,
)


def check_weights_name(name: str) -> None:
    """Raise ``ValueError`` with the alternative for a hub id whose weights verl cannot train.

    >>> check_weights_name("unsloth/Qwen3-32B")
    """
    if found := _QUANTIZED_NAME.fullmatch(name.partition("@")[0]):
        raise ValueError(
            f"{name} holds its weights as {found['kind']}, which verl cannot train; {found['whole']} is the"
            " same model in 16 bits, and lora_rank takes most of the memory away"
        )


def read_bits(given: dict[Any, Any]) -> dict[Any, Any]:
    """Read ``load_in_4bit`` and ``load_in_8bit`` as ``quantization``; more than one of them is an error."""
    found = {key: value for key, value in given.items() if key not in BITS}
    asked = [bits for key, bits in BITS.items() if given.get(key) is True]
    wrong = [key for key in BITS if given.get(key, False) not in (True, False)]
    if wrong:
        raise ValueError(f"{wrong[0]} is true or false, not {given[wrong[0]]!r}")
    if len(asked) > 1 or (asked and "quantization" in found):
        raise ValueError("one of load_in_4bit, load_in_8bit and quantization is enough")
    return {**found, "quantization": asked[0]} if asked else found


def refuse_bits(given: dict[Any, Any]) -> dict[Any, Any]:
    """Drop ``load_in_4bit`` and ``load_in_8bit``; ``ValueError`` with the reason where one is not false.

    >>> refuse_bits({"load_in_4bit": False, "group_size": 2})
    {'group_size': 2}
    """
    for key in BITS:
        if given.get(key, False) is not False:
            raise ValueError(f"{key}: {NO_BITS}")
    return {key: value for key, value in given.items() if key not in BITS}
