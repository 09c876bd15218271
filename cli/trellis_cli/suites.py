"""How the project's tests are started: each folder of ``tests`` is a suite with a process of its own."""

from collections.abc import Iterable, Mapping

#: How many times as long the tests wait for what they expect (``trellis_testing.waiting``).
PATIENCE_VARIABLE = "TRELLIS_TEST_PATIENCE"
#: What lets suites share the cores. A thread of OpenMP that spins while it waits takes the core from the one
#: it waits for, and Ray's workers, less urgent than all else by default, stand still beside busy tests.
SHARING: Mapping[str, str] = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "RAY_worker_niceness": "0",
    PATIENCE_VARIABLE: "2",
}


def group_by_suite(tests: Iterable[str]) -> dict[str, list[str]]:
    """Tests (``tests/cli/test_gate.py::test_it``, files, folders) by suite, without those others hold."""
    wanted = set(tests)
    suites: dict[str, list[str]] = {}
    for test in sorted(wanted):
        if not any(_holds(other, test) for other in wanted):
            suites.setdefault("/".join(test.partition("::")[0].split("/")[:2]), []).append(test)
    return suites


def _holds(place: str, test: str) -> bool:
    """Whether ``place`` is a folder, file or class of ``test``, or the test without its parameters."""
    return test.startswith((f"{place}/", f"{place}::", f"{place}["))
