// A service asks witnesses for cosignatures: a good witness cosigns each checkpoint, and a bad one does no harm.
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { isNoteSignature, parseNote } from '../../src/tlog/note.ts';
import { serve } from '../kit/serve.ts';
import { newAgent, run } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { Witness } from '../kit/witness.ts';

/** Starts a service that asks the witnesses of these policy lines, and collects its log lines. */
async function runWithWitnesses(witnesses: readonly string[]) {
  const policy = join(temporaryFolder(), 'policy.txt');
  writeFileSync(policy, `${witnesses.join('\n')}\nquorum none\n`);
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const metricsPort = String(20_000 + (process.pid % 10_000));
  const running = await run({ WITNESS_POLICY_FILE: policy, METRICS_PORT: metricsPort }, undefined, logger);
  const metric = async (name: string) => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  const checkpoint = async () => {
    const { log: named } = (await (await fetch(running.url)).json()) as {
      log: { prefix: string; checkpointKey: string };
    };
    const response = await fetch(running.url + named.prefix + '/checkpoint');
    return { note: response.ok ? await response.text() : '', key: named.checkpointKey };
  };
  return { running, lines, metric, checkpoint };
}

describe('a service with witnesses', () => {
  it('a service adds its witnesses’ cosignatures to each checkpoint', { timeout: 60_000 }, async () => {
    const witness = new Witness();
    const { running, checkpoint, metric } = await runWithWitnesses([`${await witness.serve()}/`]);
    witness.watch((await checkpoint()).key);
    for (const round of [1, 2, 3]) {
      await newAgent(running);
      await eventually(async () => {
        const note = parseNote((await checkpoint()).note);
        const cosignature = note?.signatures.find(({ name }) => name === witness.key.name);
        expect(note?.text.split('\n')[1]).toBe(String(round));
        expect(isNoteSignature(note?.text ?? '', witness.key, cosignature ?? expect.fail('not cosigned'))).toBe(true);
      }, 15_000);
    }
    expect(await metric('chambers_witness_cosignatures_total')).toBe(3);
    expect(await metric('chambers_witness_failures_total')).toBe(0);
  });

  it('a service counts and reports a cosignature that arrives after the next checkpoint', {
    timeout: 60_000,
  }, async () => {
    const witness = new Witness();
    const replies: (() => void)[] = [];
    const url = await serve(async (request, response) => {
      const { status, body } = witness.addCheckpoint(await text(request));
      replies.push(() => void response.writeHead(status).end(body));
    });
    const { running, checkpoint, metric, lines } = await runWithWitnesses([witness.policyLine(url)]);
    witness.watch((await checkpoint()).key);
    await newAgent(running);
    await eventually(() => expect(replies).toHaveLength(1), 15_000);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n2\n/), 15_000);
    replies[0]?.();
    await eventually(async () => expect(await metric('chambers_witness_late_total')).toBe(1), 15_000);
    expect(await metric('chambers_witness_cosignatures_total')).toBe(0);
    expect(lines.join('')).toContain('it arrived after the next checkpoint was published');
    // The log no longer grows, so the next cosignature is in time.
    await eventually(() => expect(replies).toHaveLength(2), 15_000);
    replies[1]?.();
    await eventually(async () => expect((await checkpoint()).note).toContain('witness.test/w1'), 15_000);
  });

  it('a service publishes on time while witnesses hang, are down, or return oversized or malformed responses', {
    timeout: 60_000,
  }, async () => {
    const size =
      (body: string): RequestListener =>
      (_, response) =>
        void response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end(body);
    const bad: readonly RequestListener[] = [
      () => {},
      (_, response) => void response.end('— nobody at.all\n'),
      (_, response) => void response.end(Buffer.alloc(1_000_000, 'a')),
      (_, response) => void response.writeHead(500).end(),
      size('999999\n'),
      size('-1\n'),
    ];
    const urls = [...(await Promise.all(bad.map(serve))), 'http://127.0.0.1:1'];
    const lines = urls.map((url, i) => {
      const witness = new Witness(`witness.test/bad${i}`, new Uint8Array(32).fill(i));
      return witness.policyLine(url).replace('W1', `B${i}`);
    });
    const { running, checkpoint, metric, lines: logged } = await runWithWitnesses(lines);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n1\n/), 15_000);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n2\n/), 15_000);
    await eventually(async () => expect(await metric('chambers_witness_failures_total')).toBe(urls.length), 15_000);
    expect((parseNote((await checkpoint()).note)?.signatures ?? []).map(({ name }) => name)).toHaveLength(1);
    expect(logged.join('')).toMatch('it says that it cosigned a checkpoint of size 999999');
    expect(await metric('chambers_checkpoint_ok')).toBe(1);
  });

  it('a service does not start with an invalid or missing policy file', async () => {
    const policy = join(temporaryFolder(), 'policy.txt');
    writeFileSync(policy, 'witness W1 nothing\nquorum W1\n');
    await expect(run({ WITNESS_POLICY_FILE: policy })).rejects.toThrow(/line 1/);
    await expect(run({ WITNESS_POLICY_FILE: '/nowhere/policy.txt' })).rejects.toThrow(/nowhere/);
  });
});
