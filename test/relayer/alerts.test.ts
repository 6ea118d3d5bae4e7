// Tests /health with several alerts.
import { expect, it } from 'vitest';
import { RepeatedLog } from '../../src/diagnostics/repeated-log.ts';
import { Alerts } from '../../src/relayer/context.ts';
import { recordingLogger } from './relayer-chain.ts';

it('/health lists the newest alerts first, and counts the others', () => {
  const alerts = new Alerts(recordingLogger([]), new RepeatedLog());
  expect(alerts.reason).toBeUndefined();
  for (const id of [1, 2, 3]) alerts.raise(`chamber ${id}`, 'another root');
  alerts.raise('chain', 'no response');
  expect(alerts.reason).toBe('chain: no response; chamber 3: another root; chamber 2: another root; and 1 more');
  alerts.clear('chain');
  alerts.clear('chamber 3');
  expect(alerts.reason).toBe('chamber 2: another root; chamber 1: another root');
});
