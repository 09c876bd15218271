"""Run `uv pip` with the settings that pip has: python uv_pip.py UV install PACKAGE...

uv reads neither pip's configuration files nor its PIP_ variables, and a machine that pip is set up for should
need nothing more. Only the standard library is used: this runs before anything is installed.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Later ones win, as in pip.
SECTIONS = ("global", "install", ":env:")
#: pip's certificates come from here, too, where its own setting is not given.
CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def read_settings(listing: str) -> dict[str, str]:
    """Parse the output of `pip config list` into the settings that apply to `pip install`."""
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        name, separator, text = line.partition("=")
        section, _, key = name.rpartition(".")
        if not separator or section not in SECTIONS:
            continue
        rank, value = SECTIONS.index(section), str(ast.literal_eval(text)).strip()
        if value and rank >= found.get(key, (0, ""))[0]:
            found[key] = (rank, value)
    return {key: value for key, (_, value) in found.items()}


def options(settings: dict[str, str]) -> Iterator[str]:
    """Yield uv's options for where packages come from."""
    # pip takes the best version of all indexes, uv by itself that of the first index that knows the name.
    yield "--index-strategy=unsafe-best-match"
    if settings.get("no-index", "").lower() in ("1", "true", "t", "yes", "y", "on"):
        yield "--no-index"
    else:
        if "index-url" in settings:
            yield f"--default-index={settings['index-url']}"
        for index in settings.get("extra-index-url", "").split():
            yield f"--index={index}"
    for location in settings.get("find-links", "").split():
        if (found := find_location(location)) is not None:
            yield f"--find-links={found}"
    for host in settings.get("trusted-host", "").split():
        yield f"--allow-insecure-host={host}"


def find_location(location: str) -> str | None:
    """Convert a `find-links` location for uv; None if it does not exist: uv, unlike pip, would fail."""
    if location.startswith("file:"):
        path = Path(unquote(urlsplit(location).path))
    elif "://" in location:
        return location
    else:
        path = Path(location).expanduser()
    if not path.exists():
        print(f"{location} of pip's find-links is ignored: it does not exist", file=sys.stderr)
        return None
    return str(path) if path.is_dir() else path.absolute().as_uri()


def variables(settings: dict[str, str]) -> dict[str, str]:
    """Return uv's variables for the network and its cache; those set for uv itself are kept."""
    found: dict[str, str] = {}
    given = (settings.get("cert"), *map(os.environ.get, CERTIFICATE_VARIABLES))
    if certificates := next(filter(None, given), None):
        found["SSL_CERT_DIR" if Path(certificates).is_dir() else "SSL_CERT_FILE"] = certificates
    if "client-cert" in settings:
        found["SSL_CLIENT_CERT"] = settings["client-cert"]
    if "proxy" in settings:
        found |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), settings["proxy"])
    if timeout := settings.get("timeout") or settings.get("default-timeout"):
        found["UV_HTTP_TIMEOUT"] = str(int(float(timeout)))
    folder = cache_folder()
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        found["UV_NO_CACHE"] = "1"
    elif folder.stat().st_dev != Path(sys.prefix).stat().st_dev:
        # Files cannot be linked from there; uv would copy them after a warning.
        found["UV_LINK_MODE"] = "copy"
    return {
        name: value for name, value in found.items() if not (name.startswith("UV_") and name in os.environ)
    }


def cache_folder() -> Path:
    """Where uv's cache is or would be made: the nearest folder that exists."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(os.environ.get("UV_CACHE_DIR") or Path(base, "uv")).absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def main() -> None:
    """Become uv."""
    uv, command, *rest = sys.argv[1:]
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    settings = read_settings(listing)
    given = [uv, "pip", command, "--python", sys.executable, *options(settings), *rest]
    os.execve(uv, given, {**os.environ, **variables(settings)})  # noqa: S606


if __name__ == "__main__":
    main()
