"""The allow-list of engine options: what is refused, and that nothing of the engines is left unclassified."""

import ast
import importlib.metadata
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_contracts.recipe import Engine
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.dataclass_fields import FieldType
from trellis_recipes.engine_options import find_rule, load_rules, rule_of
from trellis_recipes.overrides import RESERVED, SILENT
from trellis_recipes.schema import EngineSchema, load_schema
from trellis_recipes.trl_schema import TRAINERS, load_trl_schema

Build = Callable[..., ComposeRequest]
VLLM = "actor_rollout_ref.rollout.engine_kwargs.vllm"
PLUGIN = "/data/code_files/reward_0123456789ab.py"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{VLLM}.reasoning_parser_plugin", PLUGIN),
        (f"{VLLM}.reasoning-parser-plugin", PLUGIN),
        (f"{VLLM}.reasoning_parser_plug", PLUGIN),
        (f"{VLLM}.tool_parser_plugin", PLUGIN),
        (f"{VLLM}.io_processor_plugin", "mine"),
        (f"{VLLM}.logits_processors", ["mine.Processor"]),
        (f"{VLLM}.worker_extension_cls", "mine.Extension"),
        (f"{VLLM}.scheduler_cls", "mine.Scheduler"),
        (f"{VLLM}.middleware", ["mine.middleware"]),
        (f"{VLLM}.hf_overrides", {"architectures": ["Mine"]}),
        (f"{VLLM}.model_class_overrides", {"LlamaForCausalLM": "mine.Model"}),
        (f"{VLLM}.compilation_config", {"inductor_passes": {"post_grad": "mine.run"}}),
        (f"{VLLM}.compilation_config", '{"backend": "mine.Backend"}'),
        (f"{VLLM}.compilation_config", {"cache_dir": "/etc"}),
        (f"{VLLM}.speculative_config", {"model": "/data/other"}),
        (f"{VLLM}.speculative_config", '{"model": "/data/other"}'),
        (f"{VLLM}.kv_transfer_config", {"kv_connector_module_path": "mine"}),
        (f"{VLLM}.additional_config", {"plugin": "mine"}),
        (f"{VLLM}.chat_template", "{{ cycler.__init__ }}"),
        (f"{VLLM}.config", "/etc/vllm.yaml"),
        (f"{VLLM}.otlp_traces_endpoint", "http://elsewhere"),
        (f"{VLLM}.port", 8000),
        (f"{VLLM}.trust_remote_code", True),
        (f"{VLLM}.distributed_executor_backend", "mine.Executor"),
        (f"{VLLM}.load_format", "runai_streamer"),
        (f"{VLLM}.max_num_seqs", "--reasoning-parser-plugin=/data/x.py"),
        (f"{VLLM}.cudagraph_capture_sizes", [1, "--reasoning-parser-plugin=/data/x.py"]),
        (f"{VLLM}.no_such_option", 1),
        (VLLM, {"reasoning_parser_plugin": PLUGIN}),
        ("actor_rollout_ref.rollout.engine_kwargs", {"vllm": {"reasoning_parser_plugin": PLUGIN}}),
        ("actor_rollout_ref", {"rollout": {"engine_kwargs": {"vllm": {"worker_cls": "mine.Worker"}}}}),
        ("reward.reward_model.rollout.engine_kwargs", {"vllm": {"tool_parser_plugin": PLUGIN}}),
        ("actor_rollout_ref.rollout.engine_kwargs.sglang", {"tool_server": "http://elsewhere"}),
        ("actor_rollout_ref.rollout.custom", {"x": "mine"}),
        ("actor_rollout_ref.rollout.checkpoint_engine.engine_kwargs", {"naive": {"x": "mine"}}),
        ("actor_rollout_ref.rollout.trace.backend", "mlflow"),
        ("actor_rollout_ref.model.custom_chat_template", "{{ 1 }}"),
        ("actor_rollout_ref.model.override_config", {"auto_map": {"AutoModel": "mine--x.Model"}}),
        ("actor_rollout_ref.model.override_config", {"attn_implementation": "someone/kernels"}),
        ("actor_rollout_ref.model.override_config._target_", "os.system"),
        ("actor_rollout_ref.model.target_modules", "(a+)+$"),
        ("actor_rollout_ref.actor.optim.optimizer_impl", "mine.optim"),
        ("actor_rollout_ref.actor.optim.override_optimizer_config", {"foreach": "yes"}),
        ("actor_rollout_ref.actor.profiler.tool_config.nsys.name", "mine"),
        ("data.apply_chat_template_kwargs", {"chat_template": "{{ 1 }}"}),
        ("data.tokenizer", "/etc"),
        ("data.chat_template_func", "mine"),
        ("reward.reward_manager.source", "importlib"),
        ("reward.reward_kwargs", {"judge": "http://elsewhere"}),
        ("reward.sandbox_fusion.url", "http://elsewhere"),
        ("trainer.v1.sampler.custom_sampler.name", "Mine"),
        ("transfer_queue.backend.MooncakeStore.master_server_address", "elsewhere:1"),
        ("skip.rollout.enable", True),
    ],
)
def test_an_option_that_reaches_beyond_the_run_is_refused(key: str, value: Any, request_for: Build) -> None:
    composition = compose(request_for(overrides={key: value}))

    (issue,) = composition.errors
    assert issue.code in {"option_refused", "unknown_choice", "wrong_type"}
    assert issue.field.startswith(f"overrides.{key}")
    assert PLUGIN not in " ".join(composition.engine_overrides)


