"""The demonstrations: real trainings through the public API, on the starter model or on a pretrained one."""
