"""docker-compose.yml is valid and refuses to start with a password that nobody chose."""

import copy
from typing import Any

import pytest
import yaml
from trellis_contracts.recipe import Engine
from trellis_recipes.placement import total_demand
from trellis_tools import compose_check
from trellis_tools.compose_check import COMPOSE_FILE, REQUIRED_VARIABLES


@pytest.fixture
def model() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text())
    return parsed


@pytest.fixture(scope="module")
def compose() -> list[str]:
    command = compose_check.compose_command()
    if command is None:
        pytest.fail("neither `docker compose` nor docker-compose is here; ./init.sh test installs it")
    return command


def test_compose_accepts_the_file(compose: list[str]) -> None:
    code, output = compose_check.run_config(compose, REQUIRED_VARIABLES)

    assert code == 0, output


@pytest.mark.parametrize("missing", sorted(REQUIRED_VARIABLES))
def test_compose_refuses_a_missing_password(compose: list[str], missing: str) -> None:
    given = {name: value for name, value in REQUIRED_VARIABLES.items() if name != missing}

    code, output = compose_check.run_config(compose, given)

    assert code != 0
    assert missing in output


def test_the_file_keeps_our_own_rules(model: dict[str, Any]) -> None:
    assert compose_check.find_problems(model) == []


@pytest.mark.parametrize(
    ("service", "spoil", "complaint"),
    [
        ("api", lambda each: each.pop("healthcheck"), "api has no health check"),
        ("redis", lambda each: each.pop("restart"), "redis has no restart rule"),
        ("api", lambda each: each.update(ports=["8001:8001"]), "beyond this machine"),
        ("worker", lambda each: each.pop("security_opt"), "worker has no seccomp profile"),
        ("ray-head", lambda each: each.update(security_opt=["seccomp:./gone.json"]), "no seccomp profile"),
        ("ray-gpu-worker", lambda each: each.update(security_opt=["seccomp=unconfined"]), "more privileges"),
        ("worker", lambda each: each.update(cap_add=["SYS_ADMIN"]), "more privileges"),
        ("api", lambda each: each.update(privileged=True), "more privileges"),
    ],
)
def test_a_file_that_breaks_a_rule_is_found(
    model: dict[str, Any], service: str, spoil: Any, complaint: str
) -> None:
    spoiled = copy.deepcopy(model)
    spoil(spoiled["services"][service])

    problems = compose_check.find_problems(spoiled)

    assert any(complaint in problem for problem in problems)


def test_no_password_stands_in_the_file() -> None:
    for name, value in REQUIRED_VARIABLES.items():
        assert f"${{{name}:?" in COMPOSE_FILE.read_text(), value


def test_the_images_that_run_persons_code_have_what_isolates_it(model: dict[str, Any]) -> None:
    builds = {
        service["image"]: service["build"] for service in model["services"].values() if "build" in service
    }

    for name in compose_check.SANDBOXED_SERVICES:
        dockerfile = COMPOSE_FILE.parent / builds[model["services"][name]["image"]]["dockerfile"]
        assert "bubblewrap" in dockerfile.read_text(), name


@pytest.mark.parametrize("job_gpus", [1, 2, 4, 8])
def test_a_worker_with_eight_gpus_declares_cpus_for_rl_on_all_of_them(
    model: dict[str, Any], job_gpus: int
) -> None:
    (option,) = [
        each for each in model["services"]["ray-gpu-worker"]["command"] if each.startswith("--num-cpus=")
    ]
    cpus = int(option.partition(":-")[2].rstrip("}"))

    jobs = 8 // job_gpus
    assert cpus >= jobs * total_demand(Engine.VERL_PPO, job_gpus).cpus
