"""Browsing the samples of a large evaluation: pages with every filter, search and what changed."""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trellis_contracts.evaluation import Sample, Verdict
from trellis_evaluation.samples.store import Filters, SampleStore, open_store, write_store

from trellis_tools.bench.result import Result

PAGE_LIMIT_MS = 200.0
_REPEATS = 5
_SEED = 20_240_401
_WORDS = (
    *(
        "the",
        "a",
        "sum",
        "of",
        "two",
        "numbers",
        "is",
        "found",
        "by",
        "counting",
        "on",
        "from",
        "first",
        "so",
    ),
    *("to", "last", "and", "writing", "down", "what", "remains", "that", "nobody", "has", "please", "step"),
    *("数学", "问题", "答案", "一共", "多少", "explain", "every", "before", "answering", "remembers"),
)
_EXAMPLES = "\n\n".join(
    f"Question: Somebody has {n} eggs and sells half of them. How many remain?\nAnswer: {n} / 2 = {n // 2}."
    for n in range(8, 24, 2)
)
Look = Callable[[SampleStore, SampleStore], object]
#: What a person may ask for. Pages far behind are asked for with a cursor.
_LOOKS: dict[str, Look] = {
    "first page": lambda a, _: a.page(),
    "last page": lambda a, _: a.page(cursor=str((len(a) - 60) * 1024)),
    "wrong or truncated": lambda a, _: a.page(Filters(verdicts=(Verdict.WRONG, Verdict.TRUNCATED))),
    "rare verdict, half-way": lambda a, _: a.page(
        Filters(verdicts=(Verdict.FAILED,)), cursor=str(len(a) * 512)
    ),
    "group and verdict": lambda a, _: a.page(
        Filters(verdicts=(Verdict.CORRECT,), group=("level", "Level 4"))
    ),
    "search, two Chinese characters": lambda a, _: a.page(Filters(search="数学")),
    "search, a number": lambda a, _: a.page(Filters(search="#### 4242")),
    "search, nowhere": lambda a, _: a.page(Filters(search="qqq zzz")),
    "search, common parts": lambda a, _: a.page(Filters(search="counting counting two sum the")),
    "search among wrong ones": lambda a, _: a.page(Filters(search="#### 42", verdicts=(Verdict.WRONG,))),
    "changed": lambda a, b: a.page(Filters(changed="any"), against=b),
    "became worse, in a group": lambda a, b: a.page(
        Filters(changed="worse", group=("level", "Level 1")), against=b
    ),
    "counts of what changed": lambda a, b: a.changes(b),
    "the same problem in the other": lambda _, b: b.find(f"test-{len(b) // 2}"),
}


def measure_samples(count: int) -> Iterator[Result]:
    """Measure the slowest of each query over two files of ``count`` samples, reopened for each query."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.sqlite" for name in "ab"]
        written = [_write(path, count, seed) for seed, path in enumerate(paths)]
        times = {name: [_time(look, paths) for _ in range(_REPEATS)] for name, look in _LOOKS.items()}
        details: dict[str, object] = {
            "samples": count,
            "built_in_s": round(written[0], 1),
            "file_mb": round(paths[0].stat().st_size / 1e6, 1),
        }
    details |= {f"{name}, ms": round(statistics.median(each), 1) for name, each in times.items()}
    slowest = max(max(each) for each in times.values())
    yield Result("eval_samples_page", slowest, PAGE_LIMIT_MS, "ms", details=details)


def _time(look: Look, paths: list[Path]) -> float:
    started = time.perf_counter()
    with open_store(paths[0]) as first, open_store(paths[1]) as second:
        look(first, second)
    return (time.perf_counter() - started) * 1000


def _write(path: Path, count: int, seed: int) -> float:
    """Write samples and return the seconds it took, without generating the texts."""
    making = 0.0

    def timed() -> Iterator[Sample]:
        nonlocal making
        samples = _make_samples(count, seed)
        while True:
            started = time.perf_counter()
            sample = next(samples, None)
            making += time.perf_counter() - started
            if sample is None:
                return
            yield sample

    started = time.perf_counter()
    write_store(path, timed())
    return time.perf_counter() - started - making


def _make_samples(count: int, seed: int) -> Iterator[Sample]:
    draw = random.Random(_SEED + seed)  # noqa: S311 - texts, not secrets
    for position in range(count):
        verdict = draw.choices(list(Verdict), (50, 30, 10, 8, 2))[0]
        score = float(verdict is Verdict.CORRECT)
        question = " ".join(draw.choices(_WORDS, k=30))
        answer = " ".join(draw.choices(_WORDS, k=draw.randint(40, 140)))
        yield Sample(
            position=position,
            key=f"test-{position}",
            groups={"level": f"Level {position % 5 + 1}", "type": _WORDS[position % 7]},
            prompt=f"{_EXAMPLES}\n\nQuestion: {question}?\nAnswer:",
            output=f"{answer}\n#### {draw.randrange(10**6)}",
            extracted="42",
            gold="43",
            verdict=verdict,
            score=score,
            parts={"strict": score, "flexible": score},
            finish_reason="stop",
            prompt_tokens=600,
            output_tokens=120,
            seconds=1.5,
        )
