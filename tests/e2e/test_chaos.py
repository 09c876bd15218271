"""A short campaign of faults, as anybody runs it: nothing is lost, doubled, stuck or left behind."""

import json
import subprocess

import pytest
from trellis_cli.services.platform import python_command

pytestmark = [pytest.mark.training, pytest.mark.faults, pytest.mark.timeout(1200)]


def test_a_campaign_finds_nothing_violated() -> None:
    command = python_command("-m", "trellis_tools", "chaos", "--minutes", "3", "--seed", "5", "--json")

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)

    assert told["violations"] == [], done.stderr
    assert done.returncode == 0
    assert len([each for each in told["faults"] if each["recovery_s"] is not None]) >= 3
    assert told["jobs"]["succeeded"] >= 1
