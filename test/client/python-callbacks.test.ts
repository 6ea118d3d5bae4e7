// The Python client verifies callbacks.
import { createPrivateKey, sign } from 'node:crypto';
import { expect } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { callbackBase, callbackParams } from '../../src/crypto/callback.ts';
import { contentDigestOf } from '../../src/crypto/content-digest.ts';
import { thumbprintOf } from '../../src/crypto/jwk.ts';
import { python, runPython } from '../kit/python.ts';
import { serve } from '../kit/serve.ts';

python(
  'verify_callback returns a body that the service signed for this URL and agent, and rejects everything else',
  async () => {
    const seed = Buffer.from(`302e020100300506032b657004220420${'07'.repeat(32)}`, 'hex');
    const key = createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' });
    const { x = '' } = key.export({ format: 'jwk' });
    const jwk = { kty: 'OKP', crv: 'Ed25519', x, purpose: 'receipts' };
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }));
    });
    const { did } = Agent.fromSeed(url, new Uint8Array(32));
    const due = { chamberId: 12, must: 'pass', phaseEndsAt: null, turnEndsAt: null, lastEventId: 5 };
    const value = { type: 'todo.due', did, service: url, logId: '0'.repeat(32), due, more: 0 };
    const target = 'https://agent.example/wake';
    const now = Math.floor(Date.now() / 1_000);
    const sent = (body: object, created = now) => {
      const text = JSON.stringify(body);
      const params = callbackParams({ created, keyid: thumbprintOf(Buffer.from(x, 'base64url')) });
      const fields = {
        'content-digest': contentDigestOf(Buffer.from(text)),
        'webhook-id': 'an-id',
        'webhook-timestamp': `${created}`,
      };
      const base = callbackBase({ '@method': 'POST', '@target-uri': target, ...fields }, params);
      const signature = sign(null, Buffer.from(base), key).toString('base64');
      return [{ ...fields, 'Signature-Input': `cb=${params}`, Signature: `cb=:${signature}:` }, text] as const;
    };
    const [headers, text] = sent(value);
    const challenge = sent({ type: 'callback.verify', challenge: 'c0ffee' });
    const requests = [
      ['POST', headers, text, target],
      ['POST', ...challenge, target],
      ['PUT', headers, text, target],
      ['POST', headers, `${text} `, target],
      ['POST', headers, text, `${target}?other`],
      ['POST', { ...headers, 'webhook-id': 'other' }, text, target],
      ['POST', {}, text, target],
      ['POST', ...sent(value, now - 301), target],
      ['POST', ...sent({ ...value, did: 'did:key:other' }), target],
      ['POST', ...sent([]), target],
    ];
    const program = `import json, sys
from chambers import Agent, ChamberError

agent = Agent(sys.argv[1], bytes(32))
for method, headers, body, url in json.load(sys.stdin):
    try:
        print(json.dumps(agent.verify_callback(method, headers, body.encode(), url)))
    except ChamberError as error:
        print(json.dumps(error.code))
`;
    const printed = (await runPython(program, [url], { input: JSON.stringify(requests) })).trim().split('\n');
    expect(printed.map((line) => JSON.parse(line))).toEqual([
      { ...value, id: 'an-id' },
      { type: 'callback.verify', id: 'an-id', challenge: 'c0ffee', answer: { challenge: 'c0ffee' } },
      ...Array.from({ length: requests.length - 2 }, () => 'CLIENT_ERR_CALLBACK'),
    ]);
  },
);

python('verify_callback raises a TypeError that names an argument of the wrong type', async () => {
  const program = `from chambers import Agent

agent = Agent("http://127.0.0.1:1", bytes(32))
url = "https://agent.example/wake"
for arguments in [({}, "{}", url), ({}, None, url), ([("webhook-id", "1")], b"{}", url), ({}, b"{}", None)]:
    try:
        agent.verify_callback("POST", *arguments)
    except TypeError as error:
        print(error)
`;
  expect((await runPython(program, [])).trim().split('\n')).toEqual([
    'body must be the bytes of the request, not str',
    'body must be the bytes of the request, not NoneType',
    'headers must be a mapping, not list',
    'url must be a str, not NoneType',
  ]);
});
