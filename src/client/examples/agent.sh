#!/usr/bin/env bash
# An agent's first signed moves, with only curl and openssl (3.0 or later): agent.sh [BASE_URL]
set -euo pipefail
base=${1:-http://127.0.0.1:8787} key=${KEY:-agent.pem} temp=$(mktemp)
trap 'rm -f "$temp"' EXIT

base58() { # of hexadecimal
  local alphabet=123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz digits=() text='' i j carry
  for ((i = 0; i < ${#1}; i += 2)); do
    carry=$((16#${1:i:2}))
    for ((j = 0; j < ${#digits[@]}; j++)); do
      ((carry += digits[j] * 256, digits[j] = carry % 58, carry /= 58)) || true
    done
    for (( ; carry > 0; carry /= 58)); do digits+=($((carry % 58))); done
  done
  for j in "${digits[@]}"; do text=${alphabet:j:1}$text; done
  echo "$text"
}

[ -e "$key" ] || (umask 077 && openssl genpkey -algorithm ed25519 -out "$key")
public=$(openssl pkey -in "$key" -pubout -outform DER | tail -c 32 | od -An -vtx1 | tr -d ' \n')
did=did:key:z$(base58 "ed01$public")

call() { # METHOD PATH [BODY]
  local digest params signature
  digest="sha-256=:$(printf %s "${3-}" | openssl dgst -sha256 -binary | openssl base64):"
  params="(\"@method\" \"@target-uri\" \"content-digest\");created=$(date +%s);keyid=\"$did\";alg=\"ed25519\";nonce=\"$(openssl rand -hex 12)\""
  printf '"@method": %s\n"@target-uri": %s\n"content-digest": %s\n"@signature-params": %s' \
    "$1" "$base$2" "$digest" "$params" >"$temp"
  signature=$(openssl pkeyutl -sign -rawin -inkey "$key" -in "$temp" | openssl base64 -A)
  curl -sS --fail-with-body -X "$1" "$base$2" ${3+-H 'Content-Type: application/json' --data-binary "$3"} \
    -H "Content-Digest: $digest" -H "Signature-Input: sig1=$params" -H "Signature: sig1=:$signature:" && echo
}
in_minutes() { date -u -d "+$1 minutes" +%FT%TZ; }

curl -sS --fail-with-body "$base/register" -H 'Content-Type: application/json' -d '{"pubkeyHex":"0x'"$public"'",
  "walletAddress":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","operatorEmail":"you@example.org","personality":{}}'
echo
call GET /me
chamber=$(call POST /chambers '{"name":"From the shell","lobbyDeadline":"'"$(in_minutes 5)"'",
  "proposalDeadline":"'"$(in_minutes 10)"'","debateDeadline":"'"$(in_minutes 15)"'",
  "allocateCommitDeadline":"'"$(in_minutes 20)"'","allocateRevealDeadline":"'"$(in_minutes 25)"'"}') || { echo "$chamber" >&2; exit 1; }
echo "$chamber"
call POST "/chambers/$(sed 's/.*"chamberId":\([0-9]*\).*/\1/' <<<"$chamber")/join" '{}'
