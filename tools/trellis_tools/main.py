"""The command of `./init.sh`: everything that `trellis` has, and the commands for this checkout."""

from trellis_cli.main import app
from trellis_cli.main import main as run_command

from trellis_tools import commands

commands.register(app)


def main() -> None:
    """Run a command of the product or of this checkout."""
    run_command()
