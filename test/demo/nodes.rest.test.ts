import { expect, it } from 'vitest';
import { inaccessibleFolder } from '../../src/demo/embedded-postgres.ts';
import { expectDemoToEnd, runDemo, SLOW } from './run-demo.ts';

const CLOSED_FOLDER = inaccessibleFolder(import.meta.dirname);

it.skipIf(CLOSED_FOLDER)(
  'the demo of three nodes ends with the same root on the chain and a token for each graduate, although a node is killed',
  SLOW,
  () => expectDemoToEnd(['--nodes=3']),
);

it.runIf(CLOSED_FOLDER)(
  'the demo of several nodes reports in one sentence that PostgreSQL cannot run here',
  SLOW,
  async () => {
    const { err, exitCode } = await runDemo(['--nodes=2']);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringContaining(`can’t enter ${CLOSED_FOLDER}:`) });
  },
);
