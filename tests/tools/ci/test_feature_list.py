"""feature_list.json claims what tests have shown, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import Problem
from trellis_tools.ci import features
from trellis_tools.ci.junit import Case

CASES = [
    Case("tests.a.test_one.test_good", 1, False, None),
    Case("tests.a.test_one.test_cases[x]", 1, False, None),
    Case("tests.a.test_one.test_cases[y]", 1, False, None),
    Case("tests.a.test_two.test_bad", 1, True, None),
    Case("tests.a.test_two.test_skipped", 0, False, "no such data"),
]


def feature(**fields: Any) -> dict[str, Any]:
    plain = {
        "id": "X-001",
        "category": "x",
        "priority": "low",
        "description": "",
        "steps": [],
        "passes": True,
        "notes": "",
        "tests": ["tests/a/test_one.py::test_good"],
    }
    return plain | fields


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the files of the tests that ran, and of one that did not."""
    folder = tmp_path / "tests" / "a"
    folder.mkdir(parents=True)
    (folder / "test_one.py").write_text("def test_good():\ndef test_cases():\n")
    (folder / "test_two.py").write_text("def test_bad():\ndef test_skipped():\n")
    (folder / "test_long.py").write_text("def test_later():\n")
    return tmp_path


def write(tmp_path: Path, *features: dict[str, Any]) -> Path:
    path = tmp_path / "features.json"
    path.write_text(json.dumps(features))
    return path


#: What is promised beside the 22 features of the beginning.
FURTHER = {"AGENT-001", "AGENT-002", "AGENT-003", "FLOW-001", "SDK-001", "MODEL-001"}


def test_the_list_holds_the_22_features_and_what_came_after() -> None:
    listed = features.read_features()

    assert len({each["id"] for each in listed} - FURTHER) == 22
    assert {each["id"] for each in listed} >= FURTHER
    assert {each["priority"] for each in listed} == {"critical", "high", "medium", "low"}


def test_every_named_test_exists() -> None:
    for each in features.read_features():
        for test in each["tests"]:
            assert features.exists(test), f"{each['id']}: {test}"


GOOD = "tests/a/test_one.py::test_good"


def test_a_claim_that_its_tests_show_stands(checkout: Path) -> None:
    path = write(checkout, feature(tests=[GOOD, "tests/a/test_one.py::test_cases"]))

    assert features.find_refuted(CASES, path, checkout) == []
    assert features.find_unproven(CASES, path) == []


def test_a_test_that_did_not_run_refutes_nothing_and_proves_nothing(checkout: Path) -> None:
    path = write(checkout, feature(tests=[GOOD, "tests/a/test_long.py"]))

    assert features.find_refuted(CASES, path, checkout) == []
    assert features.find_unproven(CASES, path) == ["X-001"]


@pytest.mark.parametrize(
    "test",
    ["tests/a/test_two.py::test_bad", "tests/a/test_two.py", "tests/a/test_one.py::test_gone", "tests/b"],
)
def test_a_failed_or_missing_test_refutes_a_claim(checkout: Path, test: str) -> None:
    path = write(checkout, feature(tests=[GOOD, test]))

    assert features.find_refuted(CASES, path, checkout) == ["X-001"]
    assert features.find_unproven(CASES, path) == ["X-001"]


def test_a_skipped_test_proves_nothing(checkout: Path) -> None:
    path = write(checkout, feature(tests=[GOOD, "tests/a/test_two.py::test_skipped"]))

    assert features.find_unproven(CASES, path) == ["X-001"]


def test_a_feature_that_claims_nothing_may_have_failing_tests(checkout: Path) -> None:
    path = write(checkout, feature(passes=False, tests=["tests/a/test_two.py::test_bad"]))

    assert features.find_refuted(CASES, path, checkout) == features.find_unproven(CASES, path) == []


def test_a_claim_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="has no tests"):
        features.read_features(write(tmp_path, feature(tests=[])))


REPORT = """<testsuites><testsuite>
<testcase classname="tests.fine.test_x" name="test_it" time="1"/>
<testcase classname="tests.broken.test_x" name="test_it" time="1"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def test_kept_results_of_all_tests_are_recorded_without_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "all" / features.results.identify_tree()
    folder.mkdir(parents=True)
    (folder / "one.fine.xml").write_text(REPORT)
    good, bad = "tests/fine/test_x.py", "tests/broken/test_x.py"
    path = write(tmp_path, feature(id="A", passes=False, tests=[good]), feature(id="B", tests=[good, bad]))

    is_good = features.record_features([], path, tmp_path / "all")

    written = json.loads(path.read_text())
    assert not is_good
    assert [each["passes"] for each in written] == [True, False]
    assert written[0]["notes"].startswith("1 of 1 tests passed on 20")
    assert written[0]["notes"].endswith("with ./init.sh test --all")
    assert written[1]["notes"].endswith("with ./init.sh test --all; not shown: tests/broken/test_x.py")


def test_without_kept_results_nothing_is_recorded(tmp_path: Path) -> None:
    path = write(tmp_path, feature())
    before = path.read_text()

    with pytest.raises(Problem, match="no results of"):
        features.record_features([], path, tmp_path / "all")

    assert path.read_text() == before


def test_verify_writes_what_the_tests_show(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:schemathesis\n")
    for suite, outcome in (("fine", True), ("broken", False)):
        folder = tmp_path / "tests" / suite
        folder.mkdir(parents=True)
        (folder / "test_x.py").write_text(f"def test_it():\n    assert {outcome}\n")
    good, bad = "tests/fine/test_x.py", "tests/broken/test_x.py::test_it"
    path = write(
        tmp_path,
        feature(id="A", passes=False, tests=[good]),
        feature(id="B", passes=True, tests=[good, bad]),
        feature(id="C", passes=True, tests=[bad]),
        feature(id="D", passes=True, tests=[good, "tests/fine/test_x.py::test_gone"]),
    )

    is_good = features.verify_features(["A", "B", "D"], path, cwd=tmp_path)

    assert not is_good
    written = json.loads(path.read_text())
    assert [each["id"] for each in written if "verified" in each] == ["A", "B", "D"]
    assert written[0]["verified"]["date"] >= "2026-11-25"
    assert written[0]["notes"].startswith("1 of 1 tests passed on 20")
    assert written[0]["notes"].endswith("with ./init.sh verify A")
    assert written[1]["notes"].endswith("verify B; not shown: tests/broken/test_x.py::test_it")
    assert written[2]["notes"] == ""
    assert {each["id"]: each["passes"] for each in written} == {
        "A": True,
        "B": False,
        "C": True,
        "D": False,
    }
