// A mirror that fails at any of its writes leaves a valid folder, and the next step continues.
import { describe, expect, it, vi } from 'vitest';
import { MirrorFolder } from '../../src/mirror/folder.ts';
import { serveLog } from '../kit/static-log.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { expectValid, LINES, step } from './static-mirror.ts';

describe('the folder of a mirror', { timeout: 120_000 }, () => {
  it.each(['appendLines', 'writeTiles', 'commit', 'publishCheckpoint', 'removeTiles'] as const)(
    'the folder of a mirror is valid when a step fails before or after %s',
    async (name) => {
      const real = MirrorFolder.prototype[name] as (...args: unknown[]) => Promise<void>;
      for (const when of ['before', 'after']) {
        for (const call of [1, 2]) {
          const folder = temporaryFolder();
          const { url, replace } = await serveLog({ entries: LINES.slice(0, 100) });
          await step(url, folder);
          replace({ entries: LINES });
          let calls = 0;
          vi.spyOn(MirrorFolder.prototype, name).mockImplementation(async function (
            this: MirrorFolder,
            ...args: unknown[]
          ) {
            const fails = ++calls === call;
            if (fails && when === 'before') throw new Error('no space left');
            await real.apply(this, args);
            if (fails) throw new Error('no space left');
          });
          // Each step publishes the checkpoint once.
          const isReached = name !== 'publishCheckpoint' || call === 1;
          if (isReached) await expect(step(url, folder)).rejects.toThrow('no space left');
          vi.restoreAllMocks();
          expect((await step(url, folder)).damage).toBeUndefined();
          await expectValid(folder, LINES.length);
        }
      }
    },
  );
});
