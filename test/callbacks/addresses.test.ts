// Callbacks to forbidden addresses are rejected, and the service connects to none of them.
import { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { AddressNotAllowed, parseCallbackUrl, requireAllowed } from '../../src/callbacks/addresses.ts';
import { openReceiver } from '../kit/receiver.ts';
import { refusal, TestService } from '../kit/test-service.ts';

/** In production neither http nor loopback addresses are allowed. */
const STRICT = { NODE_ENV: 'test' } as const;

const BAD_URLS: readonly (readonly [url: string, detail: string])[] = [
  ['', 'must be an absolute URL'],
  ['agent.example/wake', 'must be an absolute URL'],
  ['//agent.example/wake', 'must be an absolute URL'],
  [`https://agent.example/${'a'.repeat(2_048)}`, 'at most 2048 characters'],
  ['http://agent.example/', 'must begin with https://'],
  ['ftp://agent.example/', 'must begin with https://'],
  ['file:///etc/passwd', 'must begin with https://'],
  ['gopher://agent.example/', 'must begin with https://'],
  ['javascript:alert(1)', 'must begin with https://'],
  ['data:text/plain,x', 'must begin with https://'],
  ['https://user@agent.example/', 'user name or a password'],
  ['https://user:secret@agent.example/', 'user name or a password'],
  ['https://:secret@agent.example/', 'user name or a password'],
  ['https://public.example@127.0.0.1/', 'user name or a password'],
  ...[22, 23, 25, 80, 110, 143, 465, 587, 993, 1_023].map(
    (port) => [`https://agent.example:${port}/`, `or one above 1023, not port ${port}`] as const,
  ),
  ...[2_222, 2_525, 3_389, 5_900, 6_379, 6_667].map(
    (port) => [`https://agent.example:${port}/`, `another port: ${port} is commonly used for a protocol`] as const,
  ),
  ['https://agent.example:99999/', 'must be an absolute URL'],
  ...['localhost', 'localhost.', 'ip6-localhost', 'a.localhost', 'metadata'].map(
    (host) => [`https://${host}/`, `must have a public name with a dot, not ${host}`] as const,
  ),
  ['https://agent.example:0/', 'not port 0'],
  ...[
    // Decimal, octal, hexadecimal and short forms.
    ...['127.0.0.1', '2130706433', '017700000001', '0x7f000001', '0x7f.1', '127.1', '0', '0.0.0.0', '127.0.0.1.'],
    ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.169.254', '0xa9fea9fe', '2852039166', '100.64.0.1'],
    ...['192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '224.0.0.1'],
    ...['240.0.0.1', '255.255.255.255', '１２７.0.0.1', '①②⑦.0.0.1'],
    ...['[::1]', '[::]', '[::127.0.0.1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:8.8.8.8]'],
    ...['[::ffff:0:127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::808:808]', '[64:ff9b:1::a00:1]', '[2002:7f00:1::]'],
    ...['[2002:a00:1::]', '[2001::1]', '[2001:db8::1]', '[2001:10::1]', '[fc00::1]', '[fd12:3456::1]', '[fe80::1]'],
    ...['[fec0::1]', '[ff02::1]', '[100::1]', '[5f00::1]', '[4000::1]'],
  ].map((host) => [`https://${host}/`, 'public addresses only'] as const),
  ['https://[fe80::1%25eth0]/', 'must be an absolute URL'],
  ['https://[fe80::1%eth0]/', 'must be an absolute URL'],
  ['https://256.256.256.256/', 'must be an absolute URL'],
];

const BAD_NAMES: readonly (readonly [name: string, addresses: readonly string[]])[] = [
  ['loopback.example', ['127.0.0.1']],
  ['private.example', ['10.1.2.3']],
  ['metadata.example', ['169.254.169.254']],
  ['mapped.example', ['::ffff:10.0.0.1']],
  ['zone.example', ['fe80::1%eth0']],
  ['both.example', ['8.8.8.8', '10.0.0.1']],
  ['both-families.example', ['8.8.8.8', '::1']],
  ['nowhere.example', []],
  ['garbage.example', ['8.8.8.8', 'x']],
];

describe('PUT /me/callback', () => {
  it('PUT /me/callback rejects each forbidden URL, and connects to nothing', async () => {
    const resolved: string[] = [];
    const byName = new Map(BAD_NAMES);
    const service = new TestService({
      settings: {
        ...STRICT,
        CALLBACK_CHALLENGES_PER_DID_PER_HOUR: '1000',
        CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR: '1000',
      },
      callbackNetwork: {
        resolve: async (hostname) => {
          resolved.push(hostname);
          return byName.get(hostname) ?? [];
        },
      },
    });
    const by = await service.agent();
    const connecting = vi.spyOn(Socket.prototype, 'connect');
    try {
      for (const [url, detail] of BAD_URLS) {
        const answer = await service.request('PUT', '/me/callback', { by, body: { url } });
        expect({ url, ...answer }).toMatchObject({ url, ...refusal(400, 'FORUM_ERR_CALLBACK', detail) });
      }
      expect(resolved).toEqual([]);
      for (const [name, addresses] of BAD_NAMES) {
        const body = { url: `https://${name}/wake` };
        const answer = await service.request('PUT', '/me/callback', { by, body });
        const detail = addresses.length === 0 ? 'has no address' : 'public addresses only';
        expect({ name, ...answer }).toMatchObject({ name, ...refusal(400, 'FORUM_ERR_CALLBACK', detail) });
      }
      expect(resolved).toEqual(BAD_NAMES.map(([name]) => name));
      expect(connecting).not.toHaveBeenCalled();
    } finally {
      connecting.mockRestore();
    }
    expect(await service.must('GET', '/me/callback', { by })).toMatchObject({ url: null });
  });

  it('PUT /me/callback does not reveal the addresses of a name', async () => {
    const service = new TestService({ settings: STRICT, callbackNetwork: { resolve: async () => ['10.20.30.40'] } });
    const by = await service.agent();
    const { body } = await service.request('PUT', '/me/callback', { by, body: { url: 'https://inner.example/' } });
    expect(JSON.stringify(body)).not.toContain('10.20');
  });

  it('PUT /me/callback resolves a name once per connection, and connects to the checked address', async () => {
    const receiver = await openReceiver();
    const { port } = new URL(receiver.url);
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    let lookUps = 0;
    const service = new TestService({
      settings: { NODE_ENV: 'development' },
      callbackNetwork: { resolve: async () => answers[lookUps++] ?? ['10.0.0.1'] },
    });
    const by = await service.agent();
    const url = `http://rebinding.example:${port}/wake`;
    expect(await service.must('PUT', '/me/callback', { by, body: { url } })).toMatchObject({ url });
    expect([lookUps, receiver.challenges.length]).toEqual([1, 1]);
    expect(receiver.challenges[0]?.headers.host).toBe(`rebinding.example:${port}`);
    expect(await service.request('PUT', '/me/callback', { by, body: { url } })).toMatchObject(
      refusal(400, 'FORUM_ERR_CALLBACK', 'public addresses only'),
    );
    expect([lookUps, receiver.challenges.length]).toEqual([2, 1]);
  });
});

describe('an address', () => {
  it.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '2a00:1450:4001::5'])('%s is public', (address) => {
    expect(() => requireAllowed([address], { isDevelopment: false })).not.toThrow();
  });

  it('an address is allowed in development if it is a loopback address, and rejected if it is another private one', () => {
    const rules = { isDevelopment: true };
    expect(parseCallbackUrl('http://127.0.0.1:8080/a#b', rules).href).toBe('http://127.0.0.1:8080/a');
    expect(() => requireAllowed(['10.0.0.1'], rules)).toThrow(AddressNotAllowed);
    expect(() => parseCallbackUrl('http://127.0.0.1:22/', rules)).toThrow('not port 22');
  });
});
