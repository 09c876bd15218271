"""`trellis verify`: feature_list.json says of a feature that it passes only after its tests have shown it."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import out
from trellis_cli.proof import EVERYTHING, SCOPE_VARIABLE
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.suites import SHARING, group_by_suite

FEATURE_LIST = REPOSITORY_ROOT / "feature_list.json"
#: How the reason begins for which tests/proof leaves a test to a run of the whole set.
POSTPONED = "whole set:"
CLAIM_FIELDS = ("id", "category", "priority", "description", "steps", "passes", "notes", "tests")


def read_features(path: Path = FEATURE_LIST) -> list[dict[str, Any]]:
    """The list, checked for its fields and for ids that occur twice."""
    features: list[dict[str, Any]] = json.loads(path.read_text())
    for feature in features:
        if missing := [name for name in CLAIM_FIELDS if name not in feature]:
            raise Problem(f"feature {feature.get('id')} lacks {', '.join(missing)}")
        if feature["passes"] and not feature["tests"]:
            raise Problem(f"feature {feature['id']} claims to pass and names no test")
    ids = [feature["id"] for feature in features]
    if len(set(ids)) != len(ids):
        raise Problem("feature_list.json holds an id twice")
    return features


def select(features: list[dict[str, Any]], wanted: list[str]) -> list[dict[str, Any]]:
    """The features with these ids; all for none."""
    unknown = set(wanted) - {feature["id"] for feature in features}
    if unknown:
        raise Problem(f"no such feature: {', '.join(sorted(unknown))}", exit_code=ExitCode.USAGE)
    return [feature for feature in features if not wanted or feature["id"] in wanted]


def verify_features(wanted: list[str], path: Path = FEATURE_LIST) -> bool:
    """Run the tests of features and write what they show; True when all of them pass."""
    features = read_features(path)
    selected = select(features, wanted)
    outcomes = run_tests({test for feature in selected for test in feature["tests"]})
    for feature in selected:
        feature["passes"] = judge(feature, outcomes)
    path.write_text(json.dumps(features, ensure_ascii=False, indent=2) + "\n")
    return all(feature["passes"] for feature in selected)


def find_false_claims(reports: list[Path], path: Path = FEATURE_LIST) -> list[str]:
    """Ids that claim to pass although a test that they name did not pass in these reports.

    A proof that was left to a run of the whole set is judged there, by ``verify_features``.
    """
    outcomes = {name: passed for report in reports for name, passed in read_outcomes(report).items()}
    return [
        feature["id"]
        for feature in read_features(path)
        if feature["passes"] and not all(is_shown(test, outcomes) for test in feature["tests"])
    ]


def is_shown(test: str, outcomes: dict[str, bool | None]) -> bool:
    """Whether a test, or every test of a file or folder, is in the report and passed or was postponed."""
    found = find_outcomes(test, outcomes)
    return bool(found) and all(has_passed is not False for has_passed in found)


def find_outcomes(test: str, outcomes: dict[str, bool | None]) -> list[bool | None]:
    """The outcomes of a test, or of every test of a file or folder."""
    file, _, name = test.partition("::")
    module = file.removesuffix(".py").replace("/", ".")
    wanted = ".".join([module, *name.split("::")]) if name else module
    return [
        has_passed
        for key, has_passed in outcomes.items()
        if key == wanted or key.startswith((f"{wanted}.", f"{wanted}["))
    ]


def run_tests(tests: Iterable[str]) -> dict[str, bool | None]:
    """Run every test once, each suite in a process of its own; the outcomes."""
    outcomes: dict[str, bool | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, chosen in enumerate(group_by_suite(tests).values()):
            report = Path(folder) / f"{number}.xml"
            subprocess.run(  # noqa: S603 - a fixed command
                python_command("-m", "pytest", "-q", f"--junitxml={report}", *chosen),
                cwd=REPOSITORY_ROOT,
                env={**os.environ, **SHARING, SCOPE_VARIABLE: EVERYTHING},
                stdout=sys.stderr,
                check=False,
            )
            outcomes |= read_outcomes(report)
    return outcomes


def judge(feature: dict[str, Any], outcomes: dict[str, bool | None]) -> bool:
    """Whether every test that the feature names was run and passed; a skipped one shows nothing."""
    if not feature["tests"]:
        out.print(f"[yellow]no tests[/yellow]  {feature['id']}")
        return False
    by_test = [find_outcomes(test, outcomes) for test in feature["tests"]]
    found = [has_passed for each in by_test for has_passed in each]
    is_good = all(by_test) and all(found)
    verdict = "[green]passes[/green]" if is_good else "[red]fails[/red]"
    out.print(f"{verdict}  {feature['id']}  {sum(map(bool, found))} of {len(found)} tests passed")
    return is_good


def read_outcomes(report: Path) -> dict[str, bool | None]:
    """Every test of pytest's JUnit report by dotted name, and whether it passed; a skipped one did not.

    None where it was left to a run of the whole set.
    """
    if not report.exists():
        return {}
    outcomes: dict[str, bool | None] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - written by pytest just now
        has_passed = all(case.find(tag) is None for tag in ("failure", "error", "skipped"))
        skipped = case.find("skipped")
        is_postponed = skipped is not None and (skipped.get("message") or "").startswith(POSTPONED)
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = None if is_postponed else has_passed
    return outcomes
