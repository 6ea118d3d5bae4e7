/** A stream of events: a chamber's by its id, an agent's account by its DID. */
export type StreamId = number | string;
