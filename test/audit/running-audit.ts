// Runs the audit command against a running service, and reads the log that the service publishes.
import { expect, vi } from 'vitest';
import { type AuditArguments, auditMain } from '../../src/audit/main.ts';
import type { AuditReport } from '../../src/audit/report/report-types.ts';
import type { Running } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

interface Audited extends Pick<Running, 'url'> {
  readonly clock: Pick<Running['clock'], 'read'>;
}

export async function audit({ url, clock }: Audited, options: Partial<AuditArguments> = {}) {
  let printed = '';
  const log = vi.spyOn(console, 'log').mockImplementation((text: string) => {
    printed += text;
  });
  try {
    const args = { target: url, json: true, now: clock.read, proofs: temporaryFolder(), ...options };
    const exitCode = await auditMain(args);
    const report = JSON.parse(printed) as AuditReport;
    const checkOf = (name: string) => report.chambers[0]?.checks.find((check) => check.name === name);
    return { exitCode, report, checkOf };
  } finally {
    log.mockRestore();
  }
}

/** Waits until a checkpoint covers all lines, and returns its signed note. */
export async function covered({ service }: Running): Promise<string> {
  const { log, tree } = service.forum.store;
  return eventually(async () => {
    const checkpoint = await tree.checkpoint();
    expect(checkpoint?.size).toBe(await log.lastPlace());
    return checkpoint?.note ?? '';
  }, 20_000);
}

export interface PublishedLog {
  readonly prefix: string;
  readonly checkpointKey: string;
}

export async function logOf({ url }: Pick<Running, 'url'>): Promise<PublishedLog> {
  return ((await (await fetch(url)).json()) as { readonly log: PublishedLog }).log;
}
