"""Workflows of several files: data, a database and packages of their own, in the sandbox all the same."""

import asyncio
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.agents import ToolSchema
from trellis_contracts.endpoints import ChatEndpoint
from trellis_train.agents.tune import requirements
from trellis_train.agents.tune.isolation import RunnerLimits, SessionFailed, SessionResult, WorkflowRunner
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.services import NO_SERVICES, Services, ServicesUnusable
from trellis_train.agents.tune.trial import ScriptedModel

LIMITS = RunnerLimits(runners=2, step_timeout_s=5.0, session_timeout_s=20.0, memory_mb=512)
WORKFLOW = """
from typing import Any, Dict

import shop.stock as stock
from trellis import TunableChatModel


async def workflow(task: Dict[str, Any], model: TunableChatModel) -> float:
    reply = await model([{"role": "user", "content": task["question"]}])
    return float(await DO[task["do"]](task, model, reply))


async def count(task, model, reply):
    return stock.count(task["item"])


async def fail(task, model, reply):
    return stock.count(task["itme"])


async def deep(task, model, reply):
    return stock.divide(0)


async def write(task, model, reply):
    with open("stock.db", "ab") as file:
        file.write(b"x")
    return 1.0


async def package(task, model, reply):
    import tiny

    return tiny.ANSWER


async def missing(task, model, reply):
    import numpy  # of the platform, which has it

    return 1.0


DO = {f.__name__: f for f in (count, fail, deep, write, package, missing)}
"""
STOCK = """
import json
import sqlite3

NAMES = json.load(open("names.json"))


def count(item):
    with sqlite3.connect("stock.db") as database:
        return database.execute("SELECT count FROM stock WHERE item = ?", [NAMES[item]]).fetchone()[0]


def divide(by):
    return 1 / by
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    (folder / "workflow.py").write_text(WORKFLOW)
    (folder / "shop").mkdir()
    (folder / "shop" / "stock.py").write_text(STOCK)
    (folder / "names.json").write_text('{"apples": "apple"}')
    with sqlite3.connect(folder / "stock.db") as database:
        database.execute("CREATE TABLE stock (item TEXT, count INTEGER)")
        database.execute("INSERT INTO stock VALUES ('apple', 7)")
    database.close()
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip takes for an index: a package that is on no other."""
    folder = tmp_path_factory.mktemp("index")
    name = "tiny-1.0"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42.0\n")
        info = f"{name}.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.fixture
