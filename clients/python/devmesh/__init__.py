"""Client of the Devmesh REST API and its notification stream; needs nothing but Python's standard library."""

from .aio import AsyncDevmesh
from .client import Devmesh, DevmeshProblem, DevmeshUnreachable
from .record import Record

__all__ = ["AsyncDevmesh", "Devmesh", "DevmeshProblem", "DevmeshUnreachable", "Record"]
