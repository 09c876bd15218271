"""Lookups that several requests share."""

import asyncio
import threading

import pytest
from trellis_api.core.shared_lookups import SharedLookups


def test_requests_at_the_same_time_share_one_lookup_and_later_ones_look_again() -> None:
    looked: list[str] = []
    go_on = threading.Event()

    def look(name: str) -> int:
        go_on.wait(5)
        looked.append(name)
        return len(looked)

    async def ask() -> list[int]:
        lookups = SharedLookups()
        asking = [asyncio.create_task(lookups.get(look, name)) for name in ("a", "a", "b")]
        await asyncio.sleep(0)
        go_on.set()
        first, second, _ = await asyncio.gather(*asking)
        return [first, second, await lookups.get(look, "a")]

    first, second, later = asyncio.run(ask())

    assert first == second
    assert (later, sorted(looked)) == (3, ["a", "a", "b"])


def test_a_refusal_reaches_all_who_wait_and_nobody_is_missed(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> None:
        raise PermissionError

    async def ask() -> list[BaseException | None]:
        lookups = SharedLookups()
        return await asyncio.gather(*(lookups.get(refuse) for _ in range(2)), return_exceptions=True)

    async def leave() -> None:
        asking = asyncio.create_task(SharedLookups().get(refuse))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.sleep(0.2)

    assert [type(each) for each in asyncio.run(ask())] == [PermissionError] * 2
    asyncio.run(leave())
    assert "never retrieved" not in caplog.text
