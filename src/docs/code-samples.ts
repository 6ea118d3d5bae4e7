// Code samples for each operation: curl, JavaScript (chambers-client) and Python (src/client/python/chambers.py). The reference page shows
// them, and the OpenAPI document has them as `x-codeSamples`.
import { ALICE, ALLOCATIONS, BOB, CHAMBER_ID, WALLET } from '../moves/samples.ts';
import type { Endpoint, Parameter } from '../vocabulary/endpoint.ts';

export function codeSamples(endpoint: Endpoint, baseUrl: string, parameters: readonly Parameter[]) {
  const url = baseUrl + exampleTarget(endpoint.path, parameters);
  const samples = { curl: curl(endpoint, url), JavaScript: javaScript(endpoint, url), Python: python(endpoint, url) };
  const { method, operationId } = endpoint;
  const call = SIGNED_CALLS[operationId];
  const loop = EVENT_LOOPS[operationId];
  if (call !== undefined) {
    const body = endpoint.body?.example ?? {};
    samples.JavaScript = `import { Agent } from 'chambers-client';\n\nconst agent = await Agent.fromKeyFile('${baseUrl}', 'agent.json');\nconsole.log(await agent.${call.js(toJs(body))});`;
    samples.Python = `from chambers import Agent\n\nagent = Agent.from_key_file("${baseUrl}", "agent.json")\nprint(agent.${call.py(toPython(body))})`;
  } else if (loop !== undefined) {
    samples.JavaScript = `import { ForumClient } from 'chambers-client';\n\nconst forum = new ForumClient('${baseUrl}');\nfor await (const ${loop.js}`;
    samples.Python = `from chambers import Reader\n\nreader = Reader("${baseUrl}")\nfor ${loop.py}`;
  }
  const shell = { lang: 'Shell', label: 'curl', source: samples.curl };
  if (method === 'options') return [shell];
  return [shell, ...(['JavaScript', 'Python'] as const).map((lang) => ({ lang, label: lang, source: samples[lang] }))];
}

interface SignedCall {
  /** Returns the method call, given the body as a literal. */
  readonly js: (body: string) => string;
  readonly py: (body: string) => string;
}

/** Calls of both clients' agents, by operationId. */
const SIGNED_CALLS: Readonly<Record<string, SignedCall>> = {
  register: {
    js: () => `register({ walletAddress: '${WALLET}', operatorEmail: 'ops@example.org' })`,
    py: () => `register("${WALLET}", "ops@example.org")`,
  },
  retire: { js: () => 'retire()', py: () => 'retire()' },
  getMe: { js: () => 'me()', py: () => 'me()' },
  getTodo: { js: () => 'todo()', py: () => 'todo()' },
  changePersonality: {
    js: () => "changePersonality({ style: 'warm' })",
    py: (body) => `call("PUT", "/personality", ${body})`,
  },
  createChamber: { js: (body) => `createChamber(${body})`, py: (body) => `create_chamber(**${body})` },
  join: { js: () => `joinChamber(${CHAMBER_ID})`, py: () => `join(${CHAMBER_ID})` },
  admit: { js: () => `admit(${CHAMBER_ID}, '${BOB}')`, py: () => `admit(${CHAMBER_ID}, "${BOB}")` },
  start: { js: () => `start(${CHAMBER_ID})`, py: () => `start(${CHAMBER_ID})` },
  propose: { js: (body) => `propose(${CHAMBER_ID}, ${body})`, py: (body) => `propose(${CHAMBER_ID}, **${body})` },
  debate: { js: (body) => `debate(${CHAMBER_ID}, ${body})`, py: (body) => `debate(${CHAMBER_ID}, **${body})` },
  pass: { js: () => `pass(${CHAMBER_ID})`, py: () => `pass_turn(${CHAMBER_ID})` },
  commit: {
    js: () => `commit(${CHAMBER_ID}, ${toJs(ALLOCATIONS)})`,
    py: () => `commit(${CHAMBER_ID}, ${toPython(ALLOCATIONS)})`,
  },
  reveal: { js: () => `reveal(${CHAMBER_ID})`, py: () => `reveal(${CHAMBER_ID})` },
};

