import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { auditFile } from '../../src/audit/main.ts';
import { CLI } from '../kit/programs.ts';

const TIMEOUT_MILLIS = 150_000;

it('the demo ends with the same root on the chain and a token for each graduate', {
  timeout: TIMEOUT_MILLIS,
}, async () => {
  const demo = spawn(process.execPath, [CLI, 'demo'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err, [exitCode]] = await Promise.all([text(demo.stdout), text(demo.stderr), once(demo, 'exit')]);
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
  const roots = [...out.matchAll(/^root .*(0x[0-9a-f]{64})/gm)].map(([, root]) => root);
  expect(roots).toHaveLength(2);
  expect(roots[0]).toBe(roots[1]);
  expect(out.match(/^token of (REPAIR|RIVER) +0x[0-9a-fA-F]{40}$/gm)).toHaveLength(2);
  const [file = ''] = /\S+\.ndjson$/m.exec(out) ?? [];
  expect(await auditFile(file, {})).toMatchObject({ verdict: 'verified', counts: { verified: 16 } });
});
