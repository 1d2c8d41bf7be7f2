#!/bin/bash
# In place of the entrypoint of MongoDB's image: tells its arguments, the user it would make, the key's mode and owner, and what it can write.
set -eu
echo "$*"
echo "makes ${MONGO_INITDB_ROOT_USERNAME:-nobody}"
key=/tmp/member-key
echo "key $(stat --format='%a of %u' $key): $([ "$(cat $key)" = "$(cat /run/secrets/mongodb/member-key)" ] && echo true)"
[ -z "${MONGO_INITDB_ROOT_PASSWORD_FILE:-}" ] || [ -s "$MONGO_INITDB_ROOT_PASSWORD_FILE" ]
for folder in /data/db /data/configdb /tmp; do touch "$folder/written"; done
echo "writes /data/db /data/configdb /tmp"
