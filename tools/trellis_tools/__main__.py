"""The command of `./init.sh`: everything that `trellis` has, and the commands for this checkout."""

from trellis_cli.main import app, main

from trellis_tools import commands

commands.register(app)
main()
