"""`trellis data`: rows in files of this machine; what the platform holds: `datasets`, `pipelines`."""

import typer

from trellis_cli import data_generation, data_runs, data_versions

app = typer.Typer(no_args_is_help=True)
data_runs.register(app)
data_versions.register(app)
app.command()(data_generation.generate)
