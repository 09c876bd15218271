"""Each side's run over one corpus: what it took, and what it found of what was planted."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from trellis_cli.errors import Problem
from trellis_cli.output import err
from trellis_data.dedup.bands import choose_bands

from trellis_tools.bench.data.corpus import SHINGLE, Planted
from trellis_tools.bench.data.measure import CORES, Usage, measure

#: Pairs at least this similar are to be found, the others are to stay.
THRESHOLD = 0.8
PERMUTATIONS = 128
TIMEOUT_S = 7200.0
_BASELINES = Path(__file__).parent / "baselines"


@dataclass(frozen=True)
class Outcome:
    """One side's figures."""

    name: str
    usage: Usage
    #: Of the copies similar enough, the share that is gone.
    recall: float
    #: Of the rows that are gone as duplicates, the share that is none.
    false_merges: float

    def as_json(self) -> dict[str, Any]:
        """Convert to the JSON of a result's line."""
        return {
            "name": self.name,
            "seconds": round(self.usage.seconds, 2),
            "peak_mb": round(self.usage.peak_bytes / 1e6),
            "recall": round(self.recall, 5),
            "false_merges": round(self.false_merges, 5),
        }


def run_ours(source: Path, folder: Path, planted: Planted) -> Outcome:
    """Run the data factory's own pipeline."""
    command = [
        sys.executable,
        "-m",
        "trellis_tools.bench.data.ours",
        str(source),
        str(folder / "ours"),
        str(CORES),
    ]
    usage = measure(command, folder / "ours.log", TIMEOUT_S)
    return judge("trellis", usage, _ids(folder / "ours" / "output", "**/*.parquet"), planted)


def run_datatrove(source: Path, folder: Path, planted: Planted) -> Outcome:
    """Run datatrove's four stages."""
    target = folder / "datatrove"
    usage = measure(_baseline("with_datatrove.py", source, target), folder / "datatrove.log", TIMEOUT_S)
    return judge("datatrove", usage, _ids(target / "rows", "*.parquet"), planted)


def run_text_dedup(source: Path, folder: Path, planted: Planted) -> Outcome:
    """Run text-dedup's MinHash command."""
    target = folder / "text-dedup"
    log = folder / "text-dedup.log"
    usage = measure(_baseline("with_text_dedup.py", source, target), log, TIMEOUT_S, {"HF_HUB_OFFLINE": "1"})
    return judge("text-dedup", usage, _arrow_ids(target / "rows"), planted)


#: The others by name.
BASELINES: dict[str, Callable[[Path, Path, Planted], Outcome]] = {
    "datatrove": run_datatrove,
    "text-dedup": run_text_dedup,
}


def judge(name: str, usage: Usage, left: np.ndarray, planted: Planted) -> Outcome:
    """Compute the recall and the false merges of a side that kept these documents."""
    stays = np.zeros(planted.rows, dtype=bool)
    stays[left - 1] = True
    if stays[planted.stubs].any():
        raise Problem(f"{name} left documents that cleaning should have dropped")
    copies = planted.copies
    true = copies.similarity >= THRESHOLD
    # Either of a pair may be the one that stays.
    both = stays[copies.originals] & stays[copies.copies]
    gone = ~stays
    gone[planted.stubs] = False
    rightly = (~both & true).sum()
    return Outcome(
        name, usage, float((~both)[true].mean()), float((gone.sum() - rightly) / max(1, gone.sum()))
    )


def rival_python() -> Path:
    """Return the interpreter that has the other tools installed; create its environment if missing."""
    cache = (
        os.environ.get("TRELLIS_BENCH_CACHE") or Path(os.environ.get("TRELLIS_DATA_ROOT", "data")) / "bench"
    )
    folder = Path(cache).resolve() / "data-baselines"
    python = folder / "bin" / "python"
    wanted = (_BASELINES / "requirements.txt").read_text()
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        err.print(f"installing datatrove and text-dedup into {folder}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)  # noqa: S603
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*install, "-r", str(_BASELINES / "requirements.txt")], check=True)  # noqa: S603
        stamp.write_text(wanted)
    return python


def _baseline(script: str, source: Path, target: Path) -> list[str]:
    bands = choose_bands(THRESHOLD, PERMUTATIONS)
    numbers = (bands.number, bands.rows, SHINGLE, CORES)
    return [str(rival_python()), str(_BASELINES / script), str(source), str(target), *map(str, numbers)]


def _ids(folder: Path, pattern: str) -> np.ndarray:
    parts = [pq.read_table(path, columns=["id"])["id"].to_numpy() for path in sorted(folder.glob(pattern))]
    return np.asarray(np.concatenate(parts), dtype=np.int64)


def _arrow_ids(folder: Path) -> np.ndarray:
    parts = []
    for path in sorted(folder.glob("*.arrow")):
        with pa.memory_map(str(path)) as file:
            parts.append(pa.ipc.open_stream(file).read_all()["id"].to_numpy())
    return np.asarray(np.concatenate(parts), dtype=np.int64)
