"""Model cards: what is known of a model, in the form that hubs read, with every number from a run."""
