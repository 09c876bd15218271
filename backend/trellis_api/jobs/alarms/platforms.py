"""Texts for a job that waits in the queue since it was composed for another platform than there is now."""

from trellis_contracts.recipe import Text

OTHER_PLATFORM = "other_platform"
_EN_NAMES = {"cpu": "CPUs", "cuda": "GPUs"}
_ZH_NAMES = {"cpu": "CPU", "cuda": "GPU"}


def describe_alarm(composed_for: str) -> Text:
    """Return the alarm's title with the platform that the job waits for."""
    return Text(
        en=f"Waiting for the platform to run on {_EN_NAMES.get(composed_for, composed_for)}, as when the job "
        "was submitted",
        zh=f"正在等待平台以提交任务时的 {_ZH_NAMES.get(composed_for, composed_for)} 方式运行",
    )


def describe(composed_for: str, present: str) -> str:
    """Describe in the job's log why it waits, and what to do."""
    cause = "TRELLIS_PLATFORM"
    if composed_for == "cuda":
        cause = "the GPU driver (nvidia-smi) and TRELLIS_PLATFORM"
    return (
        f"The job was configured for the platform {composed_for}, but the services run with {present}, so it "
        f"stays in the queue. If {composed_for} is right, check {cause} and restart all services: GPUs are "
        "counted only when a service starts. Otherwise stop the job and clone it, which configures it for "
        f"{present}."
    )
