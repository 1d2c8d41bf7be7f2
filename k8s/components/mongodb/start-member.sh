#!/bin/bash
# Starts one member. mongod wants the key in a file that is nobody else's, which a mounted Secret is not.
set -euo pipefail
install --mode=400 /run/secrets/mongodb/member-key /tmp/member-key
# The first member alone makes the root user: a member that joins must hold no data.
if [ "$HOSTNAME" = mongodb-0 ]; then
  export MONGO_INITDB_ROOT_USERNAME=root
  export MONGO_INITDB_ROOT_PASSWORD_FILE=/run/secrets/mongodb/root-password
fi
exec docker-entrypoint.sh mongod --replSet rs0 --keyFile /tmp/member-key --bind_ip_all
