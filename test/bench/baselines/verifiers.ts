// The ways in which baselines verify signatures.
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { hashes, verify as nobleVerify } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { httpbis } from 'http-message-signatures';
import { type BaselineRequest, type Evidence, readEvidence } from './evidence.ts';

export type VerifyMode = 'none' | 'sodium' | 'node' | 'noble' | 'library';
/** Resolves to whether the signature is valid; throws if the digest is wrong. */
export type Check = (request: BaselineRequest) => Promise<boolean>;

hashes.sha512 = sha512;

export function createCheck(mode: VerifyMode): Check {
  switch (mode) {
    case 'none':
      return async (request) => readEvidence(request).signature.length === 64;
    case 'sodium':
      return checkBySodium();
    case 'node':
      return checkByNode();
    case 'noble':
      return async (request) => checkByNoble(readEvidence(request));
    case 'library':
      return checkByLibrary;
  }
}

function checkBySodium(): Check {
  const worker = new Worker(new URL('./sodium-worker.ts', import.meta.url));
  const sent: ((isValid: boolean) => void)[][] = [];
  let due: { readonly evidence: Evidence; readonly resolve: (isValid: boolean) => void }[] = [];
  worker.on('message', (verdicts: readonly boolean[]) => {
    sent.shift()?.forEach((resolve, index) => {
      resolve(verdicts[index] === true);
    });
  });

  function flush(): void {
    const batch = due;
    due = [];
    sent.push(batch.map(({ resolve }) => resolve));
    const lengths = batch.map(({ evidence }) => evidence.base.length);
    const block = new Uint8Array(lengths.reduce((sum, length) => sum + 96 + length, 0));
    let at = 0;
    for (const { evidence } of batch) {
      block.set(evidence.publicKey, at);
      block.set(evidence.signature, at + 32);
      block.set(evidence.base, at + 96);
      at += 96 + evidence.base.length;
    }
    worker.postMessage({ block, lengths }, [block.buffer]);
  }

  return async (request) => {
    const evidence = readEvidence(request);
    return new Promise((resolve) => {
      if (due.length === 0) setImmediate(flush);
      due.push({ evidence, resolve });
    });
  };
}

function checkByNode(): Check {
  const keys = new Map<string, KeyObject>();
  return async (request) => {
    const { did, publicKey, base, signature } = readEvidence(request);
    const key = keys.get(did) ?? keyObject(publicKey);
    keys.set(did, key);
    return new Promise((resolve, reject) => {
      verify(null, base, key, signature, (error, isValid) => (error ? reject(error) : resolve(isValid)));
    });
  };
}

function keyObject(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

function checkByNoble({ publicKey, base, signature }: Evidence): boolean {
  return nobleVerify(signature, base, publicKey);
}

/** Verifies as the packages' documentation suggests. */
async function checkByLibrary(request: BaselineRequest): Promise<boolean> {
  const { publicKey } = readEvidence(request);
  const message = {
    method: request.method,
    url: request.targetUri,
    headers: {
      'content-digest': request.contentDigest,
      'signature-input': request.signatureInput,
      signature: request.signature,
    },
  };
  const isValid = await httpbis.verifyMessage(
    {
      keyLookup: async ({ keyid }) => ({
        id: keyid ?? '',
        algs: ['ed25519'],
        verify: async (data, signature) => nobleVerify(signature, data, publicKey),
      }),
    },
    message,
  );
  return isValid === true;
}
