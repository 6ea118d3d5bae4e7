// Which reads wait for their turn.
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';
import { Quota } from '../../src/connections/quota.ts';
import { readGate } from '../../src/http/read-gate.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { run } from '../kit/service.ts';
import { get } from '../kit/wire.ts';

/** Enough requests, from enough addresses, to fill all read slots. */
const TURNS = 16;
const ADDRESSES = 4;

it('an MCP request whose body does not arrive blocks no reader', { timeout: 10_000 }, async () => {
  const running = await run({ TRUSTED_PROXIES: '127.0.0.0/8' });
  const head = (address: number) =>
    [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      `X-Forwarded-For: 192.0.2.${address}`,
      'Content-Type: application/json',
      'Content-Length: 100',
      '\r\n',
    ].join('\r\n');
  for (let socket = 0; socket < TURNS; socket++) {
    const idle = await RawSocket.open(running.url);
    idle.write(head(socket % ADDRESSES));
  }
  await sleep(100);
  expect((await get(running.url, '/chambers')).status).toBe(200);
});

describe('an address with waiting reads', () => {
  /** Starts reads through a gate; each lasts until the test ends it. */
  function openGate(readsMax: number) {
    const inFlight = new Quota(readsMax, 'reads');
    const inTurn = readGate({ networkOf: () => 'network', inFlight, workError: () => undefined });
    let begun = 0;
    const ends: (() => void)[] = [];
    const read = () => {
      const incoming = new IncomingMessage(new Socket());
      const outgoing = new ServerResponse(incoming);
      const reading = inTurn({ incoming, outgoing }, async () => {
        begun++;
        await new Promise<void>((resolve) => ends.push(resolve));
      });
      reading.catch(() => {});
      return { reading, leave: () => outgoing.emit('close') };
    };
    return { read, begun: () => begun, endOne: () => ends.shift()?.(), inFlight };
  }

  it('an address with waiting reads is rejected beyond its limit, and may read again once a read has ended or been cancelled', async () => {
    const { read, begun, inFlight } = openGate(6);
    const reads = Array.from({ length: 6 }, read);
    expect(begun()).toBe(4);
    await expect(read().reading).rejects.toMatchObject({ code: 'FORUM_ERR_RATE' });
    reads[5]?.leave();
    expect(inFlight.total).toBe(5);
    await expect(reads[5]?.reading).rejects.toMatchObject({ code: 'FORUM_ERR_VALIDATION' });
    read();
    expect(inFlight.total).toBe(6);
  });

  it('a cancelled read of an address with waiting reads is never started', async () => {
    const { read, begun, endOne } = openGate(100);
    const [, , , , fifth, sixth] = Array.from({ length: 6 }, read);
    fifth?.leave();
    endOne();
    await setImmediate();
    expect(begun()).toBe(5);
    for (let left = 0; left < 4; left++) endOne();
    await sixth?.reading;
    expect(begun()).toBe(5);
  });
});