@pytest.mark.parametrize(
    ("recipe", "key", "value"),
    [
        ("sft", "model.override_config", {"attn_implementation": "someone/kernels"}),
        ("sft", "model.custom_chat_template", "{{ 1 }}"),
        ("sft", "optim.optimizer_impl", "mine"),
        ("dpo", "attn_implementation", "someone/kernels"),
        ("dpo", "torch_compile_backend", "mine"),
        ("dpo", "optim_args", "x=mine"),
        ("dpo", "gradient_checkpointing_kwargs", {"context_fn": "mine.f"}),
        ("agent_sft", "chat_template_path", "/etc/passwd"),
        ("agent_sft", "dataset_kwargs", {"path": "/etc"}),
        ("agent_retrieval", "pooling", "/etc"),
    ],
)
def test_the_other_engines_are_closed_in_the_same_way(
    recipe: str, key: str, value: Any, request_for: Build
) -> None:
    (issue,) = compose(request_for(recipe=recipe, overrides={key: value})).errors

    assert issue.code in {"option_refused", "unknown_choice"}


@pytest.mark.parametrize("text", ["${oc.env:HOME}", "${oc.decode:1}", "a${data.seed}b", "\\${oc.env:HOME}"])
@pytest.mark.parametrize("key", ["data.prompt_key", "critic.model.target_modules", f"{VLLM}.dtype"])
def test_no_interpolation_passes(key: str, text: str, request_for: Build) -> None:
    (issue,) = compose(request_for(overrides={key: text})).errors

    assert issue.code == "invalid_value"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (VLLM, {"max_num_seqs": 8, "enable_prefix_caching": False, "kv_cache_dtype": "fp8"}),
        (f"{VLLM}.compilation_config", {"cudagraph_mode": "PIECEWISE", "cudagraph_capture_sizes": [1, 2]}),
        (f"{VLLM}.speculative_config", {"method": "ngram", "num_speculative_tokens": 3}),
        (f"{VLLM}.distributed_executor_backend", "mp"),
        ("actor_rollout_ref.model.override_config", {"max_position_embeddings": 32768}),
        ("actor_rollout_ref.model.override_config", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
        ("actor_rollout_ref.model.target_modules", ["q_proj", "v_proj"]),
        ("actor_rollout_ref.actor.fsdp_config.mixed_precision", {"param_dtype": "bf16"}),
        ("actor_rollout_ref.actor.fsdp_config.wrap_policy.min_num_params", 0),
        ("actor_rollout_ref.actor.optim.betas", [0.9, 0.95]),
        ("algorithm.rollout_correction.rollout_is_threshold", "0.5_4.0"),
        ("algorithm.rollout_correction.rollout_is_threshold", 3.0),
        ("algorithm.rollout_correction.rollout_rs", "token_k1,seq_max_k2"),
        ("data.apply_chat_template_kwargs", {"enable_thinking": False}),
        ("trainer.total_training_steps", 10),
        ("global_profiler.steps", [1, 2]),
    ],
)
def test_numbers_switches_and_known_choices_pass(key: str, value: Any, request_for: Build) -> None:
    assert compose(request_for(overrides={key: value})).errors == []


def test_layers_that_get_an_adapter_are_names_and_not_expressions(request_for: Build) -> None:
    request = request_for(recipe="agent_sft", params={"lora_rank": 8, "lora_targets": "(a+)+$"})

    (issue,) = compose(request).errors

    assert (issue.code, issue.field) == ("wrong_type", "params.lora_targets")


