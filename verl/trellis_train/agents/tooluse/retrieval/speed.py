"""Measures the exact search over 1,200 tools: ``python -m trellis_train.agents.tooluse.retrieval.speed``."""

import json
import time

import numpy as np

from trellis_train.agents.tooluse.retrieval.index import ToolIndex

#: Width of the vectors of an encoder of 0.6B parameters.
TOOLS, WIDTH, QUERIES = 1200, 1024, 500


def measure_search() -> dict[str, float]:
    """Measure the milliseconds of one query that finds ten tools: the median and the 99th percentile."""
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((TOOLS, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = ToolIndex([f"tool-{place}" for place in range(TOOLS)], vectors)
    index.search(vectors[0])
    taken = []
    for place in range(QUERIES):
        started = time.perf_counter()
        index.search(vectors[place])
        taken.append(1000 * (time.perf_counter() - started))
    return {
        "median_ms": round(float(np.median(taken)), 4),
        "p99_ms": round(float(np.percentile(taken, 99)), 4),
        "tools": TOOLS,
        "width": WIDTH,
    }


if __name__ == "__main__":
    print(json.dumps(measure_search()))
