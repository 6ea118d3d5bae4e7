// The signature of a callback, checked with an independent signer, and the id of a duty.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { callbackBase, callbackParams, webhookId } from '../../src/crypto/callback.ts';

const DUTY = {
  logId: '0123456789abcdef0123456789abcdef',
  did: 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
  chamberId: 12,
  must: 'pass',
  turnBeganAt: '2030-01-01T12:25:00.000Z',
};

describe('a callback', () => {
  it('the signature of a callback covers method, URL, body, id and time of the attempt', () => {
    const params = callbackParams({ created: 1893500701, keyid: 'thumbprint' });
    const request = {
      '@method': 'POST',
      '@target-uri': 'https://agent.example/wake?agent=1',
      'content-digest': 'sha-256=:a0eEEFPWvmdypXZA612Yf8lbX7+H1WS9m1u+9tohORE=:',
      'webhook-id': webhookId(DUTY),
      'webhook-timestamp': '1893500701',
    };
    expect(callbackBase(request, params)).toBe(
      [
        '"@method": POST',
        '"@target-uri": https://agent.example/wake?agent=1',
        '"content-digest": sha-256=:a0eEEFPWvmdypXZA612Yf8lbX7+H1WS9m1u+9tohORE=:',
        '"webhook-id": 4PxeX6tlwrrJI_ZEWAmjn8iPo0nJ4wZ1Z_EYHDcQpnE',
        '"webhook-timestamp": 1893500701',
        '"@signature-params": ("@method" "@target-uri" "content-digest" "webhook-id" "webhook-timestamp");created=1893500701;keyid="thumbprint";alg="ed25519";tag="chamber-callback"',
      ].join('\n'),
    );
    const forged = { ...request, '@target-uri': 'https://agent.example/\n"webhook-id": x' };
    expect(() => callbackBase(forged, params)).toThrow('"@target-uri" must not contain a line break');
  });

  it('the id of a callback is the hash of its duty, and differs between turns', () => {
    const text = JSON.stringify([DUTY.logId, DUTY.did, 12, 'pass', DUTY.turnBeganAt]);
    expect(webhookId(DUTY)).toBe(createHash('sha256').update(text).digest('base64url'));
    const ids = [DUTY, { ...DUTY, turnBeganAt: '2030-01-01T12:26:00.000Z' }, { ...DUTY, chamberId: 13 }].map(webhookId);
    expect(new Set(ids).size).toBe(3);
  });
});
