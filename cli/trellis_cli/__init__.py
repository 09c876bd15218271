"""The command line: set-up, services, jobs, demo, benchmarks."""
