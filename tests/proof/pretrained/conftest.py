"""One pretrained model for all proofs of the folder, every run made once."""

import pytest
from trellis_testing.pretrained import Pretrained, make_pretrained


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    return make_pretrained(tmp_path_factory.mktemp("pretrained"))
