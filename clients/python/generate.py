"""Writes devmesh/models.py, the schemas of docs/openapi.json as types of Python."""

import json
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
        return f"Literal[{', '.join(map(json.dumps, schema.get('enum', [schema.get('const')])))}]"
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
        return f'# {description}\n{name}: TypeAlias = "{type_of(schema)}"\n'
    lines = [f"class {name}(TypedDict):", docstring(description), ""]
    for member, one in schema["properties"].items():
        required = member in schema.get("required", [])
        lines.append(f"    {member}: {type_of(one) if required else f'NotRequired[{type_of(one)}]'}")
        if "description" in one:
            lines.append(docstring(one["description"]))
    return "\n".join([*lines, ""])


folder = Path(__file__).parent
schemas = json.loads((folder / "../../docs/openapi.json").read_text("utf-8"))["components"]["schemas"]
models = [HEADER, *(model(name, schema) for name, schema in schemas.items())]
(folder / "devmesh/models.py").write_text("\n\n".join(models), "utf-8")
