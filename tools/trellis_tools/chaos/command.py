"""`./init.sh chaos`: a campaign from its first fault to its report."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err, print_json

from trellis_tools.chaos.campaign import Campaign
from trellis_tools.chaos.faults import FAULTS
from trellis_tools.chaos.ground import check_database, prepared_ground
from trellis_tools.chaos.load import Load
from trellis_tools.chaos.report import as_json, print_outcome


def run_chaos(
    *,
    minutes: float,
    count: int | None,
    seed: int,
    kinds: Sequence[str],
    database_url: str | None,
    has_endpoint: bool,
    is_json: bool,
) -> bool:
    """Run a campaign and print what it found; whether everything held."""
    if unknown := set(kinds) - set(FAULTS):
        hint = f"known: {', '.join(FAULTS)}"
        raise Problem(f"unknown fault: {', '.join(sorted(unknown))}", hint=hint, exit_code=ExitCode.USAGE)
    if database_url is not None:
        check_database(database_url)
    records: Path | None = None
    with prepared_ground(database_url, _say) as ground:
        load = Load(ground.client, ground.data_root, seed)
        campaign = Campaign(ground, load, seed, _say, wanted=kinds, has_endpoint=has_endpoint)
        campaign.run(minutes, count)
        if campaign.outcome.violations:
            records = ground.keep_records()
        # Before the platform is taken away, which may fail, too, where it did not come back.
        if is_json:
            print_json(as_json(campaign.outcome, records))
        else:
            print_outcome(campaign.outcome, records)
    return campaign.outcome.is_held


def _say(line: str) -> None:
    err.print(
        f"{datetime.now(UTC):%H:%M:%S} {line}", style="dim", markup=False, highlight=False, soft_wrap=True
    )
