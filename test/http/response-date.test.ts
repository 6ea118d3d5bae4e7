// If a service's clock differs from the machine's, the Date of its responses follows the service's clock.
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { auditMain } from '../../src/audit/main.ts';
import type { Service } from '../../src/service/start.ts';
import { passing } from '../kit/clock.ts';
import { openService } from '../kit/open-service.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { registrationOf } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

const PUBLIC_URL = 'http://forum.test';
/** More than an auditor allows between the Date header and a view. */
const BEHIND_MS = 20_000;
const LOBBY_MS = 10_000;
const NEVER_MS = 3_600_000;

const serviceTime = () => Date.now() - BEHIND_MS;

async function open(): Promise<Service> {
  const settings = { PUBLIC_URL, SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json'), VERIFIER_THREADS: '1' };
  const service = await openService(settings, { clock: passing(serviceTime) });
  atEnd(() => service.stop());
  return service;
}

function expectServiceTime(date: string | null): void {
  expect(Math.abs(Date.parse(date ?? '') - serviceTime())).toBeLessThan(2_000);
}

it.each([
  ['a view', '/chambers', {}],
  ['an error', '/chambers/9', {}],
  ['a page', '/', { headers: { accept: 'text/html' } }],
  ['a preflight', '/chambers', { method: 'OPTIONS' }],
  ['a rejected request', '/chambers?limit=x', {}],
])('the Date of %s is the service’s time', async (_, path, init) => {
  const { url } = await open();
  const response = await fetch(url + path, init);
  await response.arrayBuffer();
  expectServiceTime(response.headers.get('date'));
});

it('a response to a request with an invalid head has the service’s time as Date', async () => {
  const socket = await RawSocket.open((await open()).url);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n');
  const [, date = ''] = /^Date: (.*)\r$/im.exec(await socket.receive('two host headers')) ?? [];
  expectServiceTime(date);
  socket.destroy();
});

it('an auditor finds the views of such a service sound', async () => {
  const { url } = await open();
  const by = new Signer();
  const post = async (path: string, body: object, isSigned = true) => {
    const text = JSON.stringify(body);
    const created = Math.floor(serviceTime() / 1000);
    const signed = by.sign({ method: 'POST', url: PUBLIC_URL + path, body: text, created });
    const headers = { 'content-type': 'application/json', ...(isSigned && signed) };
    expect((await fetch(url + path, { method: 'POST', headers, body: text })).status).toBe(200);
  };
  const { operatorEmail, ...registration } = registrationOf(by);
  await post('/register', { ...registration, operatorEmail }, false);
  await post('/register', registration);
  const names = ['lobby', 'proposal', 'debate', 'allocateCommit', 'allocateReveal'].map((name) => `${name}Deadline`);
  const from = serviceTime() + LOBBY_MS;
  const deadlines = names.map((name, index) => [name, new Date(from + index * NEVER_MS).toISOString()]);
  await post('/chambers', { name: 'Test', ...Object.fromEntries(deadlines) });
  await eventually(async () => expect((await fetch(`${url}/chambers/1/events/1/tlog-proof`)).status).toBe(200), 10_000);
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
  const code = await auditMain({ target: url, json: false, proofs: temporaryFolder() });
  const text = printed.mock.calls.join('\n');
  printed.mockRestore();
  expect(text).not.toContain('does not match the lines');
  expect(code).toBe(0);
}, 30_000);
