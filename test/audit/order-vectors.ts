// Vectors of several chambers of one log: a second chamber, audited after the sample or after a chamber from an earlier release.
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { type Line, rechained, signedLine, toText } from './forge.ts';
import { payloadOf, records } from './forgeries.ts';
import { ANN } from './sample.ts';

type Row = readonly [title: string, text: string, after: readonly string[], ...eventIds: number[]];

/** Records keys and names account lines. */
const SAMPLE = '../chamber.ndjson';
/** The creation records no keys. */
const EARLIER = 'rule-honest-01.ndjson';
const FIRST = records[0] as Line;
const CREATED = Date.parse(String(FIRST['ts']));

/** Returns the creation of chamber 2 with additional members in its payload. */
function second(at: number, stored: Line): string {
  const deadlines = deadlinesFrom(START + HOUR);
  const members = { name: 'A second one', minBackersForGraduation: 1 };
  const body: Line = { ...members, ...deadlines };
  const payload = { ...members, turnSeconds: null, deadlines, ...stored } as Line;
  const line = signedLine({ by: ANN, type: 'chamber.created', path: '/chambers', at, body, payload });
  return toText(rechained([{ ...line, chamberId: 2 }]));
}

const { serviceKeys = null } = payloadOf(FIRST);
const WITH_KEYS: Line = { serviceKeys };

function withoutAccount(text: string): string {
  const [line = {}] = text.split('\n', 1).map((each) => JSON.parse(each) as Line);
  const { accountEventId: _, ...payload } = payloadOf(line);
  return toText(rechained([{ ...line, payload }]));
}

export const SOUND: readonly Row[] = [
  ['a second chamber', second(CREATED + HOUR, WITH_KEYS), [SAMPLE]],
  ['a second chamber, dated 60 s before the first one', second(CREATED - 60_000, WITH_KEYS), [SAMPLE]],
  ['a second chamber that records keys, after one of an earlier release', second(CREATED, WITH_KEYS), [EARLIER]],
  ['a second chamber without keys, after one of an earlier release', second(CREATED, {}), [EARLIER]],
];

export const BROKEN: readonly Row[] = [
  ['a second chamber without the keys that the first one records', second(CREATED + HOUR, {}), [SAMPLE], 1],
  ['a second chamber, dated 61 s before the first one', second(CREATED - 61_000, WITH_KEYS), [SAMPLE], 1],
  [
    'a second chamber that names no account line, although the first one does',
    withoutAccount(second(CREATED + HOUR, WITH_KEYS)),
    [SAMPLE],
    1,
  ],
  ['a second chamber created by the first one’s request', toText(rechained([{ ...FIRST, chamberId: 2 }])), [SAMPLE], 1],
];
