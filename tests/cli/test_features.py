"""feature_list.json claims what tests have shown, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import verify
from trellis_cli.errors import Problem

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a.test_one" name="test_good"/>
<testcase classname="tests.a.test_one" name="test_cases[x]"/>
<testcase classname="tests.a.test_one" name="test_cases[y]"/>
<testcase classname="tests.a.test_two" name="test_bad"><failure/></testcase>
<testcase classname="tests.a.test_two" name="test_left_out"><skipped/></testcase>
<testcase classname="tests.proof.test_long" name="test_later"><skipped message="whole set: x"/></testcase>
</testsuite></testsuites>"""


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
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


def write(tmp_path: Path, *features: dict[str, Any]) -> Path:
    path = tmp_path / "features.json"
    path.write_text(json.dumps(features))
    return path


def test_the_list_holds_the_22_features() -> None:
    features = verify.read_features()

    assert len(features) == 22
    assert {each["priority"] for each in features} == {"critical", "high", "medium", "low"}


def test_every_named_test_exists() -> None:
    for each in verify.read_features():
        for test in each["tests"]:
            file, _, name = test.partition("::")
            path = verify.REPOSITORY_ROOT / file
            assert path.exists(), f"{each['id']}: {file}"
            assert not name or f"def {name.split('::')[-1].split('[')[0]}(" in path.read_text(), test


def test_a_claim_that_its_tests_show_stands(tmp_path: Path, report: Path) -> None:
    shown = feature(tests=["tests/a/test_one.py::test_good", "tests/a/test_one.py::test_cases"])

    assert verify.find_false_claims([report], write(tmp_path, shown)) == []


def test_a_proof_left_to_the_whole_set_is_not_judged_here(tmp_path: Path, report: Path) -> None:
    claimed = feature(tests=["tests/a/test_one.py::test_good", "tests/proof/test_long.py"])

    assert verify.find_false_claims([report], write(tmp_path, claimed)) == []


@pytest.mark.parametrize(
    "test",
    [
        "tests/a/test_two.py::test_bad",
        "tests/a/test_two.py::test_left_out",
        "tests/a/test_two.py",
        "tests/a/test_one.py::test_never_run",
    ],
)
def test_a_claim_beyond_its_tests_is_found(tmp_path: Path, report: Path, test: str) -> None:
    claimed = feature(tests=["tests/a/test_one.py::test_good", test])

    assert verify.find_false_claims([report], write(tmp_path, claimed)) == ["X-001"]


def test_a_feature_that_claims_nothing_may_have_failing_tests(tmp_path: Path, report: Path) -> None:
    humble = feature(passes=False, tests=["tests/a/test_two.py::test_bad"])

    assert verify.find_false_claims([report], write(tmp_path, humble)) == []


def test_a_claim_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="names no test"):
        verify.read_features(write(tmp_path, feature(tests=[])))


def test_verify_writes_what_the_tests_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "REPOSITORY_ROOT", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
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

    is_good = verify.verify_features(["A", "B", "D"], path)

    assert not is_good
    assert {each["id"]: each["passes"] for each in json.loads(path.read_text())} == {
        "A": True,
        "B": False,
        "C": True,
        "D": False,
    }
