"""Verifies a proof of misbehaviour, written only from RFC 9421, RFC 9162 and the C2SP specifications, without the service's code.
Usage: check_proof.py FILE RECEIPTS_KEY CHECKPOINTS_KEY, where the keys are the thumbprint and the verifier key that the service publishes.
Prints the kind of a valid proof, and exits with an error otherwise."""

import base64
import hashlib
import json
import re
import sys
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def unbase64(text):
    return base64.b64decode(text, validate=True)


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def rotated(word, count):
    return (word << count | word >> 64 - count) & 0xFFFFFFFFFFFFFFFF


def keccak256(data):
    """https://keccak.team/keccak_specs_summary.html, with a rate of 136 bytes and the padding used before FIPS 202."""
    padded = bytearray(data) + b"\x01" + bytes(135 - len(data) % 136)
    padded[-1] |= 0x80
    state = [[0] * 5 for _ in range(5)]
    for start in range(0, len(padded), 136):
        for i in range(17):
            word = padded[start + 8 * i : start + 8 * i + 8]
            state[i % 5][i // 5] ^= int.from_bytes(word, "little")
        lfsr = 1
        for _ in range(24):
            parity = [column[0] ^ column[1] ^ column[2] ^ column[3] ^ column[4] for column in state]
            theta = [parity[(x + 4) % 5] ^ rotated(parity[(x + 1) % 5], 1) for x in range(5)]
            state = [[lane ^ theta[x] for lane in state[x]] for x in range(5)]
            x, y, moved = 1, 0, state[1][0]
            for t in range(24):
                x, y = y, (2 * x + 3 * y) % 5
                state[x][y], moved = rotated(moved, (t + 1) * (t + 2) // 2 % 64), state[x][y]
            state = [
                [state[x][y] ^ (~state[(x + 1) % 5][y] & state[(x + 2) % 5][y]) for y in range(5)] for x in range(5)
            ]
            for j in range(7):
                lfsr = (lfsr << 1 ^ (lfsr >> 7) * 0x71) % 256
                if lfsr & 2:
                    state[0][0] ^= 1 << (1 << j) - 1
    return b"".join(state[i % 5][i // 5].to_bytes(8, "little") for i in range(4))


def leaf_of(line):
    return keccak256(keccak256(line.encode()))


def sha256(data):
    return hashlib.sha256(data).digest()


def node(left, right):
    return sha256(b"\x01" + left + right)


def tree_root(entries):
    """RFC 6962, 2.1."""
    if len(entries) == 1:
        return sha256(b"\x00" + entries[0])
    half = 1
    while half * 2 < len(entries):
        half *= 2
    return node(tree_root(entries[:half]), tree_root(entries[half:]))


def receipt(kept, trusted_key):
    """RFC 9421, 2.5: returns (log, stream, event, leaf, created)."""
    key = kept["key"]
    required = '{"crv":"%s","kty":"%s","x":"%s"}' % (key["crv"], key["kty"], key["x"])
    thumbprint = base64.urlsafe_b64encode(sha256(required.encode())).decode().rstrip("=")
    assert thumbprint == trusted_key, "the receipt is not of the service's key"
    request, response = kept["request"], kept["response"]
    label, params = re.fullmatch(r"(\w+)=(\(.*)", response["signatureInput"]).groups()
    assert f';keyid="{thumbprint}"' in params and ';tag="chamber-receipt"' in params
    assert response["contentDigest"] == "sha-256=:%s:" % base64.b64encode(sha256(response["body"].encode())).decode()
    values = {
        '"@status"': str(response["status"]),
        '"content-digest"': response["contentDigest"],
        '"event"': response["event"],
        '"log-id"': response["logId"],
        '"@method";req': request["method"],
        '"@target-uri";req': request["targetUri"],
        '"content-digest";req': request["contentDigest"],
        '"signature-input";req;key="sig1"': re.fullmatch(r"sig1=(.*)", request["signatureInput"])[1],
        '"signature";req;key="sig1"': re.fullmatch(r"sig1=(.*)", request["signature"])[1],
    }
    covered = params[1 : params.index(")")].split(" ")
    assert sorted(covered) == sorted(values)
    base = "\n".join([f"{name}: {values[name]}" for name in covered] + [f'"@signature-params": {params}'])
    signature = unbase64(re.fullmatch(label + "=:(.*):", response["signature"])[1])
    Ed25519PublicKey.from_public_bytes(unbase64url(key["x"])).verify(signature, base.encode())
    stream, event, leaf = re.fullmatch(r"(.+);id=(\d+);leaf=:(.*):", response["event"]).groups()
    created = int(re.search(r";created=(\d+)", params)[1])
    return response["logId"], stream.strip('"'), int(event), unbase64(leaf), created


def note_key(verifier_key):
    name, key_id, encoded = re.fullmatch(r"([^+]+)\+([0-9a-f]{8})\+(.*)", verifier_key).groups()
    data = unbase64(encoded)
    assert sha256(name.encode() + b"\n" + data)[:4].hex() == key_id
    return name, bytes.fromhex(key_id), data[0], Ed25519PublicKey.from_public_bytes(data[1:])


def signatures(note, name, key_id):
    _, lines = note.rsplit("\n\n", 1)
    for line in lines.splitlines():
        _, signer, encoded = line.split(" ")
        data = unbase64(encoded)
        if signer == name and data[:4] == key_id:
            yield data[4:]


def checkpoint(note, verifier_key):
    """C2SP signed-note and tlog-checkpoint: returns (log, size, root)."""
    name, key_id, kind, key = note_key(verifier_key)
    text = note.rsplit("\n\n", 1)[0] + "\n"
    (signature,) = signatures(note, name, key_id)
    assert kind == 1
    key.verify(signature, text.encode())
    origin, size, root = text.split("\n")[:3]
    assert origin == name
    return origin.rsplit("/", 1)[1], int(size), unbase64(root)


def cosigned_at(note, witness):
    """C2SP tlog-cosignature."""
    name, key_id, kind, key = note_key(witness)
    text = note.rsplit("\n\n", 1)[0] + "\n"
    assert kind == 4
    for signature in signatures(note, name, key_id):
        at = int.from_bytes(signature[:8], "big")
        key.verify(signature[8:], f"cosignature/v1\ntime {at}\n{text}".encode())
        return at
    return 0


def check_inclusion(index, size, leaf_hash, hashes, root):
    """RFC 9162, 2.1.3.2."""
    fn, sn, r = index, size - 1, leaf_hash
    for p in hashes:
        assert sn != 0
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0 and r == root, "the inclusion proof does not hold"


def root_within(first, second, path, root):
    """RFC 9162, 2.1.4.2: returns the root of the first leaves, if the path proves that the tree contains it."""
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        assert sn != 0
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0 and sr == root, "the path does not belong to the checkpoint"
    return fr


def check_tlog_proof(text, entry, verifier_key):
    """C2SP tlog-proof: returns (log, index)."""
    head, note = text.split("\n\n", 1)
    version, index, *hashes = head.split("\n")
    assert version == "c2sp.org/tlog-proof@v1"
    log, size, root = checkpoint(note, verifier_key)
    index = int(re.fullmatch(r"index (\d+)", index)[1])
    check_inclusion(index, size, sha256(b"\x00" + entry), [unbase64(each) for each in hashes], root)
    return log, index


def check(proof, receipts_key, checkpoints_key):
    assert proof["format"] == "chambers-misbehaviour@v1"
    kind = proof["kind"]
    if kind == "two-receipts":
        one, other = [receipt(each, receipts_key) for each in proof["receipts"]]
        assert one[:3] == other[:3] and one[3] != other[3]
    elif kind == "receipt-and-line":
        log, stream, event, leaf, _ = receipt(proof["receipt"], receipts_key)
        line = json.loads(proof["line"])
        assert str(line["chamberId"] or line["did"]) == stream and line["eventId"] == event
        entry = leaf_of(proof["line"])
        assert entry != leaf
        assert check_tlog_proof(proof["tlogProof"], entry, checkpoints_key)[0] == log
    elif kind == "receipt-and-checkpoint":
        log, _, _, leaf, created = receipt(proof["receipt"], receipts_key)
        log_of_note, size, root = checkpoint(proof["checkpoint"], checkpoints_key)
        assert log_of_note == log
        data = unbase64(proof["entries"])
        entries = [data[i : i + 32] for i in range(0, len(data), 32)]
        assert len(entries) == size and tree_root(entries) == root and leaf not in entries
        times = [cosigned_at(proof["checkpoint"], witness) for witness in proof["witnesses"]]
        later = proof["laterLine"]
        if later is not None and leaf_of(later) in entries:
            times.append(datetime.fromisoformat(json.loads(later)["ts"].replace("Z", "+00:00")).timestamp())
        assert max(times) >= created + 60, "nothing shows that the checkpoint is later"
    elif kind == "two-lines":
        events, places = [], []
        for text, tlog_proof in zip(proof["lines"], proof["tlogProofs"]):
            line = json.loads(text)
            log, index = check_tlog_proof(tlog_proof, leaf_of(text), checkpoints_key)
            events.append((log, line["chamberId"] or line["did"], line["eventId"]))
            places.append((index, leaf_of(text)))
        assert events[0] == events[1] and places[0] != places[1]
    elif kind == "two-checkpoints":
        one, other = [checkpoint(note, checkpoints_key) for note in proof["checkpoints"]]
        assert one[0] == other[0]
        path = [unbase64(each) for each in proof["path"]]
        root = other[2] if one[1] == other[1] else root_within(one[1], other[1], path, other[2])
        assert root != one[2], "the larger log extends the smaller one"
    else:
        raise AssertionError(f"unknown kind {kind}")
    return kind


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(check(json.load(file), *sys.argv[2:]))
