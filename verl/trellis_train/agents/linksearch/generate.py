"""Makes a database of profiles and its queries.

``python -m trellis_train.agents.linksearch.generate FOLDER``; the same numbers and seed give the same bytes.
"""

import argparse
import json
import sys
from pathlib import Path

from trellis_contracts.hashing import hash_file
from trellis_data.atomic_files import write_atomically

from trellis_train.agents.linksearch.database import write_database
from trellis_train.agents.linksearch.profiles import make_profiles
from trellis_train.agents.linksearch.queries import (
    MOST_CONSTRAINTS,
    NotEnoughQueries,
    Query,
    make_queries,
)

DATABASE_FILE, MANIFEST_FILE = "profiles.db", "manifest.json"
EXIT_BAD_REQUEST = 65  # EX_DATAERR


def main(arguments: list[str]) -> int:
    """Write the folder; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.linksearch.generate")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profiles", type=int, default=2000)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--eval", type=int, default=100)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--most-constraints", type=int, default=MOST_CONSTRAINTS)
    given = parser.parse_args(arguments)
    try:
        manifest = generate(
            given.folder,
            profiles=given.profiles,
            train=given.train,
            evaluation=given.eval,
            seed=given.seed,
            most_constraints=given.most_constraints,
        )
    except NotEnoughQueries as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    print(json.dumps(manifest, indent=2))
    return 0


def generate(
    folder: Path,
    *,
    profiles: int,
    train: int,
    evaluation: int,
    seed: int,
    most_constraints: int = MOST_CONSTRAINTS,
) -> dict[str, object]:
    """Write database, queries and manifest; the manifest, with the hash of each file."""
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / DATABASE_FILE
    write_database(database, make_profiles(profiles, seed=seed))
    queries = list(
        make_queries(
            database, train=train, evaluation=evaluation, seed=seed, most_constraints=most_constraints
        )
    )
    files = [database]
    for split in ("train", "eval"):
        files.append(folder / f"{split}.jsonl")
        _write_queries(files[-1], [query for query in queries if query.split == split])
    manifest: dict[str, object] = {
        "profiles": profiles,
        "train": train,
        "eval": evaluation,
        "seed": seed,
        "most_constraints": most_constraints,
        "sha256": {file.name: hash_file(file) for file in files},
    }
    write_atomically(folder / MANIFEST_FILE, json.dumps(manifest, indent=2) + "\n")
    return manifest


def _write_queries(path: Path, queries: list[Query]) -> None:
    write_atomically(
        path, "".join(json.dumps(query.as_row(), ensure_ascii=False) + "\n" for query in queries)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
