"""The REST API by method calls; `models` has the types of what they take and give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from threading import Event
from time import sleep
from typing import IO, Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .models import Firmware, Job, Notification, Problem, RpcParams
from .operations import Operations

FIRST_PAUSE = 0.5
"""Seconds before the notification stream is opened again, doubled each time."""
LONGEST_PAUSE = 15.0
READ_JOB_EVERY = 1.0
"""Seconds between two looks at a job that is waited for."""

REDIRECTS = (301, 302, 303, 307, 308)


class _NoRedirects(HTTPRedirectHandler):
    """urllib sends the key on to any host that a redirect names."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


class DevmeshProblem(Exception):
    """An error that the server answered. `reason` is for programs, the message for people."""

    def __init__(self, status: int, problem: Problem | None) -> None:
        hint = ", a redirect, which is not followed" if status in REDIRECTS else ""
        super().__init__(problem["detail"] if problem else f"HTTP status {status}{hint}")
        self.status = status
        self.problem = problem
        """All that the server said; None if something else answered, such as a proxy."""
        self.reason = problem["reason"] if problem else None
        """Stable word, such as `device_offline`; docs/errors.md lists them."""


class DevmeshUnreachable(ConnectionError):
    """No answer came from the server: it refused the connection, or has no address."""

    def __init__(self, url: str, reason: object) -> None:
        refused = isinstance(reason, ConnectionRefusedError)
        super().__init__(f"{url} refused the connection" if refused else f"{url} cannot be reached: {reason}")
        self.url = url


class Devmesh(Operations):
    """The API at `url` (such as http://127.0.0.1:8080) with one key, whose kind decides what is answered."""

    def __init__(self, url: str, key: str, timeout: float = 90.0) -> None:
        """`timeout`: seconds without a byte from the server after which a request fails."""
        self._url = url.rstrip("/")
        self._key = key.strip()
        # http.client would quote the key in its error.
        if not re.fullmatch(r"[!-~]+", self._key):
            raise ValueError("the key is empty or has a character that no key has")
        self._timeout = timeout

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Sends any request of the API, such as `request("GET", "/api/v2/mesh")`; gives the parsed body."""
        with self._open(method, path + query_of(query), body, headers) as response:
            content = response.read()
        return json.loads(content) if content else None

    devices = Operations.list_devices
    records = Operations.query_records

    def call(self, id: str, function: str, params: RpcParams | None = None, timeout_ms: int | None = None) -> Any:
        """Calls a function of a connected device and gives its result."""
        return self.call_function(id, function, {} if params is None else params, timeout=timeout_ms)

    def upload_firmware(self, id: str, content: bytes | IO[bytes]) -> Firmware:
        """Sends the content of firmware, a file as it is read; returns once it is stored whole."""
        with self._open("POST", _content_of(id), content) as response:
            return cast(Firmware, json.load(response))

    def download_firmware(self, id: str, byte_range: str | None = None) -> Any:
        """The content of firmware as a file to read and close; `byte_range` such as `bytes=0-1023` for a part."""
        return self._open("GET", _content_of(id), None, {} if byte_range is None else {"Range": byte_range})

    def wait_for_job(
        self, id: str, *, or_paused: bool = False, on_progress: Callable[[Job], object] | None = None
    ) -> Job:
        """The job once it is `done` or `cancelled`, also if the server is away meanwhile.

        `or_paused`: also while it is paused, since a person must decide what follows. `on_progress` takes the job
        each time that it was read.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                job = self.read_job(id)
                if on_progress is not None:
                    on_progress(job)
                if is_over(job, or_paused):
                    return job
                pause = FIRST_PAUSE
                sleep(READ_JOB_EVERY)
            except (DevmeshProblem, OSError, HTTPException) as error:
                if not is_passing(error):
                    raise
                sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def notifications(
        self,
        *,
        after: int | None = None,
        data: bool = False,
        device: str | None = None,
        account: bool = False,
        own: bool = False,
    ) -> Iterator[Notification]:
        """What happens, as it happens, for good; it reconnects by itself and goes on after the last frame.

        `own`: of the device of a public key. `data`: also records. `account`: also keys and customers.
        """
        return self.follow(Event(), after=after, data=data, device=device, account=account, own=own)

    def follow(
        self, stopped: Event, *, after: int | None, data: bool, device: str | None, account: bool, own: bool
    ) -> Iterator[Notification]:
        """As `notifications`, until `stopped` is set, which is noticed with the next byte."""
        path = "/api/v2/m/device/notify" if own else "/api/v2/notify"
        query = {"data": int(data) or None, "account": int(account) or None, "device": device}
        pause = FIRST_PAUSE
        while not stopped.is_set():
            try:
                stream = query_of({**query, "after": after})
                with self._open("GET", path + stream, None, {"Accept": "text/event-stream"}) as response:
                    for line in response:
                        if stopped.is_set():
                            return
                        if not line.startswith(b"data: "):
                            continue
                        frame = cast(Notification, json.loads(line[6:]))
                        after, pause = frame["seq"], FIRST_PAUSE
                        yield frame
            except (DevmeshProblem, OSError, HTTPException) as error:
                if not is_passing(error):
                    raise
            stopped.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def page(self, target: str) -> tuple[list[Any], str | None]:
        """The items of a page, and the target of the next one."""
        with self._open("GET", target) as response:
            link = re.search(r'<(/[^>]*)>; rel="next"', response.headers.get("Link") or "")
            return json.load(response), link[1] if link else None

    def _send(self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, Any]) -> Any:
        return self.request(method, path, query=query, body=body, headers=headers)

    def _pages(self, path: str, query: Mapping[str, Any], item: Any) -> Iterator[Any]:
        following: str | None = path + query_of(query)
        while following is not None:
            items, following = self.page(following)
            yield from items if item is None else map(item, items)

    def _open(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        given = {name: value for name, value in (headers or {}).items() if value is not None}
        sent = {"Authorization": f"Bearer {self._key}", **given}
        content = None
        if isinstance(body, bytes) or hasattr(body, "read"):
            sent["Content-Type"], content = "application/octet-stream", body
        elif body is not None:
            sent["Content-Type"], content = "application/json", json.dumps(body).encode()
        request = Request(self._url + target, data=content, headers=sent, method=method)
        try:
            return _opener.open(request, timeout=self._timeout)
        except HTTPError as error:
            with error:
                raise DevmeshProblem(error.code, _problem(error)) from None
        except URLError as error:
            raise DevmeshUnreachable(self._url, error.reason) from error


def is_passing(error: Exception) -> bool:
    """Whether the request may succeed later: the server is away, busy or has an error."""
    return not isinstance(error, DevmeshProblem) or error.status >= 500 or error.status == 429


def is_over(job: Job, or_paused: bool) -> bool:
    """Whether nobody waits for the job any more."""
    return job["ended_at"] is not None or (or_paused and job["state"] == "paused")


def _content_of(id: str) -> str:
    return f"/api/v2/firmware/{quote(id, safe='')}/content"


def _problem(error: HTTPError) -> Problem | None:
    if error.headers.get_content_type() != "application/problem+json":
        return None
    return cast(Problem, json.load(error))


def query_of(query: Mapping[str, Any] | None) -> str:
    """The query of a URL, with its `?`; members that are None are left out."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""
