"""Agents that use tools: data, scoring, retrieval and training of a whole pipeline."""
