#!/usr/bin/env bash
# Rehearses the loss of PostgreSQL's primary under two loaded nodes, as the manual's section on failover describes: kill -9, promote, rejoin.
# First with a standby that commits wait for: no move that got its response is lost. Then with a standby that lacks moves: no second history
# is published, and the log continues in both ways that the manual describes. The drill uses its own servers, database and keys.
# Needs dist/ (npm ci), curl, and Debian's postgresql-15 with its client, or the folder of its programs in PG_BIN. ROUNDS defaults to 5.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
rounds=${ROUNDS:-5}
bin=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | sort -V | tail -1)}
if [ ! -x "$bin/pg_basebackup" ] || [ ! -x "$bin/psql" ]; then
  echo 'skipped, not installed: pg_basebackup and psql (Debian: postgresql-15)'
  exit 0
fi

# In memory if possible, because the drill makes a dozen copies of the database.
folder=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d)
nodes=()
watcher=
finish() {
  status=$?
  for pid in $watcher ${nodes[@]+"${nodes[@]}"}; do kill -KILL "$pid" 2> /dev/null || true; done
  for server in one two; do kill_server "$server" 2> /dev/null || true; done
  if [ "$status" != 0 ]; then tail -n 20 "$folder"/*.log >&2 || true; fi
  rm -rf "$folder"
}
trap finish EXIT
fail() { echo "the drill failed: $1" >&2; exit 1; }

# Clears the caller's settings, because the drill must not touch a real database or chain.
for name in $(compgen -e | grep -Ev '^(PATH|HOME|LANG|TMPDIR|TERM|NODE_.*)$'); do unset "$name"; done
unset NODE_ENV

# PostgreSQL does not run as root.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
free_port() { node -e 'const s=require("node:net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'; }
declare -A port=([one]=$(free_port) [two]=$(free_port))
url="postgres://postgres@127.0.0.1:${port[one]},127.0.0.1:${port[two]}/postgres"
sql() { "$bin/psql" --no-psqlrc -qtA -U postgres -h 127.0.0.1 -p "${port[$1]}" -c "$2" postgres; }
wait_until() {
  local end=$((SECONDS + 40))
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "timed out waiting for: $*"
    sleep 0.1
  done
}

start_server() {
  (cd / && as_postgres "$bin/postgres" -D "$folder/$1" -p "${port[$1]}" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c recovery_init_sync_method=syncfs \
    -c "synchronous_standby_names=$standby_names" >> "$folder/$1.log" 2>&1 3>&- &)
  wait_until sql "$1" 'SELECT 1'
}
kill_server() {
  [ -e "$folder/$1/postmaster.pid" ] || return 0
  local pid
  pid=$(head -1 "$folder/$1/postmaster.pid")
  # shellcheck disable=SC2046 # each is a word
  kill -KILL "$pid" $(ps -o pid= --ppid "$pid") 2> /dev/null || true
  rm -f "$folder/$1/postmaster.pid"
}
join_standby() { # the primary
  rm -rf "${folder:?}/$standby"
  (cd / && as_postgres "$bin/pg_basebackup" -R -N -c fast -D "$folder/$standby" -d "host=127.0.0.1 port=${port[$1]} user=postgres")
  start_server "$standby"
  wait_until has_standby "$1"
}
has_standby() { [ "$(sql "$1" "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 1 ]; }
swap() { read -r primary standby <<< "$standby $primary"; }

node_ports=("$(free_port)" "$(free_port)")
start_node() {
  DATABASE_URL=$url SERVICE_KEY_FILE="$folder/keys/keys.json" HOST=127.0.0.1 PORT=${node_ports[$1]} CHAIN=none LOG_LEVEL=warn \
    REGISTRATIONS_PER_ADDRESS_PER_MINUTE=1000000 REGISTRATIONS_PER_ADDRESS_BURST=100000 RATE_PER_ADDRESS_PER_SECOND=10000 \
    PUBLIC_URL=http://drill.example node dist/src/main.js >> "$folder/node$1.log" 2>&1 &
  nodes[$1]=$!
}
address() { echo "http://127.0.0.1:${node_ports[$1]}"; }
is_ready() { curl --silent --fail --max-time 5 "$(address "$1")/ready"; }
is_running() { kill -0 "${nodes[$1]:-}" 2> /dev/null; }
start_nodes() {
  for node in 0 1; do is_running "$node" 2> /dev/null || start_node "$node"; done
  for node in 0 1; do wait_until is_ready "$node"; done
}
# A node that has found the second history rejects moves, or has exited and does not start.
has_refused() { ! is_running "$1" || curl --silent --max-time 5 "$(address "$1")/health" | grep -q 'not the one that was published'; }

# Continuously registers agents at both nodes and reads their checkpoints. Writes the registered agents, and the checkpoints by log id, to files.
cat > "$folder/watch.mjs" <<'WATCH'
import { appendFileSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
const [folder, ...nodes] = process.argv.slice(2);
const signal = () => AbortSignal.timeout(8_000);
async function register(node) {
  const { publicKey } = generateKeyPairSync('ed25519');
  const key = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url').toString('hex');
  const body = JSON.stringify({ pubkeyHex: `0x${key}`, walletAddress: `0x${key.slice(0, 40)}`, operatorEmail: 'a@example.org',
    personality: { loves: [], hates: [], expertise: [], style: '' } });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${node}/register`, { method: 'POST', headers, body, signal: signal() });
  if (response.status === 200) appendFileSync(`${folder}/registered`, `${(await response.json()).did}\n`);
}
async function look(node) {
  const { log } = await (await fetch(node, { signal: signal() })).json();
  const response = await fetch(`${node}${log.prefix}/checkpoint`, { signal: signal() });
  if (response.status !== 200) return;
  const [, size, root] = (await response.text()).split('\n');
  appendFileSync(`${folder}/served-${log.logId}`, `${size} ${root}\n`);
}
const repeat = async (work, node, pause) => { for (;;) await work(node).catch(() => {}).then(() => sleep(pause)); };
for (const node of nodes) void repeat(register, node, 20), void repeat(look, node, 50);
WATCH

# Verifies that the current log extends every served checkpoint and contains every registered agent.
cat > "$folder/verify.mjs" <<'VERIFY'
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const [folder, node] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${process.cwd()}/dist/src/tlog/${file}.js`).href);
const { rootOfTiles } = await load('tiled-tree');
const { tileAt, tilePath } = await load('tile');
const { log } = await (await fetch(node)).json();
const lines = (name) => [...new Set(readFileSync(`${folder}/${name}`, 'utf8').trim().split('\n'))];
for (const line of lines(`served-${log.logId}`)) {
  const [size, root] = line.split(' ');
  const read = (refs) => Promise.all(refs.map(async (ref) => {
    const response = await fetch(`${node}${log.prefix}/${tilePath(tileAt(ref, Number(size)))}`);
    return response.ok ? new Uint8Array(await response.arrayBuffer()) : undefined;
  }));
  const now = Buffer.from(await rootOfTiles(Number(size), read)).toString('base64');
  if (now !== root) throw new Error(`the checkpoint of ${size} lines was served with another root`);
}
const dids = lines('registered');
for (const did of dids) {
  const { status } = await fetch(`${node}/agents/${did}`);
  if (status !== 200) throw new Error(`${did} got its response and is not in the log: ${status}`);
}
console.log(`the log contains all ${dids.length} registrations, and extends all ${lines(`served-${log.logId}`).length} checkpoints`);
VERIFY

count_registered() { if [ -e "$folder/registered" ]; then wc -l < "$folder/registered"; else echo 0; fi; }
more_registered() { [ "$(count_registered)" -gt "$1" ]; }
largest_served() { cut -d' ' -f1 "$folder/served-$log_id" | sort -n | tail -1; }
served_beyond() { [ "$(largest_served)" -gt "$1" ]; }
one_root_each() { [ "$(sort -u "$folder/served-$log_id" | cut -d' ' -f1 | uniq -d | wc -l)" = 0 ]; }
read_log_id() { log_id=$(sql "$primary" "SELECT value FROM meta WHERE name = 'log_id'"); }
busy() { # waits until both nodes have accepted moves and published them
  wait_until more_registered $(($(count_registered) + ${1:-10}))
  wait_until served_beyond "$(largest_served)"
}
verify() { node "$folder/verify.mjs" "$folder" "$(address 0)" || fail 'the log lacks a registration or contradicts a checkpoint'; }

prepare() { # takes the standbys that commits wait for
  standby_names=$1 primary=one standby=two
  for server in one two; do kill_server "$server"; rm -rf "${folder:?}/$server"; done
  rm -rf "$folder/keys" "$folder/registered" "$folder"/served-*
  mkdir "$folder/keys"
  (cd / && as_postgres "$bin/initdb" -N -D "$folder/one" --auth=trust -U postgres --encoding=UTF8 --locale=C > /dev/null)
  start_server one
  join_standby one
  start_nodes
  read_log_id
  node "$folder/watch.mjs" "$folder" "$(address 0)" "$(address 1)" &
  watcher=$!
  wait_until test -s "$folder/served-$log_id"
}
stop_all() {
  kill -KILL "$watcher" && wait "$watcher" 2> /dev/null || true
  watcher=
  stop_nodes
}
stop_nodes() {
  for node in 0 1; do kill -KILL "${nodes[$node]}" 2> /dev/null && wait "${nodes[$node]}" 2> /dev/null || true; done
}

echo '# A standby that commits wait for'
prepare '*'
for round in $(seq "$rounds"); do
  busy
  echo "$round.1 the primary is killed, and stays away"
  kill_server "$primary"
  echo "$round.2 the standby is promoted"
  sql "$standby" 'SELECT pg_promote()' > /dev/null
  swap
  echo "$round.4 the old primary rejoins as a standby"
  join_standby "$primary"
  echo "$round.3 every node accepts moves"
  start_nodes
  registered=$(count_registered)
  wait_until more_registered "$registered"
  one_root_each || fail 'a checkpoint was served with two roots'
done
verify
stop_all

echo '# A standby that no commit waits for, and that lacks moves'
prepare ''
wait_until sh -c "curl --silent '$(address 0)/health' | grep -q synchronous_standby_names"
for round in $(seq "$rounds"); do
  busy
  # Stops replication: nothing reaches the standby from here on.
  kill -STOP "$(sql "$primary" 'SELECT pid FROM pg_stat_replication')"
  busy 3
  echo "$round.1 the primary is killed, and stays away"
  kill_server "$primary"
  before=$(largest_served)
  echo "$round.2 the standby is promoted, without the newest lines"
  sql "$standby" 'SELECT pg_promote()' > /dev/null
  echo "$round.3 no node accepts moves"
  for node in 0 1; do wait_until has_refused "$node"; done
  [ "$(largest_served)" = "$before" ] && one_root_each || fail 'a second history was published'
  if [ $((round % 2)) = 1 ]; then
    echo "$round   the old primary still has its disk: the promoted server is stopped, and the old primary started again"
    kill_server "$standby"
    start_server "$primary"
    start_nodes
  else
    echo "$round   the old primary is gone: chambers new-log"
    stop_nodes
    swap
    DATABASE_URL=$url SERVICE_KEY_FILE="$folder/keys/keys.json" node dist/src/cli.js new-log > /dev/null 2>> "$folder/new-log.log" \
      || fail 'chambers new-log'
    rm "$folder/registered"
    read_log_id
    start_nodes
    wait_until test -s "$folder/served-$log_id"
  fi
  wait_until more_registered "$(count_registered)"
  verify
  echo "$round.4 the other server rejoins as a standby"
  join_standby "$primary"
done
busy
verify
echo "${SECONDS} s: no accepted line was lost while commits waited for the standby, and no second history was published"
