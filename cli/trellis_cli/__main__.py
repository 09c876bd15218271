"""Runs the command line: ``python -m trellis_cli``."""

from trellis_cli.main import main

main()
