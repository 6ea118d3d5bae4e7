import { CHAMBER_ID, LOG_ID } from '../../moves/samples.ts';
import { PHASES } from '../../vocabulary/values.ts';
import type { Parameter } from './endpoint.ts';

export interface Range {
  readonly min: number;
  readonly max: number;
  readonly fallback: number;
}

export const chamberId: Parameter = {
  name: 'id',
  in: 'path',
  description: 'the chamber',
  schema: positive(),
  example: CHAMBER_ID,
};

export const eventId: Parameter = {
  name: 'eventId',
  in: 'path',
  description: 'the event',
  schema: positive(),
  example: 3,
};

export const ticker: Parameter = {
  name: 'ticker',
  in: 'path',
  description: 'in any case',
  schema: { type: 'string' },
  example: 'RAIN',
};

export const phase: Parameter = query('phase', 'only chambers in this phase', { type: 'string', enum: PHASES });
export const before: Parameter = query('before', 'only chambers with a smaller id: the next page', natural());
export const ofChamber: Parameter = query('chamberId', 'only of this chamber', positive());
export const from: Parameter = { ...query('from', 'size of the smaller tree', positive(), 2), isRequired: true };
export const to: Parameter = { ...query('to', 'size of the larger tree', positive(), 9), isRequired: true };
export const log: Parameter = query(
  'log',
  'the Log-Id that the cursor is of: refused with 409 when the log is another, e.g. after a reset',
  { type: 'string' },
  LOG_ID,
);

export function after(description: string): Parameter {
  return query('after', description, natural(), 0);
}

export function limit({ min, max, fallback }: Range): Parameter {
  return query('limit', 'how many at most', { type: 'integer', minimum: min, maximum: max, default: fallback });
}

export const lastEventId: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  description: 'sent by browsers that reconnect to server-sent events; wins over `after`',
  schema: natural(),
};

function query(name: string, description: string, schema: Parameter['schema'], example?: unknown): Parameter {
  return { name, in: 'query', description, schema, ...(example === undefined ? {} : { example }) };
}

function natural() {
  return { type: 'integer', minimum: 0 };
}

function positive() {
  return { type: 'integer', minimum: 1 };
}
