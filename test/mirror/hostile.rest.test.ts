// A hostile log with valid signatures and proofs: it costs a mirror bounded memory, and cannot redirect it to another host.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Mirror } from '../../src/mirror/mirror.ts';
import { NotServed } from '../../src/mirror/published-log.ts';
import { ALICE } from '../../src/moves/samples.ts';
import { AGAIN, Costs } from '../client/cost.ts';
import { type LoggedLine, lineAfter, STATIC_LOG_ID, serveLog } from '../kit/static-log.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const MEBIBYTE = 1024 * 1024;
const COST_MIB_MAX = 64;

async function step(url: string): Promise<unknown> {
  const mirror = await Mirror.open({ url, folder: temporaryFolder() });
  try {
    return await mirror.step();
  } finally {
    await mirror.close();
  }
}

describe('a log of a hostile service', () => {
  it('a log may claim any size; the mirror still requests only the first tile', async () => {
    const { url, requests } = await serveLog({ entries: [], size: 2 ** 50 });
    await expect(step(url)).rejects.toThrow(NotServed);
    expect(requests).toEqual(['/', `/log/${STATIC_LOG_ID}/checkpoint`, `/log/${STATIC_LOG_ID}/tile/entries/000`]);
  });

  it.each(['.evil.example', '@evil.example/log', ':1', `/log/${STATIC_LOG_ID}/..`, `/log/${STATIC_LOG_ID}?x=`])(
    'a log is rejected if its prefix is not its id: %s',
    async (prefix) => {
      const { url, requests } = await serveLog({ entries: [], prefix });
      await expect(step(url)).rejects.toThrow(/not under \/log\//);
      expect(requests).toEqual(['/']);
    },
  );
});

const costs = Costs.forThisFile();

/** Returns lines of one account. */
function chained(count: number, padding: number): readonly LoggedLine[] {
  const lines: LoggedLine[] = [];
  for (let i = 0; i < count; i++) lines.push(lineAfter(lines.slice(-1), ALICE, { padding: 'x'.repeat(padding) }));
  return lines;
}

describe('long lines', AGAIN, () => {
  it('a mirror copies many long lines with little memory', async () => {
    const mirrored = async (lines: readonly LoggedLine[]) => {
      const { url } = await serveLog({ entries: lines });
      const folder = join(temporaryFolder(), 'mirror');
      const { output, peakMib } = await costs.runCli(['mirror', url, folder, '--once', '--json']);
      expect(JSON.parse(output)).toEqual({ size: lines.length, added: lines.length, unpublished: 0 });
      return peakMib;
    };
    const short = await mirrored(chained(100, 0));
    const long = chained(100, MEBIBYTE);
    const first = (await mirrored(long)) - short;
    // The peak depends on the time of garbage collections.
    const cost = first <= COST_MIB_MAX ? first : Math.min(first, (await mirrored(long)) - short);
    console.info(`${Math.round(cost)} MiB`);
    expect(cost).toBeLessThanOrEqual(COST_MIB_MAX);
  });
});
