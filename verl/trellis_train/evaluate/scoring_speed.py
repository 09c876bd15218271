"""How long the answers to all of MATH take to score: ``python -m trellis_train.evaluate.scoring_speed FILE``.

Prints one line of JSON. No answer is written as the reference is: half of them are right and have to be
found equal, half are another problem's, which takes longer to find out.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PROCESSORS = 2


def measure(path: Path, processors: int = PROCESSORS) -> dict[str, Any]:
    """Measure the wall-clock seconds for all problems of the file, including starting the comparers."""
    usable = sorted(os.sched_getaffinity(0))[:processors]
    os.sched_setaffinity(0, usable)
    # Imported here: as many processes compare as there are processors then.
    from trellis_contracts.evaluation import BenchmarkFiles, BenchmarkTask, MathOrder

    from trellis_train.evaluate.competition_math import CompetitionMath

    files = BenchmarkFiles(paths={"test": [str(path)]}, sha256="0" * 64)
    task = BenchmarkTask(label="math", order=MathOrder(benchmark="math"), files=files)
    benchmark = CompetitionMath(task, 0)
    problems = benchmark.problems()
    other = len(problems) // 2
    outputs = [
        rf"It is $\boxed{{w = {problem.gold}}}$."
        if number % 2
        else rf"It is $\boxed{{{problems[(number + other) % len(problems)].gold}}}$."
        for number, problem in enumerate(problems)
    ]
    started, used = time.perf_counter(), os.times()
    with ThreadPoolExecutor(2 * len(usable)) as pool:
        pairs = zip(problems, outputs, strict=True)
        scored = list(pool.map(lambda pair: benchmark.score(*pair, is_truncated=False), pairs))
    seconds = time.perf_counter() - started
    benchmark.close()
    ended = os.times()
    return {
        "answers": len(scored),
        "seconds": seconds,
        "processor_seconds": sum(ended[:4]) - sum(used[:4]),
        "processors": len(usable),
        "correct": sum(each.score for each in scored),
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
