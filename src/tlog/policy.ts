// A trust policy (c2sp.org/tlog-policy): the known logs and witnesses, and the sets of witnesses that form a quorum.
import { NOTE_KEY_TYPES, type NoteKey, parseVerifierKey } from './note.ts';

export interface PolicyWitness {
  readonly name: string;
  readonly key: NoteKey;
  /** The submission prefix, without a trailing slash. */
  readonly url: string | undefined;
}

export interface Policy {
  readonly logs: readonly NoteKey[];
  readonly witnesses: readonly PolicyWitness[];
  /** Whether the witnesses with these names are a quorum. */
  readonly isQuorum: (names: ReadonlySet<string>) => boolean;
}

type Rule = Policy['isQuorum'];

const NONE = 'none';
// biome-ignore lint/suspicious/noControlCharactersInRegex: the specification allows only tab and line break.
const FORBIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f]/;

/** Throws an Error with a one-line message for an invalid policy. */
export function parsePolicy(text: string): Policy {
  if (FORBIDDEN.test(text)) throw new Error('it contains a control character');
  const parser = new Parser();
  for (const [i, line] of text.split('\n').entries()) {
    const words = line.split(/[ \t]+/).filter((word) => word !== '');
    if (words.length === 0 || words[0]?.startsWith('#')) continue;
    try {
      parser.take(words);
    } catch (error) {
      throw new Error(`line ${i + 1}: ${(error as Error).message}`, { cause: error });
    }
  }
  return parser.policy();
}

class Parser {
  readonly #logs: NoteKey[] = [];
  readonly #witnesses: PolicyWitness[] = [];
  readonly #rules = new Map<string, Rule>();
  readonly #members = new Set<string>();
  #quorum: Rule | undefined;

  take([keyword, ...words]: readonly string[]): void {
    if (keyword === 'log') this.#takeLog(words);
    else if (keyword === 'witness') this.#takeWitness(words);
    else if (keyword === 'group') this.#takeGroup(words);
    else if (keyword === 'quorum') this.#takeQuorum(words);
    else throw new Error(`“${keyword}” is not log, witness, group or quorum`);
  }

  policy(): Policy {
    if (this.#quorum === undefined) throw new Error('it has no quorum line');
    return { logs: this.#logs, witnesses: this.#witnesses, isQuorum: this.#quorum };
  }

  #takeLog([vkey = '', ...rest]: readonly string[]): void {
    const key = parseVerifierKey(vkey);
    if (key?.type !== NOTE_KEY_TYPES.ed25519 || rest.length > 1) throw new Error('must be log <vkey> [<url>]');
    requireNew(key, this.#logs);
    this.#logs.push(key);
  }

  #takeWitness([name = '', vkey = '', url, ...rest]: readonly string[]): void {
    const key = parseVerifierKey(vkey);
    const isUrl = url === undefined || /^https?:\/\/[^/]/.test(url);
    if (key?.type !== NOTE_KEY_TYPES.cosignature || !isUrl || rest.length > 0) {
      throw new Error('must be witness <name> <vkey> [<url>], with a key for cosignatures');
    }
    requireNew(
      key,
      this.#witnesses.map((witness) => witness.key),
    );
    this.#define(name, (names) => names.has(name));
    this.#witnesses.push({ name, key, url: url?.replace(/(?<!\/)\/+$/, '') });
  }

  #takeGroup([name = '', count = '', ...members]: readonly string[]): void {
    const rules = members.map((member) => {
      if (this.#members.has(member)) throw new Error(`${member} is already a member of a group`);
      this.#members.add(member);
      return this.#find(member);
    });
    const needed = { any: 1, all: members.length }[count] ?? (/^[1-9][0-9]{0,5}$/.test(count) ? Number(count) : 0);
    if (needed < 1 || needed > members.length) throw new Error('must be group <name> all|any|<number> <name>...');
    this.#define(name, (names) => rules.filter((rule) => rule(names)).length >= needed);
  }

  #takeQuorum([name = '', ...rest]: readonly string[]): void {
    if (this.#quorum !== undefined || rest.length > 0) throw new Error('must be the only quorum <name>');
    this.#quorum = name === NONE ? () => true : this.#find(name);
  }

  #define(name: string, rule: Rule): void {
    if (name === '' || name === NONE || this.#rules.has(name)) throw new Error(`“${name}” is not a new name`);
    this.#rules.set(name, rule);
  }

  #find(name: string): Rule {
    const rule = this.#rules.get(name);
    if (rule === undefined) throw new Error(`${name} is not defined yet`);
    return rule;
  }
}

function requireNew({ publicKey }: NoteKey, known: readonly NoteKey[]): void {
  if (known.some((key) => key.publicKey.every((byte, i) => byte === publicKey[i])))
    throw new Error('its key is already defined');
}
