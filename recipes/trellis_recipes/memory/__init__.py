"""How much memory a run will need, from its model's configuration and its settings, before it is launched."""
