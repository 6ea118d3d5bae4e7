// Appends and publishes as fast as possible until it is killed, and prints each note once it is published.

import { publicKeyOf } from '../../src/keys/private-key.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { SOLE_LEASE } from '../../src/log/store.ts';
import { checkpointSigner, publishOnce } from '../../src/publisher/publisher.ts';
import { type ForumEvent, toLine } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';

const [, , path = ''] = process.argv;
const store = openSqliteStore(path);
const seed = new Uint8Array(32).fill(7);
const signer = checkpointSigner('forum.test/log/1', { seed, publicKey: publicKeyOf(seed) });
const did = `did:key:z${process.pid}`;

for (let eventId = 1; ; ) {
  const entries = Array.from({ length: 1 + Math.floor(Math.random() * 200) }, () => {
    const ts = new Date(eventId).toISOString();
    const event = { chamberId: null, did, eventId, payload: {}, prev: NO_PREVIOUS, request: null, ts, type: 'test' };
    const line = Buffer.from(toLine(event as unknown as ForumEvent));
    return { stream: did, eventId: eventId++, at: eventId, line, signature: null, nodes: null, listings: [] };
  });
  await store.log.append({ entries });
  const published = await publishOnce({ tree: store.tree, lease: SOLE_LEASE, signer: async () => signer });
  if (published !== undefined) process.stdout.write(`${JSON.stringify(published.note)}\n`);
}
