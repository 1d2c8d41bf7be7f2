"""A stored record."""

from __future__ import annotations

import json
from typing import Any


class Record(dict[str, Any]):
    """What a device published, with the members of `models.DataRecord`."""

    def json(self) -> Any:
        """The message as JSON; raises `ValueError` for another one."""
        return json.loads(self["message"])
