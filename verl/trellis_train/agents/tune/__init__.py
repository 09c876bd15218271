"""Trains a person's workflow: any async function that runs an agent and returns a reward."""