SCHEMAS = {
    "verl-ppo": lambda: load_schema(Engine.VERL_PPO),
    "verl-sft": lambda: load_schema(Engine.VERL_SFT),
    **{f"trl-{recipe}": (lambda recipe=recipe: load_trl_schema(recipe)) for recipe in TRAINERS},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_that_takes_more_than_numbers_is_classified(name: str) -> None:
    schema: EngineSchema = SCHEMAS[name]()
    assert importlib.metadata.version(name.partition("-")[0]) in load_rules(name.partition("-")[0]).versions

    texts = [key for key, field in schema.typed_keys().items() if not _is_numeric(field)]
    unclassified = [
        key for key in texts if not _is_the_platforms(schema, key) and rule_of(schema.engine, key) is None
    ]

    assert unclassified == []


def _is_numeric(field: FieldType) -> bool:
    """Whether only numbers and true/false pass, or the field is a group whose keys stand for themselves."""
    is_group = field.nested is not None and not field.scalars & {"str", "list", "dict", "any"}
    return is_group or (bool(field.scalars) and field.scalars <= {"int", "float", "bool", "none"})


def _is_the_platforms(schema: EngineSchema, key: str) -> bool:
    tables = (*RESERVED[schema.engine], *SILENT[schema.engine])
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in tables)


# -- vLLM, whose options no schema of ours knows -------------------------------------------------


@pytest.mark.parametrize("engine", ["automodel", "megatron", "torchtitan", "veomni"])
@pytest.mark.parametrize("group", ["engine", "optim"])
def test_what_only_another_training_engine_has_is_refused_with_that_reason(group: str, engine: str) -> None:
    """Its keys are in no schema, and the nearest key of FSDP's would mislead."""
    schema = load_schema(Engine.VERL_SFT)
    specification = importlib.util.find_spec("verl")
    assert specification is not None
    (folder,) = specification.submodule_search_locations or ()
    file = Path(folder) / "trainer" / "config" / group / f"{engine}.yaml"
    keys = [f"{group}.{name}" for name in yaml.safe_load(file.read_text()) if not name.startswith("_")]
    theirs = [key for key in keys if schema.find(key) is None and not schema.is_group(key)]

    reasons = {key: getattr(rule_of(schema.engine, key), "refused", None) or "" for key in theirs}

    assert theirs
    assert [key for key, reason in reasons.items() if "not installed" not in reason] == []


def test_every_option_of_vllm_is_classified_and_none_is_made_up() -> None:
    options = _options_of_vllm()
    assert _version_of_vllm() in load_rules("vllm").versions

    assert [name for name in options if find_rule("vllm", name) is None] == []
    keys = [key for rule in load_rules("vllm").rules for key in rule.keys]
    named = {key.removesuffix(".*") for key in keys}
    named = {name for name in named if "*" not in name and "." not in name}
    #: Of the command line alone, and not of a config class.
    assert named - options.keys() == {"api_server_count", "config", "headless"}


@pytest.mark.parametrize(
    ("kind", "annotations"),
    [
        ("switch", {"bool"}),
        ("integer", {"int"}),
        ("number", {"float"}),
        ("integers", {"list[int]"}),
    ],
)
def test_an_option_of_vllm_takes_what_its_class_says(kind: str, annotations: set[str]) -> None:
    options = _options_of_vllm()

    wrong = {
        name: options[name]
        for rule in load_rules("vllm").rules
        for name in rule.keys
        if rule.takes == kind and name in options and options[name].removesuffix(" | None") not in annotations
    }

    assert wrong == {}


def test_choices_of_vllm_are_its_own() -> None:
    options, literals = _options_of_vllm(), _literals_of_vllm()
    checked = set()
    for rule in load_rules("vllm").rules:
        for name in rule.keys if rule.choices else []:
            known = literals.get(options.get(name, "").removesuffix(" | None"))
            if known is not None:
                checked.add(name)
                assert set(rule.choices) <= known, name

    assert checked >= {"kv_cache_dtype", "dtype", "moe_backend", "linear_backend", "scheduling_policy"}


def _vllm_folder() -> Path:
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _version_of_vllm() -> str:
    names = importlib.metadata.packages_distributions()["vllm"]
    return importlib.metadata.version(names[0]).partition("+")[0]


def _options_of_vllm() -> dict[str, str]:
    """Fields of the argument classes with their annotations, read from the source: vLLM imports slowly."""
    places = {
        "engine/arg_utils.py": ("EngineArgs", "AsyncEngineArgs"),
        "entrypoints/openai/cli_args.py": ("BaseFrontendArgs", "FrontendArgs"),
    }
    options: dict[str, str] = {}
    for path, classes in places.items():
        for node in ast.parse((_vllm_folder() / path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in classes:
                options |= {
                    each.target.id: ast.unparse(each.annotation)
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
    assert len(options) > 200
    return options


def _literals_of_vllm() -> dict[str, set[str]]:
    """``Name = Literal[...]`` in vLLM's config modules."""
    found: dict[str, set[str]] = {}
    for path in (_vllm_folder() / "config").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal["):
                texts = {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
                found[ast.unparse(node.targets[0])] = {text for text in texts if isinstance(text, str)}
    return found
