"""Running verl and vLLM on a CPU; everything here is inert unless ``VERL_PLATFORM=cpu``."""
