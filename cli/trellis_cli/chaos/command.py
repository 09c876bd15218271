"""`trellis chaos`: a campaign from its first fault to its report."""

from datetime import UTC, datetime
from pathlib import Path

from trellis_cli.chaos.campaign import Campaign
from trellis_cli.chaos.ground import check_database, prepared_ground
from trellis_cli.chaos.load import Load
from trellis_cli.chaos.report import as_json, print_outcome
from trellis_cli.output import err, print_json


def run_chaos(*, minutes: float, seed: int, database_url: str | None, is_json: bool) -> bool:
    """Run a campaign and print what it found; whether everything held."""
    if database_url is not None:
        check_database(database_url)
    records: Path | None = None
    with prepared_ground(database_url, _say) as ground:
        campaign = Campaign(ground, Load(ground.client, ground.data_root, seed), seed, _say)
        campaign.run(minutes)
        if campaign.outcome.violations:
            records = ground.keep_records()
    if is_json:
        print_json(as_json(campaign.outcome, records))
    else:
        print_outcome(campaign.outcome, records)
    return not campaign.outcome.violations


def _say(line: str) -> None:
    err.print(
        f"{datetime.now(UTC):%H:%M:%S} {line}", style="dim", markup=False, highlight=False, soft_wrap=True
    )
