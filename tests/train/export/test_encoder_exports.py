"""An encoder that finds tools, exported from its checkpoint: it finds what it found before."""

from pathlib import Path

import numpy as np
import pytest
from trellis_contracts.recipe import Engine
from trellis_testing.exports import run_export
from trellis_testing.retrieval import make_rows, write_encoder
from trellis_train.agents.tooluse.retrieval.encoder import Encoder, EncoderSettings
from trellis_train.agents.tooluse.retrieval.index import ToolIndex

pytestmark = pytest.mark.training

REQUESTS = ["Book a table for two", "订一张去上海的火车票"]


def test_an_exported_encoder_finds_tools_as_its_checkpoint_does(tmp_path: Path) -> None:
    base = write_encoder(tmp_path / "base", make_rows("test")[:200])
    checkpoint = tmp_path / "global_step_2"
    encoder = Encoder.load(base, EncoderSettings(pooling="last"))
    encoder.save(checkpoint / "huggingface")
    cards = ["books a table", "sells train tickets", "sends a message"]
    ToolIndex(cards, encoder.encode(cards).numpy()).save(checkpoint / "huggingface")

    exported = run_export(tmp_path, checkpoint, base=base, step=2, engine=Engine.RETRIEVAL)

    assert exported.exit_code == 0, exported.log
    found, tools = Encoder.load(exported.output), ToolIndex.load(exported.output)
    assert found.settings == encoder.settings
    np.testing.assert_array_equal(found.encode(REQUESTS).numpy(), encoder.encode(REQUESTS).numpy())
    assert tools.search(found.encode(cards[:1]).numpy()[0], 1)[0][0] == cards[0]
