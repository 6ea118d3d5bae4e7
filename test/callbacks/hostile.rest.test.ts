// Receivers that hang, flood, redirect, reset or fail TLS delay only themselves, and cause no other connections.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { requireInstalled } from '../kit/programs.ts';
import { openReceiver, type Receiver } from '../kit/receiver.ts';
import { listen } from '../kit/serve.ts';
import type { Signer } from '../kit/signer.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { PUBLIC_URL, refusal, TestService, withAgent } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

const MEGABYTE = Buffer.alloc(1_048_576, 'x');

function flood(response: ServerResponse): void {
  const more = () => {
    while (!response.destroyed && response.write(MEGABYTE));
  };
  response.on('drain', more).on('error', () => {});
  more();
}

const HOSTILE: Readonly<Record<string, Receiver['respond'] & {}>> = {
  hangs: () => {},
  'sends its head and hangs': (_, response) => void response.writeHead(200).write('x'),
  'answers a gigabyte': (_, response) => flood(response),
  'redirects to 169.254.169.254': (_, response) =>
    void response.writeHead(302, { Location: 'http://169.254.169.254/latest/meta-data' }).end(),
  resets: (_, response) => void response.socket?.resetAndDestroy(),
  'speaks no HTTP': (_, response) => void response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n'),
  'sends a long head': (_, response) =>
    void response.socket?.end(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`),
  upgrades: (_, response) =>
    void response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  'sends 103 without end': (_, response) => {
    const timer = setInterval(() => response.socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 100);
    response.on('close', () => clearInterval(timer));
  },
};

describe('hostile receivers', { timeout: 120_000 }, () => {
  it('hostile receivers delay no other receiver, and are retried', async () => {
    const service = new TestService({ settings: { CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR: '1000' } });
    service.composed.calling.start(PUBLIC_URL);
    const connect = vi.spyOn(Socket.prototype, 'connect');
    const agents: { readonly title: string; readonly by: Signer; readonly receiver: Receiver }[] = [];
    for (const [title, respond] of Object.entries(HOSTILE)) {
      for (let copy = 0; copy < 4; copy++) {
        const [by, receiver] = [await service.agent(), await openReceiver()];
        await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
        receiver.respond = respond;
        agents.push({ title, by, receiver });
      }
    }
    const healthy = { by: await service.agent(), receiver: await openReceiver() };
    await service.must('PUT', '/me/callback', { by: healthy.by, body: { url: healthy.receiver.url } });
    const ids = await Promise.all([...agents, healthy].map(({ by }) => openChamber(service, [by])));
    await enterPhase(service, ids[0] ?? 0, 'PROPOSAL');
    await eventually(() => expect(healthy.receiver.deliveries.length).toBe(1), 15_000);
    // The second round runs while all hostile receivers are failing.
    const failing = () => {
      for (const { title, receiver } of agents)
        expect([title, receiver.deliveries.length]).toEqual([title, expect.toSatisfy((count) => count >= 2)]);
    };
    await eventually(failing, 60_000);
    await enterPhase(service, ids[0] ?? 0, 'ALLOCATE_COMMIT');
    await eventually(() => expect(healthy.receiver.deliveries.length).toBe(2), 15_000);
    const hosts = connect.mock.calls.map((call) => hostOf(call));
    connect.mockRestore();
    expect([...new Set(hosts)]).toEqual(['127.0.0.1']);
    await eventually(async () => {
      const [{ by } = healthy] = agents;
      const { lastDelivery } = await service.must('GET', '/me/callback', { by });
      expect(lastDelivery.status).toBeNull();
    });
    expect(service.composed.calling.state().delivered).toBe(2);
  });

  it('hostile receivers that hang do not stop deliveries to other receivers at their address', async () => {
    const service = new TestService({ settings: { CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR: '1000' } });
    service.composed.calling.start(PUBLIC_URL);
    const receiver = await openReceiver();
    const agents = await Promise.all(Array.from({ length: 10 }, () => service.agent()));
    const [ann, bob, ...hanging] = agents;
    if (ann === undefined || bob === undefined) return expect.fail('too few agents');
    for (const by of agents) await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
    const dids = new Set(hanging.map(({ did }) => did));
    receiver.respond = ({ body }, response) => void (dids.has(body.did) || response.writeHead(204).end());
    const ids = await Promise.all(agents.map((by) => openChamber(service, [by])));
    const deliveries = (must: string) =>
      receiver.deliveries.filter(({ body }) => !dids.has(body.did) && body.due.must === must).length;
    await enterPhase(service, ids[0] ?? 0, 'PROPOSAL');
    await eventually(() => expect(deliveries('pass')).toBe(2), 60_000);
    await enterPhase(service, ids[0] ?? 0, 'ALLOCATE_COMMIT');
    await eventually(() => expect(deliveries('commit')).toBe(2), 5_000);
    const late = await service.agent();
    receiver.respond = undefined;
    await service.must('PUT', '/me/callback', { by: late, body: { url: receiver.url } });
  });

  it.each(Object.keys(HOSTILE))('a receiver that %s is not accepted as a callback', async (title) => {
    const { service, by } = await withAgent();
    const receiver = await openReceiver();
    receiver.respond = HOSTILE[title];
    const startedAt = performance.now();
    const answer = await service.request('PUT', '/me/callback', { by, body: { url: receiver.url } });
    expect(answer).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'the challenge was'));
    expect(performance.now() - startedAt).toBeLessThan(8_000);
    expect(await service.must('GET', '/me/callback', { by })).toMatchObject({ url: null });
  });

  it('hostile receivers over TLS need a valid certificate for their name from a trusted authority', async ({
    skip,
  }) => {
    requireInstalled(skip, 'openssl');
    const folder = temporaryFolder();
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const words = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=agent.example';
    const names = ['-addext', 'subjectAltName=DNS:agent.example', '-keyout', key, '-out', cert];
    execFileSync('openssl', [...words.split(' '), ...names], { stdio: 'pipe' });
    const seen: string[] = [];
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      seen.push(text);
      response.end(JSON.stringify({ challenge: JSON.parse(text).challenge }));
    });
    atEnd(() => void server.close().closeAllConnections());
    const { port } = new URL(await listen(server));
    const put = async (host: string, ca?: string) => {
      const { service, by } = await withAgent({
        callbackNetwork: { resolve: async () => ['127.0.0.1'], ...(ca !== undefined && { ca }) },
      });
      return service.request('PUT', '/me/callback', { by, body: { url: `https://${host}:${port}/wake` } });
    };
    const ca = readFileSync(cert, 'utf8');
    expect(await put('agent.example')).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'TLS failed'));
    expect(await put('other.example', ca)).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'TLS failed'));
    expect(seen).toEqual([]);
    expect(await put('agent.example', ca)).toMatchObject({ status: 200 });
    const plain = await openReceiver();
    const { service, by } = await withAgent();
    const url = plain.url.replace('http:', 'https:');
    expect(await service.request('PUT', '/me/callback', { by, body: { url } })).toMatchObject(
      refusal(400, 'FORUM_ERR_CALLBACK', 'TLS failed'),
    );
  });

  it('hostile receivers cause an error after 5 s if their name server is silent', async () => {
    const { service, by } = await withAgent({ callbackNetwork: { resolve: () => new Promise(() => {}) } });
    const answer = await service.request('PUT', '/me/callback', { by, body: { url: 'https://silent.example/' } });
    expect(answer).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'no response within 5 s'));
  });
});

/** Node passes its normalised arguments as one array. */
function hostOf([first]: readonly unknown[]): unknown {
  const [options] = Array.isArray(first) ? first : [first];
  return (options as { readonly host?: unknown }).host;
}
