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

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $1"; [ $# -lt 2 ] || say "$2"; exit 1; }
is_root_capable() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# -- system packages: installed where that needs no password, otherwise named
ensure_packages() { # what for, package...
  local purpose=$1; shift
  if command -v apt-get >/dev/null && is_root_capable; then
    say "installing $* ($purpose)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
      { as_root apt-get update -qq >/dev/null && as_root env DEBIAN_FRONTEND=noninteractive \
          apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } ||
      die "could not install $* ($purpose)" "install it by hand: apt-get install $*"
  else
    die "$purpose: $* is missing" "run: sudo apt-get install -y $*"
  fi
}

find_python() {
  local candidate
  for candidate in "${TRELLIS_PYTHON:-}" python3.11 python3.12 python3; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or 3.12 with venv is needed" \
    "Debian 12: sudo apt-get install -y python3 python3-venv; Ubuntu 24.04: sudo apt-get install -y python3.12 python3.12-venv"
}

# -- Python packages: a stamp holds the hash of the lock that is installed
choose_lock() {
  case "$flavour" in
    cpu | gpu) echo "$here/requirements/$flavour.lock" ;;
    *) if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo "$here/requirements/gpu.lock"; else echo "$here/requirements/cpu.lock"; fi ;;
  esac
}

# Without dependencies: the lock names every package that is needed.
pip_install() { "$python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps "$@"; }

ensure_python_packages() {
  local lock name stamp wanted found
  lock=$(choose_lock)
  name=$(basename "$lock")
  stamp="$venv/trellis-lock"
  wanted="$name $(cat "$lock" "$here/pyproject.toml" | sha256sum | cut -d' ' -f1) $here"
  [ -x "$python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return
  if ! [ -x "$python" ] || ! "$python" -c '' 2>/dev/null; then
    found=$(find_python)
    say "making $venv with $found"
    mkdir -p "$(dirname "$venv")"
    "$found" -m venv --clear "$venv"
    [ "$venv" = "$here/.venv" ] || ln -sfn "$venv" "$here/.venv"
  fi
  say "installing $name ($(grep -c == "$lock") packages; minutes the first time)"
  local index=()
  [ -z "${TRELLIS_TORCH_INDEX_URL:-}" ] || index=(--extra-index-url "$TRELLIS_TORCH_INDEX_URL")
  # What builds from source (Hydra's parser, flash-attn) uses the pinned setuptools, and torch where it asks for it.
  pip_install -r <(grep -E '^(setuptools|torch)==' "$lock") "${index[@]}"
  if [ "$name" = cpu.lock ] && ! "$python" -c 'import importlib.metadata as m, sys; sys.exit("+cpu" not in m.version("torch"))'; then
    die "pip found PyTorch's CUDA build, which does not run without its CUDA packages" \
      "set TRELLIS_TORCH_INDEX_URL to PyTorch's own index of CPU wheels (its 'Get started' page shows the address for pip and CPU), remove $venv, and run this again"
  fi
  pip_install wheel
  if [ "$name" = gpu.lock ]; then
    pip_install -r <(grep -vE '^flash-attn==' "$lock")
    pip_install --no-build-isolation -r <(grep -E '^flash-attn==' "$lock") ||
      die "flash-attn could not be built" "it needs the CUDA toolkit that fits the installed torch (nvcc on PATH) and a C++ compiler"
  else
    pip_install -r "$lock" "${index[@]}"
  fi
  pip_install --no-build-isolation -e "$here"
  printf '%s' "$wanted" >"$stamp"
}

# -- dashboard: built again when a source file changed
has_node() { command -v node >/dev/null && command -v npm >/dev/null && [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ]; }

hash_files() { (cd "$here/frontend" && find "$@" -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1); }

ensure_frontend() {
  [ -f "$here/frontend/package.json" ] || return 0
  has_node || die "Node.js 20 or newer with npm builds the dashboard" \
    "install it from your distribution where it is new enough (node --version), or from Node's own packages"
  local modules="$here/frontend/node_modules/.trellis-lock" built="$here/frontend/dist/.trellis-source" wanted
  wanted=$(hash_files package-lock.json)
  if [ ! -f "$modules" ] || [ "$(cat "$modules")" != "$wanted" ]; then
    say "installing the dashboard's packages"
    # Not `npm ci`: it refuses a lock that lacks another system's binaries, which some registries do not carry.
    (cd "$here/frontend" && npm install --no-save --no-audit --no-fund --loglevel=error >/dev/null)
    printf '%s' "$wanted" >"$modules"
  fi
  wanted=$(hash_files src public index.html api.html package-lock.json vite.config.ts tsconfig.json tsconfig.app.json)
  if [ ! -f "$built" ] || [ "$(cat "$built")" != "$wanted" ]; then
    say "building the dashboard"
    (cd "$here/frontend" && npm run --silent build -- --logLevel warn >&2)
    printf '%s' "$wanted" >"$built"
  fi
}

# -- isolation of persons' own code; without it rewards that run code are refused, and nothing else is
ensure_sandbox() {
  command -v bwrap >/dev/null && return
  if command -v apt-get >/dev/null && is_root_capable; then
    (ensure_packages "sandbox for rewards that run code" bubblewrap) || say "rewards that run code stay off"
  else
    say "rewards that run code stay off until bubblewrap is installed: sudo apt-get install -y bubblewrap"
  fi
}

# -- what only the tests and checks need
ensure_test_tools() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || ensure_packages "browser tests" chromium
  fc-list 2>/dev/null | grep -qi 'cjk' || ensure_packages "Chinese text in browser tests" fontconfig fonts-noto-cjk
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

[ -w "$here" ] || die "$here cannot be written" "run as the user who owns it, or copy the checkout"
# One set-up at a time: two that run together would install over each other.
exec 9<"$here"
flock 9
ensure_python_packages
case "$1" in
  down | status | logs | login | --help | jobs | data | datasets | pipelines | models | recipes | rewards | eval | benchmarks | reports) ;;
  *) ensure_frontend; ensure_sandbox ;;
esac
case "$1" in
  check | test | verify) ensure_test_tools ;;
esac
exec 9<&-

# The default data root lies in the checkout, wherever this is called from.
export TRELLIS_DATA_ROOT="${TRELLIS_DATA_ROOT:-$here/data}"
exec "$python" -m trellis_cli "$@"
