// What the description tells of the configuration: the limits that a caller meets.
import type { Range } from './endpoints/parameters.ts';

export interface ApiLimits {
  readonly bodyBytesMax: number;
  readonly membersMax: number;
  readonly ideasMax: number;
  readonly signatureMaxAgeSeconds: number;
  readonly signatureMaxSkewSeconds: number;
  /** GET /chambers and GET /ideas. */
  readonly list: Range;
  /** GET /chambers/:id/events. */
  readonly events: Range;
}
