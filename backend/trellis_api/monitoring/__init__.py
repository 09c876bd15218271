"""Monitoring: the state of the platform, measured in the background, for people and for Prometheus."""
