"""What hostile code tries in the sandbox: each attempt is contained and told, and the next call works."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from trellis_train.sandbox import command, session
from trellis_train.sandbox.errors import CodeNotLoaded, SandboxError, SandboxUnavailable
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.program import run_program
from trellis_train.sandbox.session import SandboxSession

LIMITS = Limits(wall_s=2.0, memory_bytes=256 * MIB)
HARMLESS = {"prompt": "p", "response": "harmless", "answer": "", "row": {}}
WRITE_EVERYWHERE = """
import os
for number in range(3, 2000):
    try:
        os.write(number, {})
    except OSError:
        pass
"""
HOSTILE = {**HARMLESS, "response": "hostile"}


def session_of(attack: str, *, before: str = "") -> SandboxSession:
    """A file that attacks when the response says so, and scores 1 otherwise."""
    body = "\n".join(f"        {line}" for line in attack.strip().splitlines())
    code = f"""
{before}
def score(prompt, response, answer, row):
    if response == "hostile":
{body}
    return 1.0
"""
    return SandboxSession(code.encode(), mode="score", limits=LIMITS)


def attack(code: str, *, before: str = "") -> object:
    """The answer or the error of a hostile call; the call after it must work."""
    sandbox = session_of(code, before=before)
    try:
        try:
            found: object = sandbox.call(HOSTILE)["value"]
        except SandboxError as error:
            found = error
        assert sandbox.call(HARMLESS)["value"] == 1.0
        return found
    finally:
        sandbox.close()


def test_it_scores() -> None:
    assert attack("return len(response) / 2") == 3.5


def test_the_network_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        found = attack(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)")

    assert "not permitted" in str(found)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        "/root/.bashrc",
        "/home",
        "/proc/1/environ",
        "/proc/self/maps",
        "/var/lib",
    ],
)
def test_the_system_s_own_files_are_not_there(path: str) -> None:
    found = attack(f"import os\nreturn float(os.path.exists({path!r}))")

    assert found == 0.0


def test_the_data_root_and_this_checkout_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "admin.token"
    secret.write_text("secret")
    for path in (secret, Path(__file__)):
        assert isinstance(attack(f"return float(open({str(path)!r}).read() != '')"), SandboxError)


def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "secret")

    assert attack("import os\nreturn float('JUDGE_KEY' in os.environ)") == 0.0


@pytest.mark.parametrize("path", ["/usr/own", "/own", "/sandbox/code.py", "/dev/shm/own", "/etc/own"])
def test_nothing_but_its_own_tmp_can_be_written(path: str) -> None:
    assert isinstance(attack(f"open({path!r}, 'w').write('x')"), SandboxError)


def test_its_tmp_is_small_and_its_own() -> None:
    found = attack("open('/tmp/large', 'wb').write(b'x' * 64 * 1024 * 1024)")

    assert isinstance(found, SandboxError)
    assert not Path("/tmp/large").exists()


def test_many_small_files_do_not_fill_memory() -> None:
    code = "for number in range(64):\n    open(f'/tmp/{number}', 'wb').write(b'x' * 1024 * 1024)"

    assert "No space left" in str(attack(code))


@pytest.mark.parametrize(
    "bomb",
    [
        "import os\nwhile True: os.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "import os\nos.posix_spawn('/bin/true', ['true'], {})",
    ],
)
def test_no_process_can_be_started(bomb: str) -> None:
    found = attack(bomb)

    assert isinstance(found, SandboxError)
    assert "not permitted" in str(found) or "denied" in str(found).lower() or "Error" in str(found)


def test_threads_are_bounded_by_memory() -> None:
    start = "threading.Thread(target=time.sleep, args=(9,)).start()"
    code = f"import threading, time\nfor _ in range(10_000): {start}"

    assert isinstance(attack(code), SandboxError)


def test_memory_is_bounded() -> None:
    found = attack("return float(len(b'x' * (1 << 30)))")

    assert "MemoryError" in str(found)


def test_an_endless_loop_is_ended_in_time() -> None:
    started = time.monotonic()

    found = attack("while True: pass")

    assert "too long" in str(found)
    assert time.monotonic() - started < LIMITS.wall_s + 8


def test_a_loop_in_a_thread_left_behind_does_not_hold_up_the_next_call() -> None:
    code = "import threading\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()"

    assert attack(code) == 1.0


@pytest.mark.parametrize("way", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.abort()", "os.close(4)"])
def test_ending_the_process_is_an_error_and_no_score(way: str) -> None:
    found = attack(f"import os\n{way}")

    assert isinstance(found, SandboxError) or found == 1.0


def test_sys_exit_is_an_error() -> None:
    assert "SystemExit" in str(attack("import sys\nsys.exit(0)"))


def test_what_is_printed_is_no_answer() -> None:
    forged = (
        'print(\'{"id": 1, "value": 99.0}\', flush=True)\nprint(\'{"id": 2, "value": 99.0}\', flush=True)'
    )

    assert attack(forged) == 1.0


def test_what_is_read_is_nothing() -> None:
    assert attack("import sys\nreturn float(sys.stdin.read() == '')") == 1.0


def test_nonsense_where_answers_belong_is_an_error() -> None:
    assert "invalid data to the result pipe" in str(attack(WRITE_EVERYWHERE.format(r"b'not json\n'")))


def test_nesting_without_end_where_answers_belong_is_an_error() -> None:
    assert "invalid data to the result pipe" in str(attack(WRITE_EVERYWHERE.format(r"b'[' * 60_000 + b'\n'")))


def test_a_flood_where_answers_belong_is_an_error() -> None:
    assert isinstance(attack(WRITE_EVERYWHERE.format("b'x' * 200_000")), SandboxError)


def test_huge_output_neither_blocks_nor_fills_memory() -> None:
    assert attack("for _ in range(200): print('x' * 100_000)") == 1.0


@pytest.mark.parametrize("value", ["'1'", "None", "[1]", "{'score': 'x'}"])
def test_a_value_that_is_no_number_is_an_error(value: str) -> None:
    assert "not a number" in str(attack(f"return {value}"))


def test_an_exception_is_told_with_its_line() -> None:
    found = str(attack("raise ValueError('no such unit')"))

    assert "ValueError: no such unit (line 5)" in found


def test_an_exception_whose_text_raises_is_told_too() -> None:
    before = "class Mean(Exception):\n    def __str__(self): raise RuntimeError"

    assert "Mean" in str(attack("raise Mean", before=before))


def test_deep_recursion_is_an_error() -> None:
    assert isinstance(attack("def f(): return f()\nreturn f()"), SandboxError)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def score(:", "SyntaxError"),
        ("x = 1", "no function score"),
        ("raise KeyError('at import')", "KeyError"),
        ("while True: pass", "too long"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
)
def test_a_file_that_does_not_load_is_told(code: str, message: str) -> None:
    sandbox = SandboxSession(code.encode(), mode="score", limits=LIMITS)

    with pytest.raises(CodeNotLoaded, match=message):
        sandbox.call(HARMLESS)


def test_calls_from_threads_do_not_mix() -> None:
    sandbox = session_of("return 0.0", before="")
    values: list[float] = []

    def ask() -> None:
        values.extend(sandbox.call(HARMLESS)["value"] for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sandbox.close()

    assert values == [1.0] * 200


def test_libraries_of_the_platform_can_be_imported() -> None:
    assert attack("import numpy\nreturn float(numpy.float32(0.5))") == 0.5


def test_the_process_dies_with_its_parent() -> None:
    program = (
        "import os, sys\n"
        "from trellis_train.sandbox.session import SandboxSession\n"
        "from trellis_train.sandbox.limits import Limits\n"
        "code = b'def score(*_): return 1.0'\n"
        "s = SandboxSession(code, mode='score', limits=Limits())\n"
        "s.call({'prompt': '', 'response': '', 'answer': '', 'row': {}})\n"
        "print(s._process._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    pid = int(done.stdout)

    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.shutil, "which", lambda _name: None)
    command.require_sandbox.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="bubblewrap"):
            SandboxSession(b"def score(*_): return 1", mode="score", limits=LIMITS)
    finally:
        command.require_sandbox.cache_clear()


def test_where_namespaces_are_refused_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command.require_sandbox.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace"):
            session.require_sandbox()
    finally:
        command.require_sandbox.cache_clear()


@pytest.mark.parametrize(
    ("code", "given", "output", "is_clean"),
    [
        ("print(int(input()) + 1)", "41\n", "42\n", True),
        ("while True: pass", "", "", False),
        ("raise SystemExit(3)", "", "", False),
        ("import os; os.fork()", "", "", False),
    ],
)
def test_programs(code: str, given: str, output: str, is_clean: bool) -> None:
    outcome = run_program(code.encode(), standard_input=given, limits=LIMITS)

    assert (outcome.output, outcome.is_clean) == (output, is_clean)


def test_a_program_that_prints_too_much_is_not_clean() -> None:
    outcome = run_program(b"print('x' * 10_000_000)", standard_input="", limits=LIMITS)

    assert outcome.is_cut
    assert len(outcome.output) <= LIMITS.output_bytes
