#!/bin/sh
# Makes the secrets of cluster.yaml in the folder `secrets` beside this file. Secrets that exist stay as they are.
set -eu
cd "$(dirname "$0")"

# Containers read these files with accounts of their own. On this machine, the folder keeps other accounts out.
mkdir -p secrets
chmod 700 secrets
umask 222

# make <name> <command> …: the output of the command becomes the secret. It is written under another name first, so that
# an interruption leaves no incomplete secret.
make() {
  file="secrets/$1"
  shift
  [ -e "$file" ] && return
  rm -f "$file.new"
  "$@" > "$file.new"
  mv "$file.new" "$file"
}

make root-key openssl rand -hex 32
make vault-key openssl rand -base64 32
make postgres-password openssl rand -hex 24
make clickhouse-password openssl rand -hex 24
make redis-config echo "requirepass $(openssl rand -hex 24)"

make database-url echo "postgres://latchkey:$(cat secrets/postgres-password)@postgres:5432/latchkey"
make redis-url echo "redis://:$(cut -d ' ' -f 2 secrets/redis-config)@redis:6379"
make clickhouse-url echo "http://latchkey:$(cat secrets/clickhouse-password)@clickhouse:8123/latchkey"

echo "The administrator's root key is in $(pwd)/secrets/root-key"
