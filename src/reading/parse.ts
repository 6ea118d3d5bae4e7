// JSON of hostile input: few values and few levels.
import { requireModestJson } from '../vocabulary/json.ts';
import { LimitError, type ReadLimits } from './limits.ts';

/** undefined if the text is not JSON. Throws a LimitError for JSON of too many values or levels. */
export function parseModestJson(text: string, { jsonValuesMax }: Pick<ReadLimits, 'jsonValuesMax'>): unknown {
  try {
    requireModestJson(text, jsonValuesMax);
  } catch (error) {
    throw new LimitError('jsonValuesMax', `its JSON is not read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
