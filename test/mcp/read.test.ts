// The tool `read`: its result has at most the bytes that were asked for, and reading on shows every event.
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { openSeat, type TestSeat } from './seat-in-process.ts';

const IDEAS = 256;

interface Read {
  readonly topic: string;
  readonly ideas: readonly { readonly ideaId: string }[];
  readonly ideasLeftOut: number;
  readonly transcript: string;
  readonly next: number;
  readonly more: boolean;
}

async function openLongChamber({ service }: TestSeat): Promise<number> {
  const ann = await service.agent();
  const name = '"界'.repeat(60);
  const chamberId = await openChamber(service, [ann], { name, topic: '界'.repeat(2_000) });
  await enterPhase(service, chamberId, 'PROPOSAL');
  for (let n = 1; n <= IDEAS; n++) {
    const idea = { name, ticker: `T${n}`, description: '"\n'.repeat(n % 32 === 0 ? 4_096 : 1) };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: ann, body: idea });
  }
  return chamberId;
}

async function read({ client }: TestSeat, args: Readonly<Record<string, number>>) {
  const { content, structuredContent } = await client.callTool({ name: 'read', arguments: args });
  const text = content[0]?.type === 'text' ? content[0].text : '';
  expect(JSON.parse(text)).toEqual(structuredContent);
  return { result: structuredContent as unknown as Read, bytes: Buffer.byteLength(text) };
}

it('has at most maxBytes, however many ideas there are, and shows every event to a reader that goes on', {
  timeout: 60_000,
}, async () => {
  const seat = await openSeat();
  const chamberId = await openLongChamber(seat);
  for (const maxBytes of [2_000, 5_000, 16_384, 65_536]) {
    const shown: number[] = [];
    for (let after = 0, more = true; more; ) {
      const { result, bytes } = await read(seat, { chamberId, after, maxBytes });
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
