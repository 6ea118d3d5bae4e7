// Erasing an agent removes its e-mail address from every byte of the database, and nothing else.
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hiddenSignatureKey } from '../../../src/crypto/http-signature.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';
import { eraseAgent } from '../../../src/log/sqlite/erase.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { fsckLog } from '../../durability/log-book.ts';
import { Signer } from '../../kit/signer.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { registrationOf, TestService } from '../../kit/test-service.ts';
import { asSchema2, entry } from '../entries.ts';

const AGENTS = 200;
const SECRET = 'secret-address@example.org';

/** Registers many agents, so that the contacts fill several pages; one agent has a secret address, which replaced another. */
async function register(path: string) {
  const service = new TestService({ path });
  const by = new Signer();
  const send = (signer: Signer, operatorEmail: string, created = service.clock.seconds) =>
    service.must('POST', '/register', { by: signer, body: { ...registrationOf(signer), operatorEmail }, created });
  const others = (from: number) =>
    Array.from({ length: AGENTS / 2 }, (_, index) =>
      service.agent({ operatorEmail: `agent-${from + index}@example.org` }),
    );
  await Promise.all(others(0));
  await send(by, `old-${SECRET}`);
  await Promise.all(others(AGENTS / 2));
  await send(by, SECRET, service.clock.seconds - 1);
  const { operatorEmail: _, ...body } = registrationOf(by);
  const attestation = service.prepare('POST', '/register', { by, body });
  await service.send(attestation);
  await service.store.callbacks.put({ did: by.did, url: `https://agent.example/${SECRET}`, since: 1 });
  const { ndjson } = await service.log.readPage(by.did, 0, 10);
  return { service, by, attestation, ndjson };
}

function bytesOf(path: string): string {
  const folder = dirname(path);
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('');
}

describe('erasing an agent', { timeout: 30_000 }, () => {
  it('erasing an agent removes every byte of its e-mail addresses and callback, and nothing else', async () => {
    const path = temporaryDatabase();
    const { service, by, attestation, ndjson } = await register(path);
    await service.close();
    expect(bytesOf(path)).toContain(SECRET);
    expect(eraseAgent(path, by.did)).toEqual({
      did: by.did,
      emailAddresses: 1,
      callbacks: 1,
      signatures: 2,
      linesKept: 0,
    });
    expect(bytesOf(path)).not.toContain(SECRET);
    expect(bytesOf(path)).toContain('agent-7@example.org');
    expect(await fsckLog(path)).toMatchObject({ faults: 0, accounts: AGENTS + 1 });
    const restarted = new TestService({ path, clock: service.clock });
    expect((await restarted.log.readPage(by.did, 0, 10)).ndjson).toEqual(ndjson);
    restarted.clock.advance(3_600_000);
    expect(await restarted.send(attestation)).toMatchObject({ status: 200 });
  });

  it('erasing an agent removes the bytes that a killed service left in the -wal file', async () => {
    const [live, path] = [temporaryDatabase(), temporaryDatabase()];
    const { service, by } = await register(live);
    for (const suffix of ['', '-wal']) copyFileSync(live + suffix, path + suffix);
    await service.close();
    expect(readFileSync(`${path}-wal`, 'latin1')).toContain(SECRET);
    expect(eraseAgent(path, by.did)).toMatchObject({ emailAddresses: 1 });
    expect(bytesOf(path)).not.toContain(SECRET);
  });

  it('erasing an agent may be repeated, and is rejected while a service runs or for an unknown agent', async () => {
    const path = temporaryDatabase();
    const { service, by } = await register(path);
    expect(() => eraseAgent(path, by.did)).toThrow('another process is using it');
    await service.close();
    eraseAgent(path, by.did);
    expect(eraseAgent(path, by.did)).toMatchObject({ emailAddresses: 0, signatures: 0 });
    expect(() => eraseAgent(path, 'did:key:nobody')).toThrow('agent did:key:nobody not found');
    expect(() => eraseAgent(`${path}.missing`, by.did)).toThrow('cannot read the database');
  });

  it('erasing an agent works on a backup', async () => {
    const path = temporaryDatabase();
    const { service, by } = await register(path);
    const copy = temporaryDatabase();
    await backupDatabase(path, copy);
    await service.close();
    expect(bytesOf(copy)).toContain(SECRET);
    eraseAgent(copy, by.did);
    expect(bytesOf(copy)).not.toContain(SECRET);
  });
});

describe('a file of release 0.1.0', () => {
  it('a file of release 0.1.0 keeps its lines and registrations when an agent is erased', async () => {
    const path = temporaryDatabase();
    const did = 'did:key:a';
    const request = {
      body: null,
      contentDigest: '',
      method: 'POST',
      signature: '',
      signatureInput: '',
      targetUri: '',
    };
    const event = {
      chamberId: null,
      did,
      eventId: 1,
      payload: {},
      prev: '',
      request,
      ts: '1970-01-01T00:00:00.001Z',
      type: 'agent.registered',
    };
    const line = Buffer.from(JSON.stringify(event));
    const signature = 's'.repeat(72);
    const store = openSqliteStore(path);
    await store.log.append({ entries: [entry(did, 1, { line, signature, nodes: null })] });
    await store.close();
    const copy = temporaryDatabase();
    copyFileSync(path, copy);
    asSchema2(copy);
    await migrateDatabase(copy);
    const renewed = openSqliteStore(copy);
    const key = hiddenSignatureKey(signature);
    expect((await renewed.log.append({ entries: [], signatures: [key] })).found).toEqual(
      new Map([[key, line.toString()]]),
    );
    await renewed.close();
    expect(eraseAgent(copy, did)).toEqual({ did, emailAddresses: 0, callbacks: 0, signatures: 1, linesKept: 1 });
  });
});
