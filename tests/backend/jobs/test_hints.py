"""Every cause that a run can report has a hint, in both languages."""

import re
from pathlib import Path

from trellis_api.jobs.failures.hints import HINTS, find_hint

ROOT = Path(__file__).resolve().parents[3]


def test_every_known_cause_of_the_supervisor_has_a_hint() -> None:
    source = (ROOT / "verl" / "trellis_train" / "supervise" / "failure_causes.py").read_text()
    causes = set(re.findall(r'_known\(\s*"(\w+)"', source))

    assert len(causes) > 10
    assert causes - HINTS.keys() == set()


def test_hints_speak_both_languages() -> None:
    for cause, hint in HINTS.items():
        assert re.search(r"[a-z]{3}", hint.en), cause
        assert re.search(r"[\u4e00-\u9fff]{3}", hint.zh), cause


def test_a_missing_package_is_avoided_by_a_clone_since_a_resume_keeps_the_settings() -> None:
    hint = HINTS["missing_package"]

    assert "to do without the package, clone the job" in hint.en
    assert "TRELLIS_FLASH_ATTENTION=false" in hint.en
    assert "请复制任务" in hint.zh


def test_an_unknown_cause_has_none() -> None:
    assert find_hint("something new") is None
    assert find_hint(None) is None
