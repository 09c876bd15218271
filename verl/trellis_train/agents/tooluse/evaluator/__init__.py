"""How well a model uses tools: five metrics on rows with references, and what came of simulated calls."""
