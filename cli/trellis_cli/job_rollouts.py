"""`trellis jobs rollouts`: the best and the worst responses of a step, in the terminal."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import Refusal
from trellis_cli.output import Json, out, print_json
from trellis_cli.resolve_by_name import find_job

#: Characters of a prompt and of a response that are shown; its end says most of either.
PROMPT_CHARACTERS, RESPONSE_CHARACTERS = 300, 1000
_PAGE = 200


class Split(StrEnum):
    """What responses are a sample of."""

    TRAIN = "train"
    VALIDATION = "validation"
    PROBE = "probe"


def register(app: typer.Typer) -> None:
    """Add the command to those of jobs."""
    app.command("rollouts")(show_rollouts)


def show_rollouts(
    job: Annotated[str, typer.Argument(help="ID (job_...) or name; the latest if several share the name.")],
    step: Annotated[int | None, typer.Option(min=0, help="Default: the newest one with responses.")] = None,
    split: Annotated[
        Split, typer.Option(help="probe: tricks made of the policy's best responses.")
    ] = Split.TRAIN,
    count: Annotated[int, typer.Option("-n", min=1, max=100, help="Best and worst responses each.")] = 3,
    whole: Annotated[bool, typer.Option("--whole", help="Don't shorten prompts and responses.")] = False,
    as_json: Json = False,
) -> None:
    """Show the best and worst responses of a step with their rewards."""
    client = connect()
    path = f"/jobs/{find_job(client, job)}"
    summary = client.get(f"{path}/rollout-summary", step=step, split=split.value)
    found = list(client.pages(f"{path}/rollouts", step=summary["step"], split=split.value, limit=_PAGE))
    best, worst = choose_ends(found, count)
    if as_json:
        about = {"step": summary["step"], "split": split.value, "total": len(found)}
        print_json({**about, "best": best, "worst": worst})
        return
    if not found:
        at = "" if step is None else f" at step {step}"
        out.print(f"no responses{at}", style="dim", markup=False, highlight=False)
        return
    shown = f"{len(best) + len(worst)} of {len(found)} responses"
    out.print(f"step {summary['step']}, {split.value}: {shown}", style="bold", markup=False, highlight=False)
    for name, rollouts in (("best", best), ("worst", worst)):
        for rollout in rollouts:
            print_rollout(rollout, name, whole=whole)


def choose_ends(
    rollouts: Sequence[dict[str, Any]], count: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Choose the best responses, best first, and the worst of the others, worst first."""
    scored = [each for each in rollouts if each["score"] is not None]
    ranked = sorted(scored, key=lambda each: -each["score"])
    best, rest = ranked[:count], ranked[count:]
    return best, rest[::-1][:count]


def print_rollout(rollout: dict[str, Any], name: str, *, whole: bool = False) -> None:
    """Print one response with its prompt and what it earned."""
    score = "none" if rollout["score"] is None else f"{rollout['score']:.4g}"
    parts = [f"{part} {value:.4g}" for part, value in rollout["reward_parts"].items() if value is not None]
    told = [f"reward {score}", *parts, f"{rollout['response_tokens']} tokens"]
    if rollout["split"] == "probe":
        told.insert(0, f"probe {rollout['group']}")
    if rollout["is_truncated"]:
        told.append("truncated")
    out.print(f"\n{name}: {', '.join(told)}", style="bold", markup=False, highlight=False)
    prompt, response = rollout["prompt"], rollout["response"]
    if not whole:
        prompt, response = _end_of(prompt, PROMPT_CHARACTERS), _end_of(response, RESPONSE_CHARACTERS)
    out.print(prompt, style="dim", markup=False, highlight=False)
    out.print(response or "(empty response)", markup=False, highlight=False)


def print_example(client: ApiClient, job: str, example: int) -> None:
    """Print the response that shows what an alarm is about; nothing where it was deleted."""
    try:
        rollout = client.get(f"/jobs/{job}/rollouts/{example}")
    except Refusal:
        return
    print_rollout(rollout, f"example, step {rollout['step']}")


def _end_of(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"[{len(text) - limit} characters] … {text[-limit:]}"
