"""``load_in_4bit`` and ``load_in_8bit``: taken where the engine can, refused with the reason elsewhere."""

from typing import Any

BITS = {"load_in_4bit": "4bit", "load_in_8bit": "8bit"}
NO_BITS = (
    "verl trains and samples with the base model in 16 or 32 bits and has no way to hold it in fewer;"
    " lora_rank takes most of the memory away, and agent_sft and agent_dpo can hold the base in 4 or 8 bits"
)


def read_bits(given: dict[Any, Any]) -> dict[Any, Any]:
    """``load_in_4bit`` and ``load_in_8bit`` as ``quantization``; both of them, or two names, are an error."""
    found = {key: value for key, value in given.items() if key not in BITS}
    asked = [bits for key, bits in BITS.items() if given.get(key) is True]
    wrong = [key for key in BITS if given.get(key, False) not in (True, False)]
    if wrong:
        raise ValueError(f"{wrong[0]} is true or false, not {given[wrong[0]]!r}")
    if len(asked) > 1 or (asked and "quantization" in found):
        raise ValueError("one of load_in_4bit, load_in_8bit and quantization is enough")
    return {**found, "quantization": asked[0]} if asked else found


def refuse_bits(given: dict[Any, Any]) -> dict[Any, Any]:
    """Without ``load_in_4bit`` and ``load_in_8bit``; ``ValueError`` with the reason where one is true.

    >>> refuse_bits({"load_in_4bit": False, "group_size": 2})
    {'group_size': 2}
    """
    for key in BITS:
        if given.get(key, False) is not False:
            raise ValueError(f"{key}: {NO_BITS}")
    return {key: value for key, value in given.items() if key not in BITS}
