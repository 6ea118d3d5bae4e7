import { createPrivateKey, sign as signEd25519 } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { formatCheckpoint, parseCheckpoint } from '../../src/tlog/checkpoint.ts';
import {
  formatNote,
  formatVerifierKey,
  isNoteSignature,
  NOTE_KEY_TYPES,
  openNote,
  parseCosignature,
  parseNote,
  parseVerifierKey,
  type SignedNote,
  signNote,
  toNoteKey,
} from '../../src/tlog/note.ts';

// These examples are from the documentation of golang.org/x/mod/sumdb/note.
const SEED = Buffer.from('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz', 'base64').subarray(1);
const VERIFIER_KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const NOTE = `${TEXT}
— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`;

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, SEED]), format: 'der', type: 'pkcs8' });
const sign = (message: Uint8Array) => Uint8Array.from(signEd25519(null, message, privateKey));

const key = parseVerifierKey(VERIFIER_KEY) ?? expect.fail('the key in the documentation is invalid');
const note = parseNote(NOTE) as SignedNote;

describe('a verifier key', () => {
  it('the verifier key in Go’s documentation is parsed and formatted', () => {
    expect(key).toMatchObject({ name: 'PeterNeumann', keyId: 'c74f20a3', type: NOTE_KEY_TYPES.ed25519 });
    expect(formatVerifierKey(key)).toBe(VERIFIER_KEY);
  });

  it('the verifier key of Go’s checksum database is parsed', () => {
    const text = 'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8';
    expect(parseVerifierKey(text)).toMatchObject({ name: 'sum.golang.org', keyId: '033de0ae' });
  });

  it.each([
    ['another key id', VERIFIER_KEY.replace('c74f20a3', 'c74f20a4')],
    ['a key id in upper case', VERIFIER_KEY.replace('c74f20a3', 'C74F20A3')],
    ['no name', VERIFIER_KEY.replace('PeterNeumann', '')],
    ['a space in its name', VERIFIER_KEY.replace('PeterNeumann', 'Peter Neumann')],
    ['an unknown type', VERIFIER_KEY.replace('+AR', '+CR')],
    ['base64 without its padding', VERIFIER_KEY.replace('10TW', '10')],
    ['a short key', 'PeterNeumann+c74f20a3+AQ=='],
    ['nothing', ''],
  ])('a verifier key with %s is rejected', (_, text) => {
    expect(parseVerifierKey(text)).toBeUndefined();
  });

  it('a verifier key of small order is rejected', () => {
    const identity = Uint8Array.of(1, ...new Uint8Array(31));
    expect(parseVerifierKey(formatVerifierKey(toNoteKey('weak.example', key.type, identity)))).toBeUndefined();
  });

  it('a verifier key with a space or a plus sign in its name is rejected', () => {
    expect(() => toNoteKey('a b', key.type, key.publicKey)).toThrow(RangeError);
    expect(() => toNoteKey('a+b', key.type, key.publicKey)).toThrow(RangeError);
  });
});

describe('a signed note', () => {
  it('the signed note in Go’s documentation is parsed, verified, signed and formatted', () => {
    expect(note.text).toBe(TEXT);
    expect(openNote(note, [key])).toHaveLength(1);
    expect(formatNote({ text: TEXT, signatures: [signNote(TEXT, key, sign)] })).toBe(NOTE);
  });

  it('a note without a signature of a known key, or with an invalid one, is rejected', () => {
    expect(openNote(note, [])).toBeUndefined();
    expect(openNote(note, [{ ...key, name: 'another' }])).toBeUndefined();
    expect(openNote({ ...note, text: TEXT.replace('answer', 'Answer') }, [key])).toBeUndefined();
  });

  it('a note may have signatures from unknown keys, of any length', () => {
    const unknown = { name: 'witness.example/w1', keyId: '00000000', bytes: new Uint8Array(2420) };
    const more = parseNote(formatNote({ ...note, signatures: [unknown, ...note.signatures] })) as SignedNote;
    expect(openNote(more, [key])?.map(({ name }) => name)).toEqual(['PeterNeumann']);
  });

  it('a note may have empty lines in its text and many signatures', () => {
    const text = 'one\n\ntwo\n\n\nthree\n';
    const signatures = Array.from({ length: 16 }, () => signNote(text, key, sign));
    expect(parseNote(formatNote({ text, signatures }))).toEqual({ text, signatures });
  });

  it.each([
    ['without signatures', `${TEXT}\n`],
    ['without an empty line', NOTE.replace('\n\n', '\n')],
    ['without a final newline', NOTE.slice(0, -1)],
    ['with a hyphen instead of the dash', NOTE.replace('—', '-')],
    ['with a line that is not a signature', `${NOTE}PeterNeumann\n`],
    ['with an empty signature', `${TEXT}\n— PeterNeumann \n`],
    ['with a key id but no signature', `${TEXT}\n— PeterNeumann x08gow==\n`],
    ['with base64 that is not canonical', NOTE.replace('JnAM=', 'JnAN=')],
    ['with a control character', NOTE.replace('think', 'th\tink')],
    ['with a lone surrogate', NOTE.replace('think', 'th\ud800nk')],
    ['with 101 signatures', NOTE + (NOTE.split('\n\n')[1] ?? '').repeat(100)],
    ['that is empty', ''],
  ])('a note %s is rejected', (_, text) => {
    expect(parseNote(text)).toBeUndefined();
  });
});

