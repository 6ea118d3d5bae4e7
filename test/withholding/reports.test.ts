// The service's log messages about the list of texts to withhold.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { keysInMemory } from '../../src/keys/key-file.ts';
import { Withholder } from '../../src/withholding/withholder.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

function withLog(list: string) {
  const service = new TestService();
  const path = join(temporaryFolder(), 'withhold');
  writeFileSync(path, list);
  const logged: { readonly msg: string }[] = [];
  const withholder = new Withholder({
    path,
    forum: service.forum,
    keys: keysInMemory(service.log.logId, service.clock.read()),
    logger: pino({ base: null }, { write: (line: string) => void logged.push(JSON.parse(line)) }),
  });
  atEnd(() => withholder.stop());
  const relist = (text: string) => {
    writeFileSync(path, text);
    withholder.reload();
  };
  const reportsOf = (part: string) => logged.filter(({ msg }) => msg.includes(part));
  return { service, withholder, relist, reportsOf };
}

const withheldNow = async ({ withholder }: { withholder: Withholder }, count: number) =>
  eventually(() => expect(withholder.state().withheld).toBe(count), 10_000);

describe('the log', () => {
  it('the log names an earlier account line with the same text once, unless the list names that line', async () => {
    const opened = withLog('');
    const { service, withholder, relist, reportsOf } = opened;
    const ann = await service.agent({ label: 'Ann of Oak Street' });
    await service.must('PUT', '/personality', { by: ann, body: { patch: { style: 'dry' } } });
    await service.must('PUT', '/personality', { by: ann, body: { patch: { loves: ['rain'] } } });
    withholder.start();
    relist(`${ann.did}:3 law\n`);
    await withheldNow(opened, 1);
    for (let reading = 0; reading < 2; reading++) withholder.reload();
    relist(`${ann.did}:2 law\n${ann.did}:3 law\n`);
    await withheldNow(opened, 2);
    expect(reportsOf('earlier line')).toMatchObject([
      {
        level: 40,
        event: `${ann.did}:2`,
        withheld: `${ann.did}:3`,
        msg: expect.stringContaining('name the earlier line too'),
      },
    ]);
  });

  it('the log clears the alert once the wrong entries are removed, and can raise it again', async () => {
    const { withholder, relist, reportsOf } = withLog('1:99 law\n');
    const counts = () => [reportsOf('alert raised').length, reportsOf('alert cleared').length];
    withholder.start();
    await eventually(() => expect(counts()).toEqual([1, 0]));
    relist('');
    await eventually(() => expect(counts()).toEqual([1, 1]));
    relist('1:99 law\n');
    await eventually(() => expect(counts()).toEqual([2, 1]));
  });

  it('the log reports that the list was read again on request', async () => {
    const { withholder, reportsOf } = withLog('whatever\n');
    withholder.start();
    withholder.reload();
    expect(reportsOf('list of texts to withhold read')).toMatchObject([
      { entries: 0, badLines: 1 },
      { entries: 0, badLines: 1 },
    ]);
    await eventually(() => expect(reportsOf('alert raised')).toHaveLength(1));
  });
});
