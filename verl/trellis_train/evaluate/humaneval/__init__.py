"""HumanEval: functions that a model writes, and tests of them in a sandbox."""
