"""Python files that persons upload: how reward functions and workflows are kept."""
