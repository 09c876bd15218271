"""What Ray runs: training on verl and vLLM, with events to the platform."""
