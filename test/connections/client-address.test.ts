// The network that a request counts against: the socket's, or the network that trusted proxies report, but never a client's claim.
import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { clientNetwork, toBlockList } from '../../src/connections/client-address.ts';

function request(remoteAddress: string, headers: Readonly<Record<string, string>> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

const PROXIES = toBlockList(['127.0.0.1', '10.0.0.0/8', '::1']);

describe('the network of a request', () => {
  it.each([
    ['203.0.113.9', {}, '203.0.113.9'],
    ['203.0.113.9', { 'x-forwarded-for': '198.51.100.1' }, '203.0.113.9'],
    ['127.0.0.1', {}, '127.0.0.1'],
    ['127.0.0.1', { 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
    ['::ffff:127.0.0.1', { 'x-forwarded-for': '198.51.100.1:4711' }, '198.51.100.1'],
    ['127.0.0.1', { 'x-forwarded-for': '192.0.2.66, 198.51.100.1, 10.1.2.3' }, '198.51.100.1'],
    ['127.0.0.1', { 'x-forwarded-for': '192.0.2.66, nonsense' }, '127.0.0.1'],
    ['127.0.0.1', { 'x-forwarded-for': '10.1.2.3' }, '127.0.0.1'],
    ['::1', { forwarded: 'for=192.0.2.66, for="[2001:db8:1:2::3]:80";proto=https' }, '2001:db8:1:2::/64'],
    ['::1', { forwarded: 'proto=https;for=198.51.100.1', 'x-forwarded-for': '192.0.2.66' }, '198.51.100.1'],
    ['::1', { forwarded: 'for=_hidden' }, '0:0:0:0::/64'],
  ])('a request from %s with %j counts against %s', (address, headers, network) => {
    expect(clientNetwork(PROXIES, request(address, headers)).network).toBe(network);
  });
});

describe('a list of proxies', () => {
  it.each(['localhost', '10.0.0.0/33', '10.0.0/8', '10.0.0.0/', '10.0.0.0/8/8', '', '::1/129'])(
    'a list of proxies rejects %j',
    (cidr) => {
      expect(() => toBlockList([cidr])).toThrow();
    },
  );
});

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['1:2::7:8', '1:2:0:0::/64'],
    ['::4:5:6:7:8', '0:0:0:4::/64'],
    ['1::3:4:5:6:7:8', '1:0:3:4::/64'],
    ['1::', '1:0:0:0::/64'],
    ['::ffff:c000:201', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['host.example', 'host.example'],
    ['', ''],
  ])('the address %s counts as the network %s', (address, network) => {
    expect(clientNetwork(toBlockList([]), request(address))).toEqual({ network, isProxied: false, isNamed: false });
  });
});
