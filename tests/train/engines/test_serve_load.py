"""What an engine is at, from vLLM's metrics: sums, rates, times to first token, and when it is reported."""

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from trellis_contracts.events import ServingLoadEvent
from trellis_train.engines.serve_load import Figures, LoadMeter, LoadReporter, read_figures
from trellis_train.hooks.event_spool import Spool


class Engine:
    """Metrics by vLLM's names, in the library that vLLM writes them with."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels: Any = {"labelnames": ["engine"], "registry": self.registry}
        self.running = Gauge("vllm:num_requests_running", "", **labels)
        self.waiting = Gauge("vllm:num_requests_waiting", "", **labels)
        self.kv_use = Gauge("vllm:kv_cache_usage_perc", "", **labels)
        self.generated = Counter("vllm:generation_tokens", "", **labels)
        self.prompts = Counter("vllm:prompt_tokens", "", **labels)
        self.answered = Counter("vllm:request_success", "", **labels)
        self.first = Histogram("vllm:time_to_first_token_seconds", "", buckets=(0.1, 0.2, 1.0), **labels)

    @property
    def text(self) -> str:
        return generate_latest(self.registry).decode()


def test_figures_are_summed_over_the_engines_of_a_server() -> None:
    engine = Engine()
    for number, use in (("0", 0.25), ("1", 0.5)):
        engine.running.labels(number).set(2)
        engine.waiting.labels(number).set(1)
        engine.kv_use.labels(number).set(use)
        engine.generated.labels(number).inc(10)
        engine.first.labels(number).observe(0.15)

    figures = read_figures(engine.text)

    assert (figures.running, figures.waiting, figures.kv_use, figures.generated_tokens) == (4, 2, 0.5, 20)
    assert (figures.first_tokens, figures.first_token_s) == (2, pytest.approx(0.3))
    assert figures.first_token_buckets == {0.1: 0, 0.2: 2, 1.0: 2, float("inf"): 2}


def test_rates_are_over_the_last_minute() -> None:
    meter = LoadMeter()
    for second in range(0, 125, 5):
        # 2 tokens a second at first, 10 from the second minute on.
        load = meter.measure(second, Figures(generated_tokens=2 * second + 8 * max(0, second - 60)))
        if second == 60:
            assert load.generated_tokens_per_s == 2

    assert (load.window_s, load.generated_tokens_per_s) == (60, 10)


def test_times_to_first_token_are_those_of_the_window() -> None:
    before = Figures(
        first_tokens=4, first_token_s=40, first_token_buckets={0.1: 0, 0.2: 0, 1.0: 0, float("inf"): 4}
    )
    after = Figures(
        first_tokens=14, first_token_s=42, first_token_buckets={0.1: 0, 0.2: 10, 1.0: 10, float("inf"): 14}
    )
    meter = LoadMeter()

    first, second = meter.measure(0, before), meter.measure(5, after)

    assert (first.first_token_mean_s, first.first_token_p95_s, first.generated_tokens_per_s) == (
        None,
        None,
        0,
    )
    assert second.first_token_mean_s == pytest.approx(0.2)
    assert second.first_token_p95_s == pytest.approx(0.195)  # 9.5 of 10 within the bucket from 0.1 to 0.2


def test_an_engine_that_has_not_been_asked_yet_has_no_times() -> None:
    load = LoadMeter().measure(0, read_figures(""))

    assert (load.running, load.first_token_mean_s, load.first_token_p95_s) == (0, None, None)


def test_load_is_reported_while_there_is_any_and_once_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    engine = Engine()
    engine.running.labels("0").set(1)
    busy = engine.text
    engine.running.labels("0").set(0)
    idle = engine.text
    reporter = LoadReporter("http://127.0.0.1:1", "key", Spool(tmp_path, "server"))
    monkeypatch.setattr(reporter, "_fetch", lambda: texts.pop(0))

    for text in (idle, idle, busy, busy, idle, idle):
        texts.append(text)
        reporter.report()

    lines = (tmp_path / "events" / "server.1.jsonl").read_text().splitlines()
    assert [ServingLoadEvent.model_validate_json(line).running for line in lines] == [0, 1, 1, 0]
