// The auditor's memory does not depend on the size that a service claims for its log.
import { expect, it } from 'vitest';
import { UnusableInput } from '../../src/audit/line/input.ts';
import { ServiceLog } from '../../src/audit/service/service-log.ts';
import { AuditedService } from '../../src/audit/service/service-reader.ts';

it('the auditor does not read a log that claims too many entries', async () => {
  const key = { name: 'forum.test/log/0', keyId: 0, type: 1, publicKey: new Uint8Array(32) };
  const log = { prefix: '/log/0', key, verifierKey: '' } as unknown as Parameters<ServiceLog['entries']>[0];
  const published = new ServiceLog(new AuditedService('http://127.0.0.1:1'));
  await expect(published.entries(log, 2 ** 50)).rejects.toThrow(UnusableInput);
});
