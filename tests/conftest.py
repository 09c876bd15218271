"""What all suites share."""

from hypothesis import HealthCheck, settings

# Suites run beside each other: how long an example takes says nothing about what it tests.
settings.register_profile("shared-cores", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-cores")
