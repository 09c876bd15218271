"""Clean and deduplicate with text-dedup: ``with_text_dedup.py INPUT OUTPUT BANDS ROWS SHINGLE PROCESSES``.

It does not clean, so that is done as its users do, with ``datasets``; then its MinHash command runs as it is.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
from clean import SHORTEST, clean


def cleaned(batch: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Clean the texts of a batch."""
    return {"text": [clean(text) for text in batch["text"]]}


def main(source: str, target: str, bands: int, rows: int, shingle: int, processes: int) -> None:
    """Clean, write, call."""
    folder = Path(target)
    files = [str(path) for path in sorted(Path(source).glob("*.parquet"))]
    cache = str(folder / "cache")
    table = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    table = table.map(cleaned, batched=True, num_proc=processes)
    table = table.filter(lambda text: len(text) >= SHORTEST, input_columns=["text"], num_proc=processes)
    table.save_to_disk(str(folder / "clean"))
    command = [
        *(sys.executable, "-m", "text_dedup.minhash", "--local", "--path", str(folder / "clean")),
        *("--output", str(folder / "rows"), "--column", "text", "--ngram", str(shingle), "--min_length", "1"),
        *("--num_perm", str(bands * rows), "--b", str(bands), "--r", str(rows), "--hash_func", "xxh3"),
        *("--num_proc", str(processes), "--cache_dir", cache),
    ]
    subprocess.run(command, check=True)  # noqa: S603


if __name__ == "__main__":
    datasets.disable_progress_bars()
    main(sys.argv[1], sys.argv[2], *(int(value) for value in sys.argv[3:7]))
