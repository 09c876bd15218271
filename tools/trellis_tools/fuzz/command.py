"""`./init.sh fuzz`: a temporary platform, generated requests, and what was found."""

import shutil
from pathlib import Path
from typing import Any

from trellis_cli.output import out, print_json

from trellis_tools.bench.light_platform import light_platform
from trellis_tools.fuzz.campaign import Campaign, Outcome

_LOG = "api.log"


def run_fuzz(*, requests: int, seed: int, is_json: bool) -> bool:
    """Send so many requests; whether none failed inside or was answered without a token."""
    with light_platform() as platform:
        known = {"mdl": platform.model, "ds": platform.dataset}
        known["job"] = platform.client.post("/jobs", platform.job_request())["id"]
        campaign = Campaign(platform.client.url, platform.client.token_header, known, seed)
        campaign.run(requests)
        outcome = campaign.outcome
        kept = _keep_log(platform.settings.data_root) if outcome.findings else None
    if is_json:
        print_json(_as_json(outcome, kept))
    else:
        _print(outcome, kept)
    return not outcome.findings


def _keep_log(data_root: Path) -> Path:
    """Copy the API's log, which has the traces of what failed and goes with the platform."""
    kept = Path(f"{data_root}-{_LOG}")
    shutil.copyfile(data_root / _LOG, kept)
    return kept


def _as_json(outcome: Outcome, log: Path | None) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "requests": outcome.sent,
        "without_token": outcome.without_token,
        "seconds": round(outcome.seconds, 1),
        "statuses": {str(status): count for status, count in sorted(outcome.statuses.items())},
        "findings": [vars(each) for each in outcome.findings],
        "log": str(log) if log else None,
    }


def _print(outcome: Outcome, log: Path | None) -> None:
    statuses = ", ".join(f"{count} x {status}" for status, count in sorted(outcome.statuses.items()))
    lines = [
        f"{outcome.sent} requests in {outcome.seconds:.0f} s (seed {outcome.seed}), "
        f"{outcome.without_token} of them without a token: {statuses}",
        *(f"{each.rule}: {each.request}\n    {each.answer}" for each in outcome.findings),
        f"{len(outcome.findings)} findings" + (f"; the API's log: {log}" if log else ""),
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