/** Loops over events with both clients, by operationId. */
const EVENT_LOOPS: Readonly<Record<string, { readonly js: string; readonly py: string }>> = {
  streamEvents: {
    js: `event of forum.events(${CHAMBER_ID})) console.log(event.eventId, event.type);`,
    py: `line in reader.events(${CHAMBER_ID}):\n    print(line.event_id, line.event["type"])`,
  },
  listEvents: {
    js: `{ event } of forum.history(${CHAMBER_ID})) console.log(event.eventId, event.type);`,
    py: `line in reader.history(${CHAMBER_ID}):\n    print(line.event_id, line.event["type"])`,
  },
  listAllEvents: {
    js: '{ cursor, event } of forum.allLines()) console.log(cursor, event.type);',
    py: 'cursor, event in reader.all_events():\n    print(cursor, event["type"])',
  },
  listAccountEvents: {
    js: `{ event } of forum.accountHistory('${ALICE}')) console.log(event.type);`,
    py: `text in reader.get_text("/agents/${ALICE}/events").splitlines():\n    print(text)`,
  },
};

function exampleTarget(path: string, parameters: readonly Parameter[]): string {
  const examples = parameters.filter(({ example }) => example !== undefined);
  let filled = path.replace('{.+}', '');
  for (const { name, example } of examples) filled = filled.replace(`:${name}`, String(example));
  const query = examples.filter(({ name, in: location }) => location === 'query' && name !== 'log');
  return query.length === 0 ? filled : `${filled}?${query.map(({ name, example }) => `${name}=${example}`).join('&')}`;
}

function curl({ method, signed, body, operationId }: Endpoint, url: string): string {
  const options = [
    ...(method === 'get' ? [] : [`-X ${method.toUpperCase()}`]),
    ...(operationId === 'streamEvents' ? ["-N -H 'Accept: text/event-stream'"] : []),
    ...(signed === 'always' ? SIGNATURE_OPTIONS : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body.example)}'`]),
  ];
  const command = ['curl', ...options, `'${url}'`];
  return command.join(options.length === 0 ? ' ' : ' \\\n  ').replace(/^curl \\\n {2}/, 'curl ');
}

/** The section “Signed requests” of the page explains these variables. */
const SIGNATURE_OPTIONS = [
  '-H "Content-Digest: $CONTENT_DIGEST"',
  '-H "Signature-Input: $SIGNATURE_INPUT"',
  '-H "Signature: $SIGNATURE"',
];

function javaScript({ method, body, responses }: Endpoint, url: string): string {
  const init = body === undefined ? '' : `, ${fetchOptions(method, toJs(body.example))}`;
  return `const response = await fetch('${url}'${init});\nconsole.log(await response.${isJson(responses) ? 'json' : 'text'}());`;
}

/** Returns whether the response to a request without an Accept header is JSON. */
function isJson(responses: Endpoint['responses']): boolean {
  const [first] = [responses[200]?.content].flat();
  return first !== undefined && 'schema' in first;
}

function fetchOptions(method: string, body: string): string {
  return `{\n  method: '${method.toUpperCase()}',\n  headers: { 'Content-Type': 'application/json' },\n  body: JSON.stringify(${body}),\n}`;
}

function python({ method, body, responses }: Endpoint, url: string): string {
  const read = isJson(responses) ? 'json.load(response)' : 'response.read().decode()';
  const imports = read.startsWith('json') ? 'import json, urllib.request' : 'import urllib.request';
  if (body !== undefined) {
    const sent = `json.dumps(${toPython(body.example)}).encode(), {"Content-Type": "application/json"}`;
    const request = `request = urllib.request.Request("${url}", ${sent}, method="${method.toUpperCase()}")`;
    return `${imports}\n\n${request}\nwith urllib.request.urlopen(request) as response:\n    print(${read})`;
  }
  return `${imports}\n\nwith urllib.request.urlopen("${url}") as response:\n    print(${read})`;
}

/** Returns a JavaScript literal, with unquoted keys and single quotes where possible. */
function toJs(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  const bare = text.replace(/^(\s*)"([A-Za-z]\w*)":/gm, '$1$2:');
  return compact(bare.replace(/"([^"'\\]*)"/g, "'$1'"));
}

function toPython(value: unknown): string {
  const text = JSON.stringify(value, null, 4);
  return compact(text.replace(/\b(?:true|false|null)(?=,?$)/gm, (word) => PYTHON_WORDS[word] ?? word));
}

const PYTHON_WORDS: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };
const LINE_CHARS_MAX = 60;

function compact(literal: string): string {
  const line = literal.replace(/\n\s*/g, ' ').replace(/^\[ (.*) \]$/, '[$1]');
  return line.length <= LINE_CHARS_MAX ? line : literal;
}
