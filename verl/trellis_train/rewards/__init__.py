"""Scoring of responses: pure functions, shared by training and evaluation."""
