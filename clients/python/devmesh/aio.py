"""The client for asyncio. Each request runs in a thread: the standard library has no other HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from threading import Event
from typing import IO, Any, TypeVar

from .client import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    READ_JOB_EVERY,
    Devmesh,
    DevmeshProblem,
    is_over,
    is_passing,
    query_of,
)
from .models import Firmware, Job, Notification, RpcParams
from .operations import AsyncOperations

T = TypeVar("T")

MOST_THREADS = 64
"""Requests and streams at a time; others wait."""


class AsyncDevmesh(AsyncOperations):
    """As `Devmesh`, with `await` and `async for`."""

    def __init__(self, url: str, key: str, timeout: float = 90.0) -> None:
        self._client = Devmesh(url, key, timeout)
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="devmesh")

    async def __aenter__(self) -> AsyncDevmesh:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False)

    devices = AsyncOperations.list_devices
    records = AsyncOperations.query_records

    async def call(self, id: str, function: str, params: RpcParams | None = None, timeout_ms: int | None = None) -> Any:
        """Calls a function of a connected device and gives its result."""
        return await self.call_function(id, function, {} if params is None else params, timeout=timeout_ms)

    async def upload_firmware(self, id: str, content: bytes | IO[bytes]) -> Firmware:
        """Sends the content of firmware, a file as it is read; returns once it is stored whole."""
        return await self._in_thread(lambda: self._client.upload_firmware(id, content))

    async def wait_for_job(
        self, id: str, *, or_paused: bool = False, on_progress: Callable[[Job], object] | None = None
    ) -> Job:
        """As of `Devmesh`."""
        pause = FIRST_PAUSE
        while True:
            try:
                job = await self.read_job(id)
                if on_progress is not None:
                    on_progress(job)
                if is_over(job, or_paused):
                    return job
                pause = FIRST_PAUSE
                await asyncio.sleep(READ_JOB_EVERY)
            except (DevmeshProblem, OSError, HTTPException) as error:
                if not is_passing(error):
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def notifications(
        self,
        *,
        after: int | None = None,
        data: bool = False,
        device: str | None = None,
        account: bool = False,
        own: bool = False,
    ) -> AsyncIterator[Notification]:
        """As of `Devmesh`. Its thread ends with the next byte, at the latest with the beat of 20 s."""
        stopped = Event()
        frames = self._client.follow(stopped, after=after, data=data, device=device, account=account, own=own)
        try:
            while (frame := await self._in_thread(lambda: next(frames, None))) is not None:
                yield frame
        finally:
            stopped.set()

    async def _send(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, Any]
    ) -> Any:
        return await self._in_thread(
            lambda: self._client.request(method, path, query=query, body=body, headers=headers)
        )

    async def _pages(self, path: str, query: Mapping[str, Any], item: Any) -> AsyncIterator[Any]:
        following: str | None = path + query_of(query)
        while following is not None:
            page = following
            items, following = await self._in_thread(lambda: self._client.page(page))
            for one in items:
                yield one if item is None else item(one)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