describe('a cosignature', () => {
  const witness = toNoteKey('witness.example/w1', NOTE_KEY_TYPES.cosignature, key.publicKey);
  const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';
  const signature = sign(Buffer.from(`cosignature/v1\ntime 1679315147\n${text}`));
  const bytes = Uint8Array.from(Buffer.concat([Buffer.from('00000000641850cb', 'hex'), signature]));
  const cosignature = { name: witness.name, keyId: witness.keyId, bytes };

  it('a cosignature has a time in eight bytes and a signature over the message of tlog-cosignature', () => {
    expect(parseCosignature(cosignature.bytes)?.at).toBe(1_679_315_147n);
    expect(isNoteSignature(text, witness, cosignature)).toBe(true);
  });

  it('a cosignature and a log’s signature by the same key have different key ids', () => {
    expect(witness.keyId).not.toBe(toNoteKey('witness.example/w1', NOTE_KEY_TYPES.ed25519, key.publicKey).keyId);
    expect(isNoteSignature(text, { ...witness, type: NOTE_KEY_TYPES.ed25519 }, cosignature)).toBe(false);
  });

  it('a cosignature with a different time, text or length is invalid', () => {
    const later = Uint8Array.from(cosignature.bytes);
    later[7] = 0xcc;
    expect(isNoteSignature(text, witness, { ...cosignature, bytes: later })).toBe(false);
    expect(isNoteSignature(text.replace('20852163', '20852164'), witness, cosignature)).toBe(false);
    expect(isNoteSignature(text, witness, { ...cosignature, bytes: cosignature.bytes.slice(1) })).toBe(false);
    expect(isNoteSignature(text, witness, { ...cosignature, bytes: new Uint8Array(72).fill(255) })).toBe(false);
  });
});

describe('the text of a checkpoint', () => {
  const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';

  it('the checkpoint in the specification is parsed and formatted', () => {
    const checkpoint = parseCheckpoint(text) ?? expect.fail('the checkpoint is invalid');
    expect(checkpoint).toMatchObject({ origin: 'example.com/behind-the-sofa', size: 20_852_163 });
    expect(formatCheckpoint(checkpoint)).toBe(text);
  });

  it('a checkpoint may have extension lines', () => {
    expect(parseCheckpoint(`${text}anything\n`)?.size).toBe(20_852_163);
  });

  it.each([
    ['an empty origin', text.replace('example.com/behind-the-sofa', '')],
    ['a size with a leading zero', text.replace('20852163', '020852163')],
    ['a size beyond exact numbers', text.replace('20852163', '9007199254740992')],
    ['a negative size', text.replace('20852163', '-1')],
    ['a root of 31 bytes', text.replace('CsUY', '')],
    ['an empty extension line', `${text}\n`],
    ['no final newline', text.slice(0, -1)],
    ['two lines', text.split('\n').slice(0, 2).join('\n')],
  ])('a checkpoint with %s is rejected', (_, malformed) => {
    expect(parseCheckpoint(malformed)).toBeUndefined();
  });
});
