"""From the platform's dataset files to the files that the engines read."""
