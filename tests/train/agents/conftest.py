"""What commands that run in the tests' process set for engines does not reach engines of other tests."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _environment_stays_as_it_is() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
