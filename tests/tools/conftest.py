"""Fixtures of tests that start services."""

from trellis_testing.supervisors import make_supervisor, no_settings_from_outside

__all__ = ["make_supervisor", "no_settings_from_outside"]
