"""`trellis jobs rollouts`: the best and the worst responses of a step, in the terminal."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import Refusal
from trellis_cli.output import Json, out, print_json
from trellis_cli.resolve_by_name import find_job

#: Characters of a prompt and of a response that are shown; its end says most of either.
PROMPT_CHARACTERS, RESPONSE_CHARACTERS = 300, 1000

#: Reads responses of a step, page by page, with scores from ``min_score`` to ``max_score``.
Read = Callable[..., Iterator[dict[str, Any]]]


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
    of_step = {"step": summary["step"], "split": split.value}
    read = partial(client.pages, f"{path}/rollouts", **of_step, limit=2 * count)
    best, worst = read_ends(read, summary["scores"], count)
    if as_json:
        print_json({**of_step, "total": summary["total"], "best": best, "worst": worst})
        return
    if not best:
        at = "" if step is None else f" at step {step}"
        told = f"no response{at} has a score" if summary["total"] else f"no responses{at}"
        out.print(told, style="dim", markup=False, highlight=False)
        return
    shown = f"{len(best) + len(worst)} of {summary['total']} responses"
    out.print(f"step {summary['step']}, {split.value}: {shown}", style="bold", markup=False, highlight=False)
    for name, rollouts in (("best", best), ("worst", worst)):
        for rollout in rollouts:
            print_rollout(rollout, name, whole=whole)


def read_ends(
    read: Read, scores: Sequence[float], count: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read the best responses, best first, and the worst of the others, worst first.

    Responses are long: by the scores of the step, only those that are shown are read.
    """
    ranked = sorted(scores, reverse=True)
    best = _read_scored(read, ranked[:count], known=set())
    worst = _read_scored(read, ranked[count:][::-1][:count], known={each["id"] for each in best})
    return best, worst


def _read_scored(read: Read, scores: Sequence[float], *, known: set[int]) -> list[dict[str, Any]]:
    """Read responses with these scores, from one end of the step; of the last score, any but ``known``."""
    if not scores:
        return []
    edge, outer = scores[-1], [score for score in scores if score != scores[-1]]
    found = list(islice(read(min_score=min(outer), max_score=max(outer)), len(outer))) if outer else []
    of_edge = (each for each in read(min_score=edge, max_score=edge) if each["id"] not in known)
    found += islice(of_edge, len(scores) - len(outer))
    return sorted(found, key=lambda each: each["score"], reverse=scores[0] > edge)


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
