"""What has to change in verl and vLLM before they run on a CPU, one module each."""
