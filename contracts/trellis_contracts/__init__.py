"""What crosses a process border: job specs, recipes, states, events and task names."""

#: The name that the platform's packages are installed by.
DISTRIBUTION = "trellis-platform"
