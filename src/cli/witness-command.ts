// `chambers witness`: cosigns the checkpoints of logs that only grow.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Misbehaviour } from '../tlog/misbehaviour.ts';
import { formatVerifierKey, NOTE_KEY_TYPES, type NoteKey, parseVerifierKey, toNoteKey } from '../tlog/note.ts';
import { publicKeyOf, signWith } from '../tlog/sign.ts';
import type { CommandSpec, Input } from './command.ts';
import { interruptible } from './environment.ts';
import { CommandError, EXIT, printMembers, printNotice } from './output.ts';
import { toInteger } from './values.ts';

const SEED_BYTES = 32;

export const witnessCommand: CommandSpec = {
  name: 'witness',
  summary: 'Runs a witness: it cosigns checkpoints of the logs that it is given, as long as each extends the last one',
  required: {
    '--key-file <file>': 'the key of the witness, which is made where there is none',
    '--state-file <file>': 'the last checkpoint of each log: never delete it',
  },
  options: {
    '--name <name>': 'of the key that is made, e.g. witness.example.org/w1',
    '--port <port>': 'to listen on (default: 8790; 0 picks a free one)',
    '--host <address>': 'to listen on (default: 127.0.0.1)',
  },
  repeatable: { '--log <vkey>': 'verifier key of a log: log.checkpointKey of GET /' },
  examples: ['witness --key-file=w1.json --state-file=w1.state.json --name=witness.example.org/w1 --log=…'],
  run: witness,
};

async function witness({ options, isJson }: Input): Promise<number> {
  const { createWitnessServer } = await import('../mirror/witness-server.ts');
  const { openWitnessKey, WitnessState } = await import('../mirror/witness-state.ts');
  const { name, log, port = '8790', host = '127.0.0.1' } = options;
  const logs = (log ?? '').split(',').filter(Boolean).map(toLogKey);
  if (logs.length === 0) throw new CommandError('usage', 'no log to watch: give its verifier key with --log');
  const { name: known, seed } = openWitnessKey(options['key-file'] ?? '', name, () => randomBytes(SEED_BYTES));
  const key = toNoteKey(known, NOTE_KEY_TYPES.cosignature, publicKeyOf(seed));
  const { recall, remember, keep } = new WitnessState(options['state-file'] ?? '');
  const now = () => Math.floor(Date.now() / 1000);
  const onFork = (proof: Misbehaviour) =>
    printNotice(isJson, `INCONSISTENT: a log has forked, ${keep(proof)} proves it`);
  const server = createWitnessServer({ key, sign: signWith(seed), logs, recall, remember, now, onFork });
  return interruptible(new Error('interrupted'), async (signal) => {
    server.listen(toInteger('--port', port, 0), host);
    await once(server, 'listening');
    const { port: bound } = server.address() as AddressInfo;
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}`;
    printMembers(isJson, { url, policyLine: `witness ${known} ${formatVerifierKey(key)} ${url}` });
    await once(signal, 'abort');
    server.close().closeAllConnections();
    return EXIT.ok;
  });
}

function toLogKey(text: string): NoteKey {
  const key = parseVerifierKey(text);
  if (key?.type === NOTE_KEY_TYPES.ed25519) return key;
  throw new CommandError('usage', `--log: “${text}” is not the verifier key of a log`);
}
