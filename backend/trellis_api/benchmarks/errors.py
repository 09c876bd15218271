"""What can go wrong with benchmarks."""

from trellis_api.core.errors import Conflict, NotFound


class BenchmarkNotFound(NotFound):
    """The catalogue has no such benchmark."""

    code = "benchmark_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Benchmark '{name}' not found.", {"benchmark": name})


class BenchmarkNotInstallable(Conflict):
    """Its files are here, or on their way."""

    code = "benchmark_not_installable"


class BenchmarkInUse(Conflict):
    """An evaluation that is not over reads the files that would be replaced."""

    code = "benchmark_in_use"


class BenchmarkMissing(Conflict):
    """The files of the benchmark are not here; the message says why."""

    code = "benchmark_missing"
