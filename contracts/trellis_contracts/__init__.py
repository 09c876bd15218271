"""What crosses a process border: job specs, recipes, states, events and task names."""
