// The costs that a hostile service can cause for the command line and for an MCP server: bounded memory, one request and a bounded time.
import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AGAIN, Costs, casesOf, expectCheap, NODE, peakMibOf, TOO_LARGE } from '../client/cost.ts';
import { eventually } from '../kit/until.ts';
import { startSeat } from '../mcp/seat-process.ts';

const costs = Costs.forThisFile();

const COMMANDS = casesOf({
  'chamber list': ['gzipBomb', 'smallValues', 'shapes', 'longText', 'invisible', 'rows'],
  'chamber list --json': ['longText', 'invisible', 'shapes'],
  'chamber show 1': ['longText', 'longItems', 'shapes'],
  'chamber tail 1': ['endlessMessage', 'emptyMessages'],
  'export 1': ['gzipBomb', 'endlessLine'],
  todo: ['gzipBomb', 'smallValues', 'shapes'],
  'move pass 1': ['endlessBody'],
});

describe('the command line', AGAIN, () => {
  it.each(COMMANDS)('the command line needs little memory and time for %s with %s', async (command, attack) => {
    const key = /^(todo|move)/.test(command) ? [`--key=${costs.keyFile}`] : [];
    const start = (url: string) => costs.runCli([...command.split(' '), `--url=${url}`, ...key]);
    const attacked = await costs.attackedBy(attack, 'cli', start);
    expectCheap(attacked);
    // An agent first asks for the service's features.
    if (TOO_LARGE.has(attack)) expect(attacked.requests).toBe(command.startsWith('move') ? 2 : 1);
  });

  it.each(casesOf({ doctor: ['gzipBomb', 'smallValues', 'longText', 'shapes'] }))(
    'the command line needs little memory and time for %s with %s',
    async (command, attack) => {
      expectCheap(await costs.attackedBy(attack, command, (url) => costs.runCli([command, url])));
    },
  );
});

describe('an MCP server', AGAIN, () => {
  it.each(casesOf({ mcp: ['endlessEvent', 'none', 'gzipBomb', 'reveals', 'smallValues', 'shapes', 'longText'] }))(
    'an MCP server needs little memory and time: %s with %s',
    async (command, attack) => {
      const attacked = await costs.attackedBy(attack, command, async (url) => {
        const peakFile = costs.newPeakFile();
        const env = { NODE_OPTIONS: NODE.join(' '), TEST_PEAK_FILE: peakFile };
        const seat = await startSeat('modern', { url, keyFile: costs.keyFile, env });
        for (const tool of ['whoami', 'todo', 'chambers']) await seat.client.callTool({ name: tool, arguments: {} });
        await seat.client.callTool({ name: 'read', arguments: { chamberId: 1 } });
        // Meanwhile the server also reads the stream of the todo list.
        await setTimeout(2_000);
        await seat.client.close();
        await eventually(() => expect(existsSync(peakFile)).toBe(true), 10_000);
        return { output: seat.bytes().slice(-300), peakMib: peakMibOf(peakFile) };
      });
      expectCheap(attacked);
    },
  );
});
