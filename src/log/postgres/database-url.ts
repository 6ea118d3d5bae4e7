// DATABASE_URL: one URL for several hosts, in libpq's format. It may contain a password, which no message repeats.

const DATABASE_URL = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]+)(\/[^/?#]+(?:\?[^#]*)?)$/;

export function isPostgres(database: string): boolean {
  return /^postgres(ql)?:/.test(database);
}

/** Returns a URL for each host of `postgres://user@one,two:5433/name`. Throws an Error that repeats no part of the URL. */
export function hostUrls(databaseUrl: string): readonly string[] {
  const [, start, hosts = '', end] = DATABASE_URL.exec(databaseUrl) ?? [];
  const urls = hosts.split(',').map((host) => `${start}${host}${end}`);
  if (start !== undefined && urls.every((url) => URL.canParse(url))) return urls;
  throw new Error('must be postgres://USER:PASSWORD@HOST:PORT/NAME, with several hosts separated by commas');
}

/** Returns the URL without user, password and options. */
export function describeDatabase(databaseUrl: string): string {
  const [, , hosts, end = ''] = DATABASE_URL.exec(databaseUrl) ?? [];
  return `postgres://${hosts}${end.split('?')[0]}`;
}