def offline(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's own variables say where packages come from."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))


@pytest.fixture(scope="module")
def runner(package: Path) -> Iterator[WorkflowRunner]:
    runner = WorkflowRunner(WorkflowSource.read(str(package)), LIMITS)
    yield runner
    runner.close()


def play(runner: WorkflowRunner, **task: Any) -> SessionResult:
    runner._places = None  # a semaphore belongs to one event loop
    return asyncio.run(runner.run({"question": "How many?", **task}, ScriptedModel("7")))


def test_a_package_has_its_modules_data_and_database(runner: WorkflowRunner) -> None:
    assert play(runner, do="count", item="apples").reward == 7.0


def test_a_failure_says_the_file_of_the_package_and_its_line(runner: WorkflowRunner) -> None:
    with pytest.raises(SessionFailed) as failed:
        play(runner, do="fail", item="apples")
    assert str(failed.value) == "KeyError: 'itme' (workflow.py, line 18)"
    with pytest.raises(SessionFailed) as deep:
        play(runner, do="deep")
    assert "(shop/stock.py, line 14)" in str(deep.value)
    assert 'File "shop/stock.py", line 14, in divide\n    return 1 / by' in deep.value.traceback


def test_the_files_of_a_package_cannot_be_written(runner: WorkflowRunner, package: Path) -> None:
    before = (package / "stock.db").read_bytes()
    with pytest.raises(SessionFailed, match=r"Read-only file system|Permission denied"):
        play(runner, do="write")
    assert (package / "stock.db").read_bytes() == before


def test_a_module_that_cannot_be_loaded_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "workflow.py").write_text("import helper\n\nasync def workflow(task, model): ...\n")
    (tmp_path / "helper.py").write_text("x = 1\ny = 1 / 0\n")
    runner = WorkflowRunner(WorkflowSource.read(str(tmp_path)), LIMITS)
    try:
        with pytest.raises(WorkflowUnusable, match=r"ZeroDivisionError.*\(helper.py, line 2\)"):
            runner.check()
    finally:
        runner.close()


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_requirements_are_installed_once_and_stand_in_place_of_the_platforms(
    package: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "with-requirements"
    folder.mkdir()
    for path in (each for each in package.rglob("*") if each.is_file()):
        target = folder / path.relative_to(package)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    (folder / "requirements.txt").write_text("tiny==1.0  # of our own\n")
    cache = tmp_path / "cache"
    with pytest.raises(WorkflowUnusable, match="not installed yet"):
        WorkflowSource.read(str(folder), packages=str(cache))

    first = requirements.install(["tiny==1.0"], cache)
    assert first is not None
    listed = json.loads((first.parent / requirements.LIST_FILE).read_text())
    moment = (first / "tiny.py").stat().st_mtime_ns
    assert requirements.install(["tiny==1.0"], cache) == first
    runner = WorkflowRunner(WorkflowSource.read(str(folder), packages=str(cache)), LIMITS)
    try:
        assert listed["packages"] == ["tiny-1.0"]
        assert (first / "tiny.py").stat().st_mtime_ns == moment
        assert play(runner, do="package").reward == 42.0
        assert play(runner, do="count", item="apples").reward == 7.0
        with pytest.raises(SessionFailed, match="No module named 'numpy'"):
            play(runner, do="missing")
    finally:
        runner.close()


@pytest.mark.usefixtures("offline")
def test_what_cannot_be_installed_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(requirements.NotInstalled, match="No matching distribution found for nowhere-to-be"):
        requirements.install(["nowhere-to-be"], tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_what_is_too_large_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(requirements.NotInstalled, match="larger than 0 MiB"):
        requirements.install(["tiny"], tmp_path, max_bytes=1)


# -- what a session may use beside the policy

SERVICES = """
async def workflow(task, model, auxiliary_models=None):
    await model([{"role": "user", "content": "hello"}])
    if task["do"] == "tools":
        tools = model.tools("sums")
        found = await tools.calculate(expression="6 * 7")
        refused = await tools.call("calculate", {"expression": "6 +"})
        unknown = await tools.call("none")
        assert refused.error == "BAD_EXPRESSION" and unknown.error == "UNKNOWN_TOOL", (refused, unknown)
        assert tools.schemas[0]["function"]["name"] == "calculate", tools.schemas
        assert [each.__name__ for each in tools] == ["calculate", "finish"]
        return float(found)
    if task["do"] == "other":
        reply = await auxiliary_models["critic"]([{"role": "user", "content": "9?"}], temperature=0.5)
        return float(reply.text)
    if task["do"] == "none":
        return float(len(model.tools("others").schemas))
    return float((await model.fetch(task["url"])).json()["value"])
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from trellis_train.agents import environments

    folder = tmp_path_factory.mktemp("sums")
    environments.make("maths", folder, {"train": 1, "eval": 1})
    return folder


def play_with(services: Services, tmp_path: Path, **task: Any) -> SessionResult:
    (tmp_path / "workflow.py").write_text(SERVICES)
    runner = WorkflowRunner(WorkflowSource.read(str(tmp_path / "workflow.py")), LIMITS, services)
    try:
        return play(runner, **task)
    finally:
        runner.close()


def test_a_workflow_calls_the_tools_of_an_environment(environment: Path, tmp_path: Path) -> None:
    services = Services({"sums": environment})
    assert play_with(services, tmp_path, do="tools").reward == 42.0


def test_an_environment_that_the_job_lacks_is_named(environment: Path, tmp_path: Path) -> None:
    with pytest.raises(SessionFailed, match="no environment 'others'; it has sums"):
        play_with(Services({"sums": environment}), tmp_path, do="none")


def test_hosts_are_closed_unless_the_owner_grants_them(tmp_path: Path) -> None:
    with pytest.raises(SessionFailed, match=r"127.0.0.1 is not allowed .*TRELLIS_WORKFLOW_HOSTS"):
        play_with(NO_SERVICES, tmp_path, do="fetch", url="http://127.0.0.1:9/x")


def test_a_granted_host_and_another_model_are_asked(tmp_path: Path, chat_server: Any) -> None:
    host = f"127.0.0.1:{chat_server.port}"
    services = Services(
        auxiliary={"critic": ChatEndpoint(base_url=f"http://{host}/v1", model="critic-1", timeout_s=10)},
        keys={"critic": "the key"},
        hosts=frozenset({host}),
    )
    assert play_with(services, tmp_path, do="other").reward == 9.0
    assert play_with(services, tmp_path, do="fetch", url=f"http://{host}/value").reward == 5.0
    asked, headers = chat_server.asked[0]
    assert (asked["model"], asked["temperature"]) == ("critic-1", 0.5)
    assert headers["Authorization"] == "Bearer the key"


def test_other_models_are_asked_once_before_a_training(chat_server: Any) -> None:
    here = ChatEndpoint(base_url=f"http://127.0.0.1:{chat_server.port}/v1", model="m", timeout_s=5)
    away = ChatEndpoint(base_url="http://127.0.0.1:9/v1", model="m", timeout_s=5)

    asyncio.run(Services(auxiliary={"critic": here}).warm_up())

    assert chat_server.asked[0][0]["max_tokens"] == 1
    with pytest.raises(ServicesUnusable, match=r"auxiliary model 'gone' cannot be used: .*is not responding"):
        asyncio.run(Services(auxiliary={"gone": away}).warm_up())


def test_the_schemas_inside_are_those_of_the_environment(environment: Path) -> None:
    (tools,) = Services({"sums": environment}).constants["ENVIRONMENTS"].values()
    assert [ToolSchema.model_validate(tool).name for tool in tools] == ["calculate", "finish"]


JUDGED = """
from trellis import JudgeOutput, WorkflowOutput


async def workflow(task, model, auxiliary_models=None):
    draft = await model([{"role": "user", "content": task["question"]}])
    review = await auxiliary_models["critic"]([{"role": "user", "content": f"Review {draft.text}"}])
    return WorkflowOutput(response=f"{draft.text}, reviewed: {review.text}", metrics={"drafts": 1})


async def judge(task, response, auxiliary_models=None):
    mark = await auxiliary_models["grader"]([{"role": "user", "content": response}], temperature=0.0)
    return JudgeOutput(reward=float(mark.text) / 10, metrics={"graded": 1})
"""


def judged_session(tmp_path: Path, critic: ChatEndpoint, grader: ChatEndpoint) -> SessionResult:
    (tmp_path / "judged.py").write_text(JUDGED)
    services = Services(auxiliary={"critic": critic, "grader": grader}, keys={"grader": "the key"})
    runner = WorkflowRunner(WorkflowSource.read(str(tmp_path / "judged.py")), LIMITS, services)
    try:
        return play(runner)
    finally:
        runner.close()


def test_a_workflow_and_its_judge_each_ask_a_model_of_their_own(tmp_path: Path, chat_server: Any) -> None:
    address = f"http://127.0.0.1:{chat_server.port}/v1"
    critic = ChatEndpoint(base_url=address, model="critic-1", timeout_s=10)
    grader = ChatEndpoint(base_url=address, model="grader-1", timeout_s=10)

    found = judged_session(tmp_path, critic, grader)

    assert found == SessionResult(0.9, {"drafts": 1.0, "graded": 1.0}, "7, reviewed: 9")
    (reviewed, without_key), (graded, with_key) = chat_server.asked
    assert (reviewed["model"], reviewed["messages"][0]["content"]) == ("critic-1", "Review 7")
    assert (graded["model"], graded["messages"][0]["content"]) == ("grader-1", "7, reviewed: 9")
    assert graded["temperature"] == 0.0
    assert "Authorization" not in without_key
    assert with_key["Authorization"] == "Bearer the key"


def test_a_judge_whose_model_is_away_fails_its_session(tmp_path: Path, chat_server: Any) -> None:
    critic = ChatEndpoint(base_url=f"http://127.0.0.1:{chat_server.port}/v1", model="c", timeout_s=10)
    away = ChatEndpoint(base_url="http://127.0.0.1:9/v1", model="g", timeout_s=2)

    with pytest.raises(SessionFailed, match="the model grader is not responding"):
        judged_session(tmp_path, critic, away)
