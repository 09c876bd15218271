"""Checks of the recipes that run on TRL: what TRL would refuse after loading, and what rarely works."""

import importlib.util
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.checks.row_counts import check_split
from trellis_recipes.findings import Findings, warn_of_adapter
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest
from trellis_recipes.rewards import check_pair_reward
from trellis_recipes.trl_mapping import DPO_RECIPES, adapted_modules, bits_of_base, rows_per_step

#: Above these, pairs are mostly unlearned together; models small enough for a CPU bear more.
HIGH_LEARNING_RATE = {"cuda": 1e-4, "cpu": 1e-2}
HIGH_LORA_LEARNING_RATE = {"cuda": 1e-3, "cpu": 5e-2}
#: Outside of it DPO and KTO hardly move, or forget what they came with. IPO's is another quantity.
USUAL_BETA = (0.01, 1.0)
#: TRL averages IPO's log-ratios over tokens: below, the margin of a token would have to be above 2.
LOW_TAU_OF_IPO = 0.25
#: The package that holds weights in 4 and 8 bits, in the versions that the tests ran: the extra `quantized`.
BITSANDBYTES = "bitsandbytes>=0.50,<0.51"
#: Losses that know nothing of labels which are wrong.
WITHOUT_SMOOTHING = frozenset({"hinge", "ipo"})


def check_preference(
    findings: Findings,
    config: dict[str, Any],
    parameters: dict[str, Value],
    request: ComposeRequest,
) -> None:
    """Check the resolved settings of one of TRL's trainers."""
    batch, micro = rows_per_step(request, parameters), config["per_device_train_batch_size"]
    check_split(findings, batch=batch, micro=micro, gpus=request.gpus, unit="rows")
    if parameters.get("rewards"):
        findings.errors += check_pair_reward(parameters["rewards"])
    _check_loss(findings, config, parameters, request)
    _check_model(findings, config, parameters, request)


def _check_loss(
    findings: Findings, config: dict[str, Any], parameters: dict[str, Value], request: ComposeRequest
) -> None:
    if request.recipe == "kto" and config["loss_type"] == "kto" and config["per_device_train_batch_size"] < 2:
        findings.error(
            "kto_needs_two_rows",
            "params.micro_batch_size",
            "KTO estimates KL from other rows in the micro-batch, so it needs a "
            "micro-batch size of at least 2.",
            "2",
        )
    loss = parameters.get("loss_type")
    if parameters.get("label_smoothing") and loss in WITHOUT_SMOOTHING:
        findings.error(
            "label_smoothing_without_effect",
            "params.label_smoothing",
            f"The {loss} loss doesn't support label smoothing; use sigmoid.",
            "0",
        )
    low, high = USUAL_BETA
    beta = config.get("beta", low)
    if request.recipe == "simpo" and loss != "simpo" and beta > high:
        findings.warn(
            "beta_of_simpo",
            "params.beta",
            f"A beta of {beta:g} suits SimPO's means over tokens; the {loss} loss compares sums.",
            "0.1",
        )
    if loss == "ipo" and beta < LOW_TAU_OF_IPO:
        findings.warn(
            "low_tau",
            "params.beta",
            f"IPO drives the mean log-ratio of a token to 1 / (2 tau), {1 / (2 * beta):g} at a tau of "
            f"{beta:g}, which hardly any model reaches.",
            "1",
        )
    is_usual = loss == "ipo" or low <= beta <= high
    if request.recipe in DPO_RECIPES | {"kto"} and not is_usual:
        findings.warn(
            "unusual_beta",
            "params.beta",
            f"A beta of {config['beta']:g} is rarely used: small ones let the model drift from where it "
            f"started, large ones hold it there. Usual are {low:g} to {high:g}.",
            "0.1",
        )
    limits = HIGH_LORA_LEARNING_RATE if config["use_peft"] else HIGH_LEARNING_RATE
    limit = limits[request.platform]
    if request.recipe != "agent_sft" and config["learning_rate"] > limit:
        findings.warn(
            "high_learning_rate",
            "params.learning_rate",
            f"A learning rate of {config['learning_rate']:g} usually makes good answers unlikely along with "
            "the bad ones.",
            f"{limit / 10:g}",
        )


def _check_model(
    findings: Findings, config: dict[str, Any], parameters: dict[str, Value], request: ComposeRequest
) -> None:
    if config["use_peft"]:
        warn_of_adapter(findings)
        if not adapted_modules(parameters):
            findings.error(
                "adapter_without_modules",
                "params.lora_targets",
                "LoRA needs at least one target module; all-linear selects every linear layer.",
                "all-linear",
            )
    if bits := bits_of_base(parameters):
        field = "params.quantization" if "quantization" in parameters else "params.quantize_base"
        _check_quantisation(findings, bits, parameters, field)
        if request.base_bits:
            message = f"The model is already quantized to {request.base_bits} bits."
            findings.error("quantised_twice", field, message)
    elif request.base_bits:
        _check_quantisation(findings, request.base_bits, parameters, "model")


def check_base(findings: Findings, engine: Engine, request: ComposeRequest) -> None:
    """Refuse a model whose files are quantised where the trainer cannot hold it; TRL's can."""
    if request.base_bits and engine is not Engine.TRL:
        findings.error(
            "quantised_model_unsupported",
            "model",
            f"The model's files hold its weights in {request.base_bits} bits, and the trainer of "
            f"'{request.recipe}' cannot train on those. Take it in 16 bits, or a recipe that trains an "
            "adapter on such a base: agent_sft, dpo, orpo, kto, simpo.",
        )


def _check_quantisation(findings: Findings, bits: int, parameters: dict[str, Value], field: str) -> None:
    if not parameters["lora_rank"]:
        findings.error(
            "quantization_needs_adapter",
            field,
            f"{bits}-bit weights can't be fine-tuned directly; set a LoRA rank to train an adapter.",
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        findings.error(
            "quantization_not_installed",
            field,
            f"{bits}-bit weights require the 'bitsandbytes' package, which is not installed: "
            f"pip install '{BITSANDBYTES}'.",
        )
