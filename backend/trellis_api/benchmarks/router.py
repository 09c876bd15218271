"""``/benchmarks``: what models can be measured on, and bringing the files."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Path
from trellis_contracts.tasks import INSTALL_BENCHMARKS

from trellis_api.benchmarks import service
from trellis_api.benchmarks.schemas import BenchmarkRead, BenchmarksRead
from trellis_api.core.dependencies import ReadSession, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES

router = APIRouter(prefix="/benchmarks", tags=["benchmarks"], responses={401: ERROR_RESPONSES[401]})
BenchmarkName = Annotated[str, Path(description="Of the catalogue.", pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


@router.get("", summary="The catalogue of benchmarks")
def list_benchmarks(session: ReadSession) -> BenchmarksRead:
    """List all benchmarks, with their installation state."""
    return BenchmarksRead(items=service.read_all(session))


@router.get("/{benchmark_name}", summary="Read a benchmark", responses={404: ERROR_RESPONSES[404]})
def read_benchmark(benchmark_name: BenchmarkName, session: ReadSession) -> BenchmarkRead:
    """Return one benchmark of the catalogue."""
    return service.read_one(session, name=benchmark_name)


@router.post(
    "/{benchmark_name}/install",
    status_code=202,
    summary="Install a benchmark",
    responses={404: ERROR_RESPONSES[404], 409: ERROR_RESPONSES[409]},
)
def install_benchmark(
    benchmark_name: BenchmarkName, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> BenchmarkRead:
    """Install from the Hub or its local mirror; also to retry or to update to a newer revision."""
    benchmark = service.request_install(session, name=benchmark_name)
    tasks.send_later(background, INSTALL_BENCHMARKS)
    return benchmark
