"""Seed rows, and a model on this machine whose replies follow from what it is asked."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.generation import Generation
from trellis_contracts.recipe import DataFormat
from trellis_data.generate.report import GenerationReport
from trellis_data.generate.run import generate
from trellis_data.layout import Layout
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint

LAYOUT = Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"})
_SUM = re.compile(r"(\d+) plus (\d+)")


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with running_chat_endpoint() as endpoint:
        endpoint.reply_to = add
        yield endpoint


def add(question: str) -> tuple[int, str]:
    """The sum that is asked for."""
    left, right = _SUM.findall(question)[-1]
    return 200, f"It is {int(left) + int(right)}."


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """Twenty additions with their results."""
    rows = [{"question": f"What is {n} plus {n * n}?", "answer": f"#### {n + n * n:,}"} for n in range(20)]
    path = tmp_path / "sums.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def settings(endpoint: ChatEndpoint) -> Callable[..., Generation]:
    """Settings for the model; ``method`` and anything else as named, ``endpoint`` in parts."""

    def build(method: dict[str, Any], **changes: Any) -> Generation:
        described = {
            "base_url": endpoint.url, "model": "writer", "requests_per_minute": 600_000,
            "input_price": 1.0, "output_price": 2.0, "timeout_s": 5.0, **changes.pop("endpoint", {}),
        }  # fmt: skip
        values = {"name": "made", "max_cost": 1.0, "retries": 2, "seed": 7, **changes}
        return Generation.model_validate({**values, "endpoint": described, "method": method})

    return build


@pytest.fixture
def run(tmp_path: Path, sums: Path) -> Callable[..., GenerationReport]:
    """Generates into ``out``."""

    def go(settings: Generation, **options: Any) -> GenerationReport:
        options = {"layout": LAYOUT, **options}
        return generate(settings, [options.pop("seeds", sums)], tmp_path / "out", **options)

    return go


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What was generated into ``out``."""
    return lambda: pq.read_table(tmp_path / "out" / "output" / "train").to_pylist()
