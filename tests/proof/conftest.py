"""What the proofs share: the taught starter model, one Ray cluster, and every run made once.

All of it is lazy: a proof that needs no cluster starts none. `TRELLIS_PROOF` says which recipes are proven:
`all`, or a list such as `ppo,dapo`; unset, everything.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trellis_testing.proven import proven_by
from trellis_testing.ray_cluster import running_ray_head
from trellis_testing.starter import Starter, make_taught_starter
from trellis_tools.proof import EVERYTHING, SCOPE_VARIABLE

from .linksearch import Searcher, make_searcher
from .reinforcement import ReinforcementRuns


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the proofs of recipes that are not asked for."""
    scope = os.environ.get(SCOPE_VARIABLE)
    if not scope or scope == EVERYTHING:
        return
    wanted = set(scope.split(","))
    left_out = [each for each in items if not proven_by(each) & wanted]
    items[:] = [each for each in items if each not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Starter:
    return make_taught_starter(tmp_path_factory.mktemp("starter"))


@pytest.fixture(scope="session")
def join_ray() -> Iterator[Callable[[], dict[str, str]]]:
    """Answers with the environment of the session's cluster, which starts at the first call."""
    started: list[dict[str, str]] = []
    head = running_ray_head()

    def join() -> dict[str, str]:
        if not started:
            started.append(head.__enter__())
        return started[0]

    yield join
    if started:
        head.__exit__(None, None, None)


@pytest.fixture(scope="session")
def reinforcement(
    starter: Starter, join_ray: Callable[[], dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> ReinforcementRuns:
    folder: Path = tmp_path_factory.mktemp("reinforcement")
    return ReinforcementRuns(folder, starter, join_ray)


@pytest.fixture(scope="session")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    return make_searcher(tmp_path_factory.mktemp("searcher"))
