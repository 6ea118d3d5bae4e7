#!/usr/bin/env bash
# Rehearses a loss on a scratch database: moves, a backup of the running service, a crash, the loss of the file, the restore.
# Succeeds only if the restored service has the same lines, and fsck and the auditor find no fault in them. Needs dist/ (npm ci).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"

folder=$(mktemp -d)
pid=
finish() {
  if [ -n "$pid" ]; then kill -KILL "$pid" 2> /dev/null || true; fi
  rm -rf "$folder"
}
trap finish EXIT

chambers() { node dist/src/cli.js "$@"; }

# Clears the caller's settings, because the drill must not touch a real database or chain.
for name in $(compgen -e | grep -Ev '^(PATH|HOME|LANG|TMPDIR|TERM|NODE_.*)$'); do unset "$name"; done
unset NODE_ENV
export HOST=127.0.0.1 PORT=0 CHAIN=none LOG_LEVEL=error DATABASE_PATH="$folder/chambers.db" CHAMBERS_KEY_FILE="$folder/agent.json"

start() {
  : > "$folder/output"
  node dist/src/main.js > "$folder/output" &
  pid=$!
  until grep -q '^listening on ' "$folder/output"; do
    kill -0 "$pid" 2> /dev/null || { echo 'the service did not start' >&2; exit 1; }
    sleep 0.1
  done
  CHAMBERS_URL=$(sed -n 's/^listening on //p' "$folder/output")
  export CHAMBERS_URL
}

echo '1. moves'
start
chambers agent new > /dev/null
chambers agent register --wallet=0x1111111111111111111111111111111111111111 --email=drill@example.org > /dev/null
chambers chamber create --name=Drill --lobby=1h --proposal=1h --debate=1h --commit=1h --reveal=1h > /dev/null
chambers move join 1 > /dev/null
chambers export 1 --out="$folder/before.ndjson"

echo '2. backup of the running service'
chambers backup "$folder/backup.db" > /dev/null
chambers fsck "$folder/backup.db" > /dev/null

echo '3. crash and loss of the database'
kill -KILL "$pid"
wait "$pid" 2> /dev/null || true
pid=
rm "$folder"/chambers.db*

echo '4. restore'
cp "$folder/backup.db" "$DATABASE_PATH"
chambers fsck > /dev/null
chambers new-log > /dev/null 2>&1
start
chambers export 1 --out="$folder/after.ndjson"
cmp "$folder/before.ndjson" "$folder/after.ndjson"
chambers audit "$CHAMBERS_URL" > /dev/null

echo '5. the restored service accepts moves'
chambers agent new --key="$folder/second.json" > /dev/null
chambers agent register --key="$folder/second.json" --wallet=0x2222222222222222222222222222222222222222 --email=drill@example.org > /dev/null
chambers move join 1 --key="$folder/second.json" > /dev/null
chambers chamber create --name='After the drill' --lobby=1h --proposal=1h --debate=1h --commit=1h --reveal=1h > /dev/null
kill -TERM "$pid"
wait "$pid"
pid=
chambers fsck > /dev/null
echo "the restored service has the same $(wc -l < "$folder/after.ndjson") lines, and accepts moves"
