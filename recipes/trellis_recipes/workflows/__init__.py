"""Workflows that people bring, as files and packages: checked here without running anything."""
