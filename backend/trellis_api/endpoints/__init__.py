"""Endpoints: models and checkpoints that answer requests, and the OpenAI-style API in front of them."""
