"""The command line: services, jobs, data, demo."""
