// The manual is true: what it prints is what the code does, and what it tells to paste works.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { readConfig, VARIABLES } from '../src/config.ts';
import { commitmentHash } from '../src/crypto/commitment.ts';
import { leafHash, nodeHash } from '../src/crypto/merkle.ts';
import { startService } from '../src/server.ts';
import { toHex } from '../src/vocabulary/hex.ts';
import { builtMain, ROOT } from './kit/built.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

it('makes a first signed move with the program that it prints', async () => {
  await builtMain();
  const [, program = ''] = /<<'JS'\n([\s\S]*?)\nJS\n/.exec(README) ?? [];
  expect(program.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(15);
  const service = await startService({
    config: readConfig({ PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none' }),
    logger: pino({ level: 'silent' }),
    version: 'test',
    onFatal: (error) => {
      throw error;
    },
  });
  const output = await run(program.replace('http://127.0.0.1:8787', service.url));
  await service.stop();
  expect(output).toBe('{ ok: true, turnOrder: 0 }\n');
});

it('prints the bash example as it is', () => {
  expect(README).toContain(readFileSync(join(ROOT, 'test/examples/agent.sh'), 'utf8').trimEnd());
});

it('gives the leaf of its example line', () => {
  const [, line = ''] = /```json\n(\{"chamberId":1,.*\})\n```/.exec(README) ?? [];
  expect(README).toContain(toHex(leafHash(Buffer.from(line))));
});

it('gives the tree of its three lines', () => {
  const [one, two, three] = ['one', 'two', 'three'].map((text) => leafHash(Buffer.from(text))) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const node = nodeHash(one, two);
  for (const hash of [one, two, three, node, nodeHash(node, three)]) expect(README).toContain(toHex(hash));
});

it('gives the commitment of its example', () => {
  const commitment = commitmentHash({
    chamberId: 1,
    did: 'did:key:z6MkjUU7zS7SSqobZPPrcgzgFAJseVLD5KyQEsMpfyMR7dLA',
    allocations: [
      { ideaId: 'idea-1', bps: 6000 },
      { ideaId: 'idea-2', bps: 4000 },
    ],
    salt: `0x${'5a'.repeat(32)}`,
  });
  expect(README).toContain(commitment);
});

it.each(Object.entries(VARIABLES))('names the variable %s', (name, { about }) => {
  const row = README.split('\n').find((line) => line.startsWith(`| ${name} |`));
  expect(row).toContain(about);
});

function run(program: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module'], { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.once('error', reject);
    child.once('close', () => resolve(output));
    child.stdin.end(program);
  });
}
