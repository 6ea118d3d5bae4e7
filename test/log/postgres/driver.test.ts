// The node-postgres client for a URL.
import { describe, expect, it, vi } from 'vitest';
import { newClient } from '../../../src/log/postgres/session.ts';

const URL = 'postgres://u:p@db.internal/name';

function sslOf(query: string): unknown {
  return (newClient(URL + query, {}) as { readonly ssl?: unknown }).ssl;
}

describe('sslmode', () => {
  it.each(['prefer', 'require', 'verify-ca', 'verify-full'])(
    'sslmode %s verifies the server without a warning',
    (mode) => {
      const warn = vi.spyOn(process, 'emitWarning');
      expect(sslOf(`?sslmode=${mode}&connect_timeout=5`)).toEqual({});
      expect(warn).not.toHaveBeenCalled();
    },
  );

  it('sslmode has libpq’s meaning on request', () => {
    expect(sslOf('?uselibpqcompat=true&sslmode=require')).toEqual({ rejectUnauthorized: false });
  });

  it('an sslmode that verifies nothing is unchanged', () => {
    expect([sslOf('?sslmode=disable'), sslOf('?sslmode=no-verify')]).toEqual([false, { rejectUnauthorized: false }]);
  });
});
