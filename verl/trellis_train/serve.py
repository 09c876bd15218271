"""A model behind vLLM's OpenAI-style server on this machine, until the caller's end of the input closes.

``python -m trellis_train.serve <folder> --name <name> --port <port> --platform cpu|cuda``; the key that
callers have to send comes in ``TRELLIS_SERVED_MODEL_KEY``.
"""

import argparse
import os
import runpy
import signal
import sys
import threading
from importlib import metadata

from trellis_train.platform.patches import distribution_name

KEY_VARIABLE = "TRELLIS_SERVED_MODEL_KEY"
#: Tells the server's own processes what the first one was told.
_PLATFORM_VARIABLE = "TRELLIS_SERVED_MODEL_PLATFORM"
_SERVER = "vllm.entrypoints.openai.api_server"
_HOST = "127.0.0.1"


def main(arguments: list[str]) -> None:
    """Serve until a signal comes or the input closes."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.serve")
    parser.add_argument("folder")
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--platform", required=True, choices=["cpu", "cuda"])
    options = parser.parse_args(arguments)
    threading.Thread(target=_leave_with_caller, daemon=True).start()
    command = [
        "--model", options.folder, "--served-model-name", options.name,
        "--host", _HOST, "--port", str(options.port),
    ]  # fmt: skip
    # In the environment: a command line can be read by everybody on the machine.
    os.environ["VLLM_API_KEY"] = os.environ.pop(KEY_VARIABLE)
    # Nothing is looked up anywhere: the files are here.
    os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
    if options.platform == "cpu":
        command += prepare_cpu()
    sys.argv = [_SERVER, *command]
    runpy.run_module(_SERVER, run_name="__main__")


def prepare_cpu() -> list[str]:
    """What vLLM's CPU build needs to know; more options of its command line."""
    os.environ[_PLATFORM_VARIABLE] = "cpu"
    distribution_name.install()
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
    distribution_name.install()

if __name__ == "__main__":
    main(sys.argv[1:])
