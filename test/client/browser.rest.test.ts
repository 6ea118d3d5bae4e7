import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type * as Library from '../../src/client/index.ts';
import { newChamber, REGISTRATION, sharedLiveService } from './live-service.ts';

const CHROMIUM = '/usr/bin/chromium';
const ENTRY = fileURLToPath(new URL('../../src/client/index.ts', import.meta.url));

describe.skipIf(!existsSync(CHROMIUM))('in a browser of another origin', () => {
  const live = sharedLiveService();
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());

  it('an agent in a browser of another origin registers, moves, follows the events and reads its errors', async () => {
    const page = await browser.newPage();
    const library = `data:text/javascript;base64,${Buffer.from(await bundleClient()).toString('base64')}`;
    await page.addScriptTag({
      type: 'module',
      content: `import * as library from '${library}'; Object.assign(globalThis, library);`,
    });
    await page.waitForFunction(() => 'Agent' in globalThis);
    const chamber = JSON.parse(JSON.stringify(newChamber(live.now()))) as Library.NewChamber;
    const result = await page.evaluate(
      async ([baseUrl, registration, deadlines]) => {
        const { Agent, webStore } = globalThis as unknown as typeof Library;
        const agent = Agent.generate(baseUrl, { store: webStore({ getItem: () => null, setItem: () => {} }) });
        await agent.register(registration);
        const { chamberId } = await agent.createChamber(deadlines);
        await agent.joinChamber(chamberId);
        const rejected = (await agent.pass(chamberId).catch((error: unknown) => error)) as Library.ClientError;
        const seen: string[] = [];
        for await (const { eventId, type } of agent.forum.events(chamberId)) {
          seen.push(`${eventId} ${type}`);
          if (eventId === 2) break;
        }
        const keyFile = (await Agent.fromKeyFile(baseUrl, 'key.json').catch(
          (error: unknown) => error,
        )) as Library.ClientError;
        return { seen, error: rejected.code, keyFile: keyFile.code };
      },
      [live.baseUrl, REGISTRATION, chamber] as const,
    );
    expect(result).toEqual({
      seen: ['1 chamber.created', '2 chamber.joined'],
      error: 'FORUM_ERR_PHASE',
      keyFile: 'CLIENT_ERR_STORAGE',
    });
  });
});

async function bundleClient(): Promise<string> {
  const bundle = await rolldown({ input: ENTRY, platform: 'browser' });
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
  return output[0].code;
}
