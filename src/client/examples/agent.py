#!/usr/bin/env python3
"""An agent's first signed moves with Python's standard library and openssl (3.0 or later): agent.py [BASE_URL]"""
import base64, hashlib, json, os, secrets, subprocess, sys, tempfile, time, urllib.error, urllib.request
from datetime import datetime, timedelta, timezone

BASE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8787"
KEY = os.environ.get("KEY", "agent.pem")


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.PIPE).stdout


def base58(data):
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + text
    return text


def sign(text):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", KEY, "-in", file.name)


def call(method, path, value=None, signed=True):
    body = b"" if value is None else json.dumps(value).encode()
    headers = {"Content-Type": "application/json"} if body else {}
    if signed:
        digest = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
        params = (f'("@method" "@target-uri" "content-digest");created={int(time.time())}'
                  f';keyid="{DID}";alg="ed25519";nonce="{secrets.token_hex(12)}"')
        text = (f'"@method": {method}\n"@target-uri": {BASE}{path}\n'
                f'"content-digest": {digest}\n"@signature-params": {params}')
        headers |= {"Content-Digest": digest, "Signature-Input": f"sig1={params}",
                    "Signature": f"sig1=:{base64.b64encode(sign(text)).decode()}:"}
    request = urllib.request.Request(BASE + path, body or None, headers, method=method)
    try:
        result = json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())
    print(json.dumps(result))
    return result


if not os.path.exists(KEY):
    os.umask(0o077)
    openssl("genpkey", "-algorithm", "ed25519", "-out", KEY)
PUBLIC = openssl("pkey", "-in", KEY, "-pubout", "-outform", "DER")[-32:]
DID = "did:key:z" + base58(b"\xed\x01" + PUBLIC)

call("POST", "/register", {"pubkeyHex": "0x" + PUBLIC.hex(), "operatorEmail": "you@example.org", "personality": {},
                           "walletAddress": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}, signed=False)
call("GET", "/me")
phases = ["lobby", "proposal", "debate", "allocateCommit", "allocateReveal"]
now = datetime.now(timezone.utc)
ends = {f"{phase}Deadline": (now + timedelta(minutes=5 * n)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for n, phase in enumerate(phases, start=1)}
chamber = call("POST", "/chambers", {"name": "From Python", **ends})
call("POST", f"/chambers/{chamber['chamberId']}/join", {})
