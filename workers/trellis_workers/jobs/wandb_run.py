"""Logs the steps of one job to its W&B run: reads an order as JSON from the input; the key is WANDB_API_KEY.

The run has the id of the job and is resumed by every order, so all orders of a job are one run.
"""

import json
import sys
from pathlib import Path
from typing import Any

_NAME = "trellis"


def main() -> None:
    """Carry out the order of the input."""
    import wandb

    log_steps(json.load(sys.stdin), wandb)


def log_steps(order: dict[str, Any], wandb: Any) -> None:
    """Log each step under its own number. Nothing of this machine is sent: no code, console or statistics."""
    run = wandb.init(
        **order["run"],
        resume="allow",
        config=order["config"],
        dir=order["folder"],
        settings=wandb.Settings(
            silent=True,
            # Else the machine's name and the path of this file.
            host=_NAME,
            program=_NAME,
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
        ),
    )
    for step, values in order["steps"]:
        run.log(values, step=step)
    run.finish()
    if run.url:
        (Path(order["folder"]) / "url").write_text(run.url, encoding="utf-8")


if __name__ == "__main__":
    main()
