"""A model behind vLLM's OpenAI-style server on this machine, until the caller's end of the input closes.

``python -m trellis_train.serve <folder> --name <name> --port <port> --platform cpu|cuda``; the key that
callers have to send comes in ``TRELLIS_SERVED_MODEL_KEY``. Nothing but ``/health`` is answered without it.
"""

import argparse
import json
import os
import re
import runpy
import signal
import sys
import threading
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from trellis_contracts.events import ToolProblem

from trellis_train.compat import vllm_name

KEY_VARIABLE = "TRELLIS_SERVED_MODEL_KEY"
#: Requests in flight have this long to finish after SIGTERM. vLLM's default is none at all: it aborts them,
#: and streams then hang until the server is killed.
DRAIN_S = 10
#: Tells the server's own processes what the first one was told.
_PLATFORM_VARIABLE = "TRELLIS_SERVED_MODEL_PLATFORM"
_SERVER = "vllm.entrypoints.openai.api_server"
#: Refuses what comes without the key; vLLM itself guards only some of its paths.
_GUARD = "trellis_train.serve_guard.RequireKey"
#: Where a newer checkpoint may take the place of the weights: between two requests, in vLLM's workers.
_GATE = "trellis_train.serve_gate.WeightsGate"
_WEIGHTS_TAKER = "trellis_train.serve_worker.WeightsTaker"
_HOST = "127.0.0.1"
#: How a chat template writes a tool call, and vLLM's parser of that; the first whose marks are all there.
#: Between the same tags, Hermes has JSON, Qwen3-Coder parameters, and GLM keys and values.
_TOOL_PARSERS = (
    (("<tool_call>", "<function="), "qwen3_coder"),
    (("<tool_call>", "<arg_key>"), "glm45"),
    (("<tool_call>",), "hermes"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<|python_tag|>",), "llama3_json"),
)
_TOOLS_IN_TAG = re.compile(r"\{[%{][^%}]*\btools\b")


def main(arguments: list[str]) -> None:
    """Serve until a signal comes or the input closes."""
    options = _parse(arguments)
    threading.Thread(target=_leave_with_caller, daemon=True).start()
    # In the environment: a command line can be read by everybody on the machine.
    os.environ["VLLM_API_KEY"] = os.environ.pop(KEY_VARIABLE)
    # Nothing is looked up anywhere: the files are here.
    os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
    if options.max_lora_rank is not None:
        # Behind the key, like everything else that the server answers.
        os.environ["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    command = build_command(options)
    if options.platform == "cpu":
        command += prepare_cpu()
    sys.argv = [_SERVER, *command]
    runpy.run_module(_SERVER, run_name="__main__")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trellis_train.serve")
    parser.add_argument("folder")
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--platform", required=True, choices=["cpu", "cuda"])
    parser.add_argument("--host", default=_HOST)
    parser.add_argument("--max-model-len", type=int, help="-1: as far as the memory goes")
    parser.add_argument("--max-tokens", type=int, help="of one answer")
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--tools", action="store_true", help="let answers call tools")
    parser.add_argument("--embeddings", action="store_true", help="an encoder: vectors, no text")
    parser.add_argument(
        "--replaceable", action="store_true", help="other weights can take the place of its own"
    )
    parser.add_argument("--max-lora-rank", type=int, help="adapters up to this rank can be loaded")
    parser.add_argument("--max-loras", type=int, default=1, help="different adapters in one batch")
    return parser.parse_args(arguments)


def build_command(options: argparse.Namespace) -> list[str]:
    """Build options of vLLM's server. Values follow ``=``: none of them is taken for an option."""
    command = [
        f"--model={options.folder}",
        f"--served-model-name={options.name}",
        f"--host={options.host}",
        f"--port={options.port}",
        f"--tensor-parallel-size={options.tensor_parallel}",
        *_allow_replacement(options),
        # Behind the other: the last one is the outermost.
        f"--middleware={_GUARD}",
        "--disable-fastapi-docs",
        "--disable-uvicorn-access-log",
        # Which tokens a tokenizer has added: the API marks them in rendered prompts.
        "--enable-tokenizer-info-endpoint",
        f"--shutdown-timeout={DRAIN_S}",
    ]
    if options.max_model_len is not None:
        command.append(f"--max-model-len={options.max_model_len}")
    if options.max_tokens is not None:
        limit = json.dumps({"max_new_tokens": options.max_tokens})
        command.append(f"--override-generation-config={limit}")
    if options.embeddings:
        command.append("--runner=pooling")
    if options.max_lora_rank is not None:
        command += [
            "--enable-lora",
            f"--max-lora-rank={options.max_lora_rank}",
            f"--max-loras={options.max_loras}",
        ]
    parser = find_tool_parser(Path(options.folder)) if options.tools else None
    if parser is not None:
        command += ["--enable-auto-tool-choice", f"--tool-call-parser={parser}"]
    return command


def _allow_replacement(options: argparse.Namespace) -> list[str]:
    if not options.replaceable:
        return []
    return [f"--middleware={_GATE}", f"--worker-extension-cls={_WEIGHTS_TAKER}"]


def find_tool_parser(folder: Path) -> str | None:
    """Find vLLM's parser for the way the model's chat template writes tool calls; None for others."""
    template = read_template(folder)
    return next((name for marks, name in _TOOL_PARSERS if all(mark in template for mark in marks)), None)


def find_tool_problem(folder: Path) -> ToolProblem | None:
    """Explain why a model's chat template does not support requests with tools; None if it does."""
    if not shows_tools(read_template(folder)):
        return "not_in_template"
    return None if find_tool_parser(folder) else "unknown_call_format"


def shows_tools(template: str) -> bool:
    """Tell whether a chat template writes the tools of a request into the prompt."""
    try:
        return "tools" in find_undeclared_variables(Environment(autoescape=True).parse(template))
    except TemplateSyntaxError:  # tags of Transformers' own, or several templates under names
        return _TOOLS_IN_TAG.search(template) is not None


def read_template(folder: Path) -> str:
    """Read the chat template from its own file or the tokenizer's settings."""
    try:
        return (folder / "chat_template.jinja").read_text()
    except FileNotFoundError:
        pass
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text())
    except FileNotFoundError:
        return ""
    template = settings.get("chat_template") or ""
    return template if isinstance(template, str) else json.dumps(template, ensure_ascii=False)


def prepare_cpu() -> list[str]:
    """Prepare vLLM's CPU build and return its additional command-line options."""
    os.environ[_PLATFORM_VARIABLE] = "cpu"
    vllm_name.install()
    metadata.version("vllm")  # says at once where it is missing
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    return ["--enforce-eager"]


def _leave_with_caller() -> None:
    """End when the caller's end of the input closes."""
    while sys.stdin.buffer.read(1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)


# vLLM's engine is a process of its own, which imports this module anew.
if os.environ.get(_PLATFORM_VARIABLE) == "cpu":
    vllm_name.install()

if __name__ == "__main__":
    main(sys.argv[1:])
