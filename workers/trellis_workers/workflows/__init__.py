"""Packages of workflows: what they require is installed before a job trains them."""
