"""The REST API by method calls; `models` has the types of what they take and give."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .models import (
    ApiKey,
    CreatedDevice,
    DataRecord,
    Device,
    DeviceCredentials,
    DevicePatch,
    NewApiKey,
    NewDevice,
    Notification,
    Problem,
)

FIRST_PAUSE = 0.5
"""Seconds before the notification stream is opened again, doubled each time."""
LONGEST_PAUSE = 15.0

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


class Devmesh:
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
        with self._open(method, path + _query(query), body, headers) as response:
            content = response.read()
        return json.loads(content) if content else None

    def devices(self, **query: Any) -> Iterator[Device]:
        """All devices, page after page: `online`, `filter`; `limit` is that of a page."""
        return self._items("/api/v2/devices", {"limit": 1000, **query})

    def device(self, id: str) -> Device:
        return cast(Device, self.request("GET", _device(id)))

    def create_device(self, device: NewDevice | None = None) -> CreatedDevice:
        return cast(CreatedDevice, self.request("POST", "/api/v2/devices", body=device or {}))

    def patch_device(self, id: str, patch: DevicePatch) -> Device:
        return cast(Device, self.request("POST", _device(id), body=patch))

    def delete_device(self, id: str) -> None:
        self.request("DELETE", _device(id))

    def credentials(self, id: str) -> DeviceCredentials:
        return cast(DeviceCredentials, self.request("GET", f"{_device(id)}/credentials"))

    def call(self, id: str, function: str, params: Any = None, timeout_ms: int | None = None) -> Any:
        """Calls a function of a connected device and gives its result."""
        path = f"{_device(id)}/rpc/{quote(function, safe='')}"
        return self.request("POST", path, query={"timeout": timeout_ms}, body={} if params is None else params)

    def create_key(self, key: NewApiKey | None = None) -> ApiKey:
        return cast(ApiKey, self.request("POST", "/api/v2/keys", body=key or {}))

    def records(self, **query: Any) -> Iterator[DataRecord]:
        """All stored records that match, page after page: `filter`, `since`, `until`, `device_id`, `after`."""
        return self._items("/api/v2/data", {"limit": 5000, **query})

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
        path = "/api/v2/m/device/notify" if own else "/api/v2/notify"
        query = {"data": int(data) or None, "account": int(account) or None, "device": device}
        pause = FIRST_PAUSE
        while True:
            try:
                stream = _query({**query, "after": after})
                with self._open("GET", path + stream, None, {"Accept": "text/event-stream"}) as response:
                    for line in response:
                        if not line.startswith(b"data: "):
                            continue
                        frame = cast(Notification, json.loads(line[6:]))
                        after, pause = frame["seq"], FIRST_PAUSE
                        yield frame
            except DevmeshProblem as problem:
                if problem.status < 500 and problem.status != 429:
                    raise
            except (OSError, HTTPException):
                pass
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _items(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        following: str | None = path + _query(query)
        while following is not None:
            with self._open("GET", following) as response:
                link = re.search(r'<(/[^>]*)>; rel="next"', response.headers.get("Link") or "")
                items = json.load(response)
            yield from items
            following = link[1] if link else None

    def _open(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        sent = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        content = None if body is None else json.dumps(body).encode()
        request = Request(self._url + target, data=content, headers=sent, method=method)
        try:
            return _opener.open(request, timeout=self._timeout)
        except HTTPError as error:
            with error:
                raise DevmeshProblem(error.code, _problem(error)) from None


def _problem(error: HTTPError) -> Problem | None:
    if error.headers.get_content_type() != "application/problem+json":
        return None
    return cast(Problem, json.load(error))


def _device(id: str) -> str:
    return f"/api/v2/devices/{quote(id, safe='')}"


def _query(query: Mapping[str, Any] | None) -> str:
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""
