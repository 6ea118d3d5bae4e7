// The tool `read`: its result has at most the requested number of bytes, and continued reads show every event.
import { expect, it } from 'vitest';
import { createReadingHandler } from '../../src/mcp/reading-server.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { TestService } from '../kit/test-service.ts';

const IDEAS = 256;

interface Read {
  readonly topic: string;
  readonly ideas: readonly { readonly ideaId: string }[];
  readonly ideasLeftOut: number;
  readonly transcript: string;
  readonly next: number;
  readonly more: boolean;
}

interface Setting {
  readonly service: TestService;
  readonly chamberId: number;
}

async function open(): Promise<Setting> {
  const service = new TestService();
  const ann = await service.agent();
  const name = '"界'.repeat(60);
  const chamberId = await openChamber(service, [ann], { name, topic: '界'.repeat(2_000) });
  await enterPhase(service, chamberId, 'PROPOSAL');
  for (let n = 1; n <= IDEAS; n++) {
    const idea = { name, ticker: `T${n}`, description: '"\n'.repeat(n % 32 === 0 ? 4_096 : 1) };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: ann, body: idea });
  }
  return { service, chamberId };
}

async function read(
  { service, chamberId }: Setting,
  args: object,
): Promise<{ readonly result: Read; readonly bytes: number }> {
  const handler = createReadingHandler('test', {
    baseOf: () => 'http://localhost',
    fetch: async (request) => await service.app.fetch(request, {}),
  });
  const params = { name: 'read', arguments: { chamberId, ...args } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await handler.fetch(new Request('http://localhost/mcp', { method: 'POST', headers, body }));
  const { result } = JSON.parse((await response.text()).replace(/^[\s\S]*?data: /, '')) as {
    readonly result: { readonly content: readonly [{ readonly text: string }]; readonly structuredContent: Read };
  };
  expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
  return { result: result.structuredContent, bytes: Buffer.byteLength(result.content[0].text) };
}

it('read returns at most maxBytes for any number of ideas, and continued reads show every event', {
  timeout: 60_000,
}, async () => {
  const setting = await open();
  for (const maxBytes of [2_000, 5_000, 16_384, 65_536]) {
    const shown: number[] = [];
    for (let after = 0, more = true; more; ) {
      const { result, bytes } = await read(setting, { after, maxBytes });
      expect(bytes).toBeLessThanOrEqual(maxBytes);
      if (after === 0) expect(result.ideas.length + result.ideasLeftOut).toBe(IDEAS);
      else expect(result).not.toHaveProperty('ideas');
      shown.push(...[...result.transcript.matchAll(/^(\d+)\. /gm)].map(([, eventId]) => Number(eventId)));
      expect(result.next).toBe(shown.at(-1));
      ({ next: after, more } = result);
    }
    expect(shown).toEqual(Array.from({ length: IDEAS + 2 }, (_, n) => n + 1));
  }
});
