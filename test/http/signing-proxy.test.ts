// Every signed endpoint works behind a proxy that signs with its own label, and the evidence has the proxy's signature.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import { Agent, type ChamberEvent, ForumClient } from '../../src/client/index.ts';
import { httpRoutes } from '../../src/http/app.ts';
import { newChamber, openLiveService, PHASE_MILLIS, REGISTRATION } from '../client/live-service.ts';
import { Signer } from '../kit/signer.ts';
import { openSigningProxy } from '../kit/signing-proxy.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { registrationOf } from '../kit/test-service.ts';

async function start(options?: { readonly hasOwnLine: boolean }) {
  const proxy = await openSigningProxy(options);
  const live = await openLiveService({ PUBLIC_URL: proxy.url });
  atEnd(() => live.stop());
  proxy.forwardTo(live.baseUrl);
  const agent = () => Agent.generate(new ForumClient(proxy.url, live.sharedTime));
  return { proxy, live, agent };
}

const SIGNED = httpRoutes.filter(({ signed }) => signed !== undefined);

describe('behind a proxy that signs', () => {
  it.each([false, true])(
    'a chamber can be played, and its lines are sound (own header lines: %s)',
    async (hasOwnLine) => {
      const { proxy, live, agent } = await start({ hasOwnLine });
      const [ann, bob] = [agent(), agent()];
      for (const each of [ann, bob]) await each.register(REGISTRATION);
      await ann.changePersonality({ style: 'dry' });
      const { chamberId } = await ann.createChamber(newChamber(live.now()));
      for (const each of [ann, bob]) await each.joinChamber(chamberId);
      live.advance(PHASE_MILLIS);
      await ann.propose(chamberId, { name: 'Idea', ticker: 'IDEA' });
      await ann.pass(chamberId);
      live.advance(PHASE_MILLIS);
      await ann.debate(chamberId, { comment: 'Hm, "yes".' });
      expect((await ann.me()).did).toBe(ann.did);
      expect((await bob.todo()).todo).toMatchObject([{ chamberId, must: 'wait' }]);
      live.advance(PHASE_MILLIS);
      for (const each of [ann, bob]) await each.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
      live.advance(PHASE_MILLIS);
      for (const each of [ann, bob]) await each.reveal(chamberId);
      const lines: string[] = [];
      for await (const { line, event } of live.forum.history(chamberId)) {
        lines.push(`${line}\n`);
        const { request } = event as ChamberEvent;
        expect(request?.signatureInput).toMatch(/^sig1=.*, proxy=\("@method" "@authority" "signature";key="sig1"\)/);
        expect(request?.signature).toMatch(/^sig1=:.*:, proxy=:.*:$/);
      }
      expect(lines).toHaveLength(10);
      const file = join(temporaryFolder(), 'lines.ndjson');
      writeFileSync(file, lines.join(''));
      expect(await auditFile(file, { now: live.now })).toMatchObject({ verdict: 'verified', brokenEvents: [] });
      expect(proxy.forwarded.every(({ signatureInput }) => signatureInput.includes('proxy='))).toBe(true);
    },
  );

  it.each(SIGNED.map(({ method, path, body }) => [method.toUpperCase(), path, body?.example] as const))(
    '%s %s accepts the signature of its agent',
    async (method, path, example) => {
      const { proxy, live } = await start();
      const by = new Signer();
      await expectStatus(200, fetch(`${proxy.url}/register`, post(JSON.stringify(registrationOf(by)))));
      const target = path.replace(':id', '1').replace(':did', by.did);
      // A registration must be signed by the key that it registers.
      const own = path === '/register' ? registrationOf(by) : example;
      const body = own === undefined ? undefined : JSON.stringify(own);
      const created = Math.floor(live.now() / 1000);
      const headers = by.sign({ method, url: proxy.url + target, body, created });
      const response = await fetch(proxy.url + target, { ...post(body, headers), method });
      expect(response.status, await response.text()).not.toBe(401);
    },
  );
});

function post(body: string | undefined, headers: Readonly<Record<string, string>> = {}): RequestInit {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  return { method: 'POST', headers: { ...type, ...headers }, ...(body === undefined ? {} : { body }) };
}

async function expectStatus(status: number, sent: Promise<Response>): Promise<void> {
  const response = await sent;
  expect(response.status, await response.text()).toBe(status);
}
