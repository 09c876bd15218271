"""Runs the commands of a checkout: ``python -m trellis_tools``."""

from trellis_tools.main import main

main()
