"""Reads a JSON array of Kubernetes objects; prints a JSON array with a sentence for each that does not fit its schema.

The version of Kubernetes is the only argument. An object whose schema the package does not have is a problem, too.
"""

import json
import sys

import kubernetes_validate


def problem(thing, version):
    name = "%s/%s" % (thing["kind"], thing["metadata"]["name"])
    try:
        kubernetes_validate.validate(thing, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return "%s: %s: %s" % (name, ".".join(str(step) for step in error.path), error.message)
    except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError) as error:
        return "%s: %s" % (name, error.message)
    return None


version = sys.argv[1]
problems = [problem(thing, version) for thing in json.load(sys.stdin)]
json.dump([found for found in problems if found], sys.stdout)
