"""What processes that workers start can read of the workers' environment, seen from such a process."""

import json
import subprocess
import sys

import pytest
from trellis_workers.core.child_environment import data_environment, plain_environment

PRINT = "import json, os; print(json.dumps(dict(os.environ)))"
PLATFORM = {
    "TRELLIS_DATABASE_URL": "postgresql://trellis:hidden@db/trellis",
    "TRELLIS_REDIS_URL": "redis://:hidden@redis",
    "TRELLIS_TOKEN": "hidden",
    "TRELLIS_JUDGES": '{"a": {"base_url": "https://hidden"}}',
}
KEYS = {
    "STRICT_JUDGE_KEY": "hidden",
    "EMBEDDING_KEY": "hidden",
    "AWS_ACCESS_KEY_ID": "hidden",
    "AWS_SESSION_TOKEN": "hidden",
    "HF_TOKEN": "hidden",
    "RAY_AUTH_TOKEN": "hidden",
    "RAY_AUTH_TOKEN_PATH": "/hidden",
    "SMTP_PASSWORD": "hidden",
}
HARMLESS = {"TRELLIS_DATA_ROOT": "/data", "TOKENIZERS_PARALLELISM": "false", "HF_ENDPOINT": "https://hub"}


@pytest.fixture(autouse=True)
def _worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**PLATFORM, **KEYS, **HARMLESS}.items():
        monkeypatch.setenv(name, value)


def read_there(environment: dict[str, str]) -> dict[str, str]:
    """The environment as a process has it."""
    done = subprocess.run([sys.executable, "-c", PRINT], env=environment, capture_output=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_work_on_data_has_keys_and_no_way_to_the_platform_s_state() -> None:
    found = read_there(data_environment())

    assert not PLATFORM.keys() & found.keys()
    assert found.items() >= {**KEYS, **HARMLESS}.items()


def test_a_dry_run_has_no_secret_at_all() -> None:
    found = read_there(plain_environment())

    assert not any("hidden" in value for value in found.values())
    assert found.items() >= HARMLESS.items()


def test_a_child_has_the_key_that_it_is_meant_to_have() -> None:
    found = read_there(plain_environment("HF_TOKEN"))

    assert {name for name, value in found.items() if "hidden" in value} == {"HF_TOKEN"}
