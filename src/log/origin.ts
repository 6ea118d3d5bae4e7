// The public name of a log, under which its checkpoints are signed. It is fixed once, and stays when the service's address changes.
import type { LogMeta } from './store.ts';

/** `<host>/log/<logId>`; `url` is the service's address now, which counts at the first use only. */
export async function originOf(meta: LogMeta, logId: string, url: string): Promise<string> {
  // A renewed log has another logId, and so another origin.
  const name = `origin ${logId}`;
  const known = await meta.recall(name);
  if (known !== undefined) return known;
  await meta.remember(name, `${new URL(url).host}/log/${logId}`);
  return (await meta.recall(name)) as string;
}
