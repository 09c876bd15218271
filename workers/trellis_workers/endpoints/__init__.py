"""Endpoints as the workers see them: what an engine is told, and which idle one stops."""
