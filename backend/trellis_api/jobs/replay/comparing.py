"""Compares a run that would be launched now with what a manifest says of one."""

import importlib.metadata
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trellis_api.jobs.replay.schemas import ReplayDifference, ReplayManifest
from trellis_api.rewards.resources import FoundResources

#: Differences in the engine's configuration that are listed.
_MAX_SETTINGS = 100
_MAX_TEXT = 200
_JOB = re.compile(r"job_[a-z2-7]{12}")


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same as JSON, the format of manifests."""
    return _dump(one) == _dump(other)


def compare_settings(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[ReplayDifference]:
    """List keys of the engine's configuration that changed; file paths and job names don't count."""
    before, after = dict(_flatten(was)), dict(_flatten(now))
    differing = (
        ReplayDifference(what="setting", name=key, was=show(before.get(key)), now=show(after.get(key)))
        for key in sorted({*before, *after})
        if not is_same(before.get(key), after.get(key))
        and not (_is_place(before.get(key)) and _is_place(after.get(key)))
    )
    return list(differing)[:_MAX_SETTINGS]


def compare_machines(manifest: ReplayManifest, newest: Mapping[str, Any] | None) -> list[ReplayDifference]:
    """Compare packages, code and GPUs with those here and those of the newest run of this platform."""
    known = newest or {}
    differences = []
    # Runs may use a Python of their own: what one of them found there is asked first.
    found = known.get("packages")
    for name, was in sorted(manifest.packages.items()):
        now = _text(found, name) if isinstance(found, dict) and found else _find_version(name)
        if now != was:
            differences.append(ReplayDifference(what="package", name=name, was=was, now=now))
    commit = _text(known.get("git"), "commit")
    if manifest.git is not None and commit is not None and commit != manifest.git.commit:
        differences.append(ReplayDifference(what="code", name="commit", was=manifest.git.commit, now=commit))
    if manifest.git is not None and manifest.git.is_dirty:
        was = "uncommitted changes"
        differences.append(ReplayDifference(what="code", name="changes", was=was, now=None))
    hardware = known.get("hardware")
    gpus = hardware.get("gpus") if isinstance(hardware, dict) else None
    if isinstance(gpus, list) and gpus != manifest.hardware.gpus:
        pair = {"was": show(manifest.hardware.gpus), "now": show(gpus)}
        differences.append(ReplayDifference(what="hardware", name="gpus", **pair))
    return differences


def compare_rewards(was: Mapping[str, Any], now: FoundResources) -> list[ReplayDifference]:
    """Compare what scores responses: file contents, models, and the addresses and prompts of judges."""
    today: dict[tuple[str, str], dict[str, Any]] = {
        **{("files", name): {"sha256": file.sha256} for name, file in now.files.items()},
        **{("models", name): {"sha256": model.sha256} for name, model in now.models.items()},
        **{("judges", name): judge.model_dump(mode="json") for name, judge in now.judges.items()},
    }
    differences = []
    for (kind, name), value in sorted(today.items(), key=lambda each: each[0]):
        entries = was.get(kind)
        entry = entries.get(name) if isinstance(entries, dict) else None
        before = {key: entry.get(key) for key in value} if isinstance(entry, dict) else None
        if not is_same(before, value):
            place = f"{kind}.{name}"
            differences.append(ReplayDifference(what="reward", name=place, was=show(before), now=show(value)))
    return differences


def show(value: Any) -> str | None:
    """Format a value as a short text."""
    if value is None:
        return None
    text = value if isinstance(value, str) else _dump(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def _text(found: Any, key: str) -> str | None:
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _is_place(value: Any) -> bool:
    """Tell whether a value names a file, a folder or a job, also within a list."""
    if isinstance(value, list):
        return bool(value) and all(_is_place(each) for each in value)
    return isinstance(value, str) and (value.startswith("/") or _JOB.search(value) is not None)


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
