"""Writes devmesh/models.py and operations.py: the schemas and operations of docs/openapi.json as typed Python."""

import json
import keyword
import re
from pathlib import Path

HEADER = '''"""The bodies of the Devmesh REST API, as `json` reads and writes them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].split("/")[-1]
    if "const" in schema or "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema.get('enum', [schema.get('const')])))}]"
    if "anyOf" in schema or "oneOf" in schema:
        return union(type_of(one) for one in schema.get("anyOf") or schema["oneOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return union(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, dict) else 'Any'}]"
    return SCALARS.get(kind, "Any")


def union(types):
    distinct = list(dict.fromkeys(types))
    return distinct[0] if len(distinct) == 1 else f"Union[{', '.join(distinct)}]"


def docstring(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'    """{escaped}"""'


def model(name, schema):
    """A `TypedDict` for an object, an alias for anything else."""
    description = schema.get("description", "")
    if "properties" not in schema:
        return f'# {description}\n{name}: TypeAlias = {type_of(schema)}\n'
    members = schema["properties"]
    if any(keyword.iskeyword(member) for member in members):
        return f"# {description}\n{name} = TypedDict({name!r}, {{{fields(members, schema.get('required', []))}}})\n"
    lines = [f"class {name}(TypedDict):", docstring(description), ""]
    for member, one in members.items():
        required = member in schema.get("required", [])
        lines.append(f"    {member}: {type_of(one) if required else f'NotRequired[{type_of(one)}]'}")
        if "description" in one:
            lines.append(docstring(one["description"]))
    return "\n".join([*lines, ""])


def fields(members, required):
    """Members of a `TypedDict` whose names cannot be those of attributes, such as `in`."""
    types = {member: repr(type_of(one)) for member, one in members.items()}
    return ", ".join(
        f"{member!r}: {kind if member in required else f'NotRequired[{kind}]'}" for member, kind in types.items()
    )


OPERATIONS = '''"""The operations of the Devmesh REST API as methods, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, Union, cast
from urllib.parse import quote

from .models import *
from .record import Record


def _part(text: str) -> str:
    return quote(text, safe="")
'''
BASES = {
    False: '''class Operations:
    def _send(self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _pages(self, path: str, query: Mapping[str, Any], item: Any) -> Iterator[Any]:
        raise NotImplementedError
''',
    True: '''class AsyncOperations:
    async def _send(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, Any]
    ) -> Any:
        raise NotImplementedError

    def _pages(self, path: str, query: Mapping[str, Any], item: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
''',
}
LARGEST_PAGE = 1000
"""Items of a page, unless the caller or the operation wants fewer."""


def snake(name):
    spelled = re.sub(r"[^a-z0-9]+", "_", re.sub(r"([A-Z])", r"_\1", name).lower()).strip("_")
    return f"{spelled}_" if keyword.iskeyword(spelled) else spelled


def answer_of(operation):
    """Schema of the success in JSON and whether it is a page; None for what is neither JSON nor empty."""
    response = next(one for status, one in operation["responses"].items() if status.startswith("2"))
    content = response.get("content", {"application/json": {"schema": {"type": "null"}}})
    if "application/json" not in content:
        return None
    schema = content["application/json"]["schema"]
    return schema, schema.get("type") == "array" and "Link" in response.get("headers", {})


def method(operation, verb, path, is_async):
    answer = answer_of(operation)
    body = operation.get("requestBody")
    if answer is None or (body is not None and "application/json" not in body["content"]):
        return ""
    schema, is_page = answer
    places = {place: [one for one in operation.get("parameters", []) if one["in"] == place] for place in PLACES}
    arguments = ["self", *(f"{snake(one['name'])}: str" for one in places["path"])]
    if body is not None:
        kind = type_of(body["content"]["application/json"]["schema"])
        arguments.append(f"body: {kind}" if body.get("required") else f"body: {kind} | None = None")
    keywords = []
    for one in places["query"] + places["header"]:
        kind = type_of(one["schema"])
        if is_page and one["name"] == "limit":
            keywords.append(f"limit: int = {min(LARGEST_PAGE, one['schema'].get('maximum', LARGEST_PAGE))}")
        else:
            keywords.append(f"{snake(one['name'])}: {kind}" + ("" if one.get("required") else " | None = None"))
    arguments += ["*", *keywords] if keywords else []
    target = re.sub(r"{(\w+)}", lambda one: "{_part(" + snake(one[1]) + ")}", path)
    target = f'f"{target}"' if "{" in target else f'"{target}"'
    given = {place: mapping(places[place]) for place in ("query", "header")}
    if is_page:
        item = type_of(schema["items"])
        item_class = "Record" if item == "DataRecord" else "None"
        kind = "Record" if item == "DataRecord" else item
        head = f"def {snake(operation['operationId'])}({', '.join(arguments)}) -> {'Async' * is_async}Iterator[{kind}]:"
        code = f"return self._pages({target}, {given['query']}, {item_class})"
    else:
        kind = type_of(schema)
        head = f"def {snake(operation['operationId'])}({', '.join(arguments)}) -> {kind}:"
        head = f"async {head}" if is_async else head
        sent = f"self._send(\"{verb.upper()}\", {target}, {given['query']}, {'body' if body else 'None'}, {given['header']})"
        code = f"return cast({kind!r}, {'await ' * is_async}{sent})"
    text = operation["summary"] + (": all pages; `limit` is that of a page" if is_page else "")
    return "\n".join([f"    {head}", f"    {docstring(text)}", f"        {code}", ""])


PLACES = ("path", "query", "header")


def mapping(parameters):
    return "{" + ", ".join(f'"{one["name"]}": {snake(one["name"])}' for one in parameters) + "}"


folder = Path(__file__).parent
document = json.loads((folder / "../../docs/openapi.json").read_text("utf-8"))
schemas = document["components"]["schemas"]
# An alias is evaluated where it is, and names classes.
classes_first = sorted(schemas.items(), key=lambda item: "properties" not in item[1])
models = [HEADER, *(model(name, schema) for name, schema in classes_first)]
models.append(f"__all__ = {json.dumps(list(schemas))}\n")
(folder / "devmesh/models.py").write_text("\n\n".join(models), "utf-8")

operations = [
    (operation, verb, path) for path, verbs in document["paths"].items() for verb, operation in verbs.items()
]
classes = [
    "\n".join([BASES[is_async], *filter(None, (method(*one, is_async) for one in operations))])
    for is_async in (False, True)
]
(folder / "devmesh/operations.py").write_text("\n\n".join([OPERATIONS, *classes]), "utf-8")
