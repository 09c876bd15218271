"""feature_list.json claims what tests have shown: `./init.sh verify` writes it, every test run checks it."""

import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trellis_cli.errors import Problem
from trellis_cli.output import out
from trellis_cli.services.platform import REPOSITORY_ROOT

from trellis_tools.ci import results
from trellis_tools.ci.commands import pick, run_side_by_side
from trellis_tools.ci.junit import Case, read_cases
from trellis_tools.ci.report import show
from trellis_tools.ci.runner import group_by_suite, pytest_command

FEATURE_LIST = REPOSITORY_ROOT / "feature_list.json"
CLAIM_FIELDS = ("id", "category", "priority", "description", "steps", "passes", "notes", "tests")


def read_features(path: Path = FEATURE_LIST) -> list[dict[str, Any]]:
    """Read the feature list and check its fields and that ids are unique."""
    features: list[dict[str, Any]] = json.loads(path.read_text())
    for feature in features:
        if missing := [name for name in CLAIM_FIELDS if name not in feature]:
            raise Problem(f"feature {feature.get('id')} is missing {', '.join(missing)}")
        if feature["passes"] and not feature["tests"]:
            raise Problem(f"feature {feature['id']} is marked as passing but has no tests")
    ids = [feature["id"] for feature in features]
    if len(set(ids)) != len(ids):
        raise Problem("feature_list.json contains a duplicate ID")
    return features


def verify_features(wanted: list[str], path: Path = FEATURE_LIST, cwd: Path = REPOSITORY_ROOT) -> bool:
    """Run all tests of features; write what they show, on which commit and when. True when all pass."""
    features = read_features(path)
    selected = pick({feature["id"]: feature for feature in features}, wanted, "feature")
    cases = run_tests({test for feature in selected for test in feature["tests"]}, cwd)
    return _write(path, features, selected, cases, datetime.now(UTC), how="./init.sh verify {id}")


def record_features(
    wanted: list[str], path: Path = FEATURE_LIST, kept: Path = results.COMPLETE_FOLDER
) -> bool:
    """Write what the kept results of `test --all` on these very files show; no test runs. True when all pass.

    Raises:
        Problem: nothing was run on these files.
    """
    features = read_features(path)
    selected = pick({feature["id"]: feature for feature in features}, wanted, "feature")
    reports = sorted((kept / results.identify_tree()).glob("*.xml"))
    if not reports:
        raise Problem("no results of ./init.sh test --all on these very files", hint="./init.sh test --all")
    cases = [case for report in reports for case in read_cases(report)]
    # A part that runs again writes its report anew: the oldest says since when all of it holds.
    moment = datetime.fromtimestamp(min(report.stat().st_mtime for report in reports), UTC)
    return _write(path, features, selected, cases, moment, how="./init.sh test --all")


def _write(
    path: Path,
    features: list[dict[str, Any]],
    selected: list[dict[str, Any]],
    cases: list[Case],
    moment: datetime,
    *,
    how: str,
) -> bool:
    """Write `passes`, `verified` and `notes` of the selected features; True when all pass."""
    verified = {"commit": results.identify_tree(), "date": moment.date().isoformat()}
    for feature in selected:
        feature["passes"] = judge(feature, cases)
        feature["verified"] = verified
        feature["notes"] = _describe(feature, cases, how.format(id=feature["id"]))
    path.write_text(json.dumps(features, ensure_ascii=False, indent=2) + "\n")
    return all(feature["passes"] for feature in selected)


def _describe(feature: dict[str, Any], cases: list[Case], how: str) -> str:
    """Describe what was verified, when and how."""
    found = [case for test in feature["tests"] for case in find_cases(test, cases)]
    passed = sum(case.has_passed for case in found)
    bad = [test for test in feature["tests"] if not _is_shown(find_cases(test, cases))]
    verified = feature["verified"]
    failing = f"; not shown: {', '.join(bad)}" if bad else ""
    return (
        f"{passed} of {len(found)} tests passed on {verified['date']} ({verified['commit']}) with"
        f" {how}{failing}"
    )


def find_refuted(cases: Iterable[Case], path: Path = FEATURE_LIST, root: Path = REPOSITORY_ROOT) -> list[str]:
    """List features that claim to pass but have a test that is gone or failed, for a run of some tests."""
    ran = list(cases)
    return [
        feature["id"]
        for feature in read_features(path)
        if feature["passes"] and any(_is_refuted(test, ran, root) for test in feature["tests"])
    ]


def _is_refuted(test: str, cases: list[Case], root: Path) -> bool:
    return not exists(test, root) or any(case.has_failed for case in find_cases(test, cases))


def find_unproven(cases: Iterable[Case], path: Path = FEATURE_LIST) -> list[str]:
    """List features that claim to pass but have a test that did not pass, for a run of all tests."""
    ran = list(cases)
    return [
        feature["id"]
        for feature in read_features(path)
        if feature["passes"] and not all(_is_shown(find_cases(test, ran)) for test in feature["tests"])
    ]


def _is_shown(cases: list[Case]) -> bool:
    return bool(cases) and all(case.has_passed for case in cases)


def exists(test: str, root: Path = REPOSITORY_ROOT) -> bool:
    """Return whether a test, file or folder of tests exists; for a parametrized test, its function."""
    file, _, name = test.partition("::")
    path = root / file
    if not path.exists():
        return False
    return not name or f"def {name.split('::')[-1].split('[')[0]}(" in path.read_text()


def find_cases(test: str, cases: Iterable[Case]) -> list[Case]:
    """Find the cases of a test, or of every test in a file or folder."""
    file, _, name = test.partition("::")
    module = file.removesuffix(".py").replace("/", ".")
    wanted = ".".join([module, *name.split("::")]) if name else module
    return [
        case for case in cases if case.name == wanted or case.name.startswith((f"{wanted}.", f"{wanted}["))
    ]


def run_tests(tests: Iterable[str], cwd: Path = REPOSITORY_ROOT) -> list[Case]:
    """Run every test once, each suite in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = [
            replace(pytest_command(suite, chosen, folder / f"{number}.xml"), cwd=cwd)
            for number, (suite, chosen) in enumerate(group_by_suite(tests).items())
        ]
        run_side_by_side(commands, logs=folder, on_end=show)
        return [case for report in sorted(folder.glob("*.xml")) for case in read_cases(report)]


def judge(feature: dict[str, Any], cases: list[Case]) -> bool:
    """Judge whether every test that the feature names ran and passed; a skipped one proves nothing."""
    if not feature["tests"]:
        out.print(f"[yellow]no tests[/yellow]  {feature['id']}")
        return False
    by_test = [find_cases(test, cases) for test in feature["tests"]]
    found = [case for each in by_test for case in each]
    is_good = all(map(_is_shown, by_test))
    verdict = "[green]passes[/green]" if is_good else "[red]fails[/red]"
    passed = sum(case.has_passed for case in found)
    out.print(f"{verdict}  {feature['id']}  {passed} of {len(found)} tests passed")
    return is_good
