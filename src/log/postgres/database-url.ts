// DATABASE_URL: one URL for several hosts, in the form of libpq. It contains a password, which no message repeats.

const DATABASE_URL = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]+)(\/[^/?#]+(?:\?[^#]*)?)$/;

export function isPostgres(database: string): boolean {
  return /^postgres(ql)?:/.test(database);
}

/** A URL for each host of `postgres://user@one,two:5433/name`; throws an Error that repeats no part of it. */
export function hostUrls(databaseUrl: string): readonly string[] {
  const [, start, hosts = '', end] = DATABASE_URL.exec(databaseUrl) ?? [];
  const urls = hosts.split(',').map((host) => `${start}${host}${end}`);
  if (start !== undefined && urls.every((url) => URL.canParse(url))) return urls;
  throw new Error('must be postgres://USER:PASSWORD@HOST:PORT/NAME, with several hosts separated by commas');
}

/** The hosts and the name, without user, password and options. */
export function describeDatabase(databaseUrl: string): string {
  const [, , hosts, end = ''] = DATABASE_URL.exec(databaseUrl) ?? [];
  return `postgres://${hosts}${end.split('?')[0]}`;
}
