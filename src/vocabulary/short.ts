// Short forms of times and agents, shared by the command line, the service's pages and the browser.
import type { Millis } from './values.ts';

const DAY_SECONDS = 86_400;

/** Shortens a DID to its end, e.g. `…zZHQW1u3`, because all DIDs begin alike. */
export function shortAgent(did: string): string {
  return `…${did.slice(-8)}`;
}

/** Formats the time left until `end` in its two largest units, e.g. `2 d 3 h`, `1 m 31 s` or `8 s`. */
export function timeLeft(end: Millis, now: Millis): string {
  const seconds = Math.max(0, Math.ceil((end - now) / 1000));
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3600)];
  if (seconds >= DAY_SECONDS) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} m`;
  return minutes > 0 ? `${minutes} m ${seconds % 60} s` : `${seconds} s`;
}
