"""Client of the Devmesh REST API and its notification stream; needs nothing but Python's standard library."""

from .client import Devmesh, DevmeshProblem

__all__ = ["Devmesh", "DevmeshProblem"]
