"""Records where preference pairs come from: model, prompts, sampling and counts, beside the file of pairs."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from trellis_contracts.hashing import hash_file
from trellis_data.atomic_files import write_atomically

from trellis_train.agents.tooluse.pairs.making import PairReport
from trellis_train.agents.tooluse.sampling import Sampling
from trellis_train.agents.tooluse.scoring.settings import RewardSettings

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def locate_provenance(pairs: Path) -> Path:
    """Return the path of the provenance record for ``pairs.jsonl``: ``pairs.provenance.json``."""
    return pairs.with_suffix(".provenance.json")


def write_provenance(
    pairs: Path,
    rows: str,
    report: PairReport,
    *,
    model: Path,
    data: Path,
    sampling: Sampling,
    min_margin: float,
    reward: RewardSettings,
) -> Path:
    """Write the record of the pairs that ``rows`` is the text of; its path.

    Weights, prompts and pairs are identified by SHA-256, which still holds after folders have moved.
    """
    weights = sorted(path for pattern in _WEIGHTS for path in model.glob(pattern))
    record = {
        "model": {"path": str(model.resolve()), "sha256": {path.name: hash_file(path) for path in weights}},
        "prompts": {"path": str(data.resolve()), "sha256": hash_file(data)},
        "sampling": asdict(sampling),
        "min_margin": min_margin,
        "reward": reward.as_record(),
        "pairs": {"sha256": hashlib.sha256(rows.encode()).hexdigest(), **report.summary()},
    }
    file = locate_provenance(pairs)
    write_atomically(file, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return file
