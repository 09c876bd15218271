"""Dialogs as rows to train on, and how many of each task."""
