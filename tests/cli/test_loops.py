import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ultijobs_cli.loops import new_loop


@pytest.mark.parametrize("quick", [True, False])
def test_a_handler_that_closes_the_threads_of_the_loop_closes_them_for_nobody_else(
    quick: bool, monkeypatch: pytest.MonkeyPatch
):
    if not quick:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        first = await asyncio.to_thread(threading.current_thread)
        await loop.shutdown_default_executor()
        assert not first.is_alive()
        second = await asyncio.to_thread(threading.current_thread)
        assert second.is_alive()
        assert await loop.getaddrinfo("localhost", 80)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def test_the_threads_that_a_lifespan_sets_are_used():
    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="mine"))
        used = await asyncio.to_thread(threading.current_thread)
        assert used.name.startswith("mine")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("quick", [True, False])
def test_a_handler_that_stops_the_loop_fails_and_the_loop_goes_on(quick: bool, monkeypatch: pytest.MonkeyPatch):
    if not quick:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def handler() -> None:
        asyncio.get_running_loop().stop()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="stop"):
            await asyncio.create_task(handler())
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
