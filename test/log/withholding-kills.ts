// kill -9 at any instant of a withholding leaves each line whole or withheld, and the next start finishes the withholding.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { storedLeaf } from '../../src/crypto/stub.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { faultsOf } from '../durability/log-book.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { type Place, stubOf } from './withheld.ts';

const PROGRAM = fileURLToPath(new URL('withholding-program.ts', import.meta.url));
const KILLS = Number(process.env['WITHHOLDING_KILLS'] ?? 6);
const COMMENTS = 30;
/** The first withholding of a process takes about 140 ms, and each later one, with its erasure, about 20 ms. */
const INSTANT_MS_MAX = 400;

const textOf = (comment: number) => `Quattrocchi-${String(comment).padStart(4, '0')}-text`;

interface Killed extends Place {
  /** Returns the remaining bytes of a closed log. */
  readonly bytes: () => Promise<string>;
}

export function describeKills(begin: () => Promise<Killed>): void {
  it(`a withholding survives kill -9 at ${KILLS} random instants (WITHHOLDING_KILLS)`, {
    timeout: 60_000 + 6_000 * KILLS,
  }, async () => {
    let withheld = 0;
    for (let kills = 0; kills < KILLS; ) {
      const { place, open, bytes } = await begin();
      const { leaves, stubs } = await write(await open());
      for (let done = 0; done < COMMENTS && kills < KILLS; kills++) {
        // Allows for a loaded machine.
        const latest = withheld === 0 ? INSTANT_MS_MAX * (1 + kills) : INSTANT_MS_MAX;
        await killAt(place, stubs, latest * Math.random());
        const { log, withholding, close } = await open();
        const lines = (await log.readPage(1, 0, 1_000)).ndjson.toString().split('\n').slice(0, -1);
        expect(lines.map((line) => toHex(storedLeaf(Buffer.from(line))))).toEqual(leaves);
        await eventually(() => expect(withholding.erasure.isPending).toBe(false));
        done = withholding.through;
        const { count } = await withholding.read(0, 1_000);
        expect([count, await withholding.revisionOf(1)]).toEqual([done, done]);
        await close();
        expect(await faultsOf(place)).toEqual([]);
        const left = await bytes();
        for (let comment = 0; comment < COMMENTS; comment++) {
          const isWhole = comment >= done;
          expect([comment, lines.join('').includes(textOf(comment)), left.includes(textOf(comment))]).toEqual([
            comment,
            isWhole,
            isWhole,
          ]);
        }
        if (done > 0) withheld++;
      }
    }
    expect(withheld).toBeGreaterThan(0);
  });
}

async function write(store: Awaited<ReturnType<Place['open']>>) {
  const service = new TestService({ store });
  const by = await service.agent();
  const chamberId = await openChamber(service, [by]);
  await enterPhase(service, chamberId, 'PROPOSAL');
  await service.must('POST', `/chambers/${chamberId}/propose`, { by, body: { name: 'Idea', ticker: 'TICK' } });
  await enterPhase(service, chamberId, 'DEBATE');
  const stubs: string[] = [];
  for (let comment = 0; comment < COMMENTS; comment++) {
    const body = { ideaId: 'idea-1', comment: textOf(comment), stance: 'for' };
    const { eventId } = await service.must('POST', `/chambers/${chamberId}/debate`, { by, body });
    stubs.push(Buffer.from((await stubOf(store, chamberId, eventId)).line).toString());
  }
  const lines = (await service.log.readPage(chamberId, 0, 1_000)).ndjson.toString().split('\n').slice(0, -1);
  await service.close();
  const file = join(temporaryFolder(), 'stubs.ndjson');
  writeFileSync(file, `${stubs.join('\n')}\n`);
  return { leaves: lines.map((line) => toHex(storedLeaf(Buffer.from(line)))), stubs: file };
}

async function killAt(place: string, stubs: string, millis: number): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, place, stubs], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  child.stdin.write('go\n');
  await sleep(millis);
  child.kill('SIGKILL');
  await ended;
}
