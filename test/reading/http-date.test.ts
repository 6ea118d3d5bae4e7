// Dates in the one form that each kind of program writes, whatever the machine's time zone.
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { certificateInstantOf, httpInstantOf } from '../../src/reading/http-date.ts';

test('a date in a header must have the form of RFC 9110', () => {
  expect(httpInstantOf('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
  for (const text of ['Sunday, 06-Nov-94 08:49:37 GMT', '06 Nov 1994 08:49:37 GMT', '1994-11-06', '', null, undefined])
    expect([text, httpInstantOf(text)]).toEqual([text, Number.NaN]);
});

test('a date in a certificate must have the form that OpenSSL writes', () => {
  expect(certificateInstantOf('Nov  6 08:49:37 2027 GMT')).toBe(Date.UTC(2027, 10, 6, 8, 49, 37));
  for (const text of rootCertificates.slice(0, 20)) {
    const { validTo } = new X509Certificate(text);
    expect([validTo, Number.isNaN(certificateInstantOf(validTo))]).toEqual([validTo, false]);
  }
  expect(certificateInstantOf('Nov  6 08:49:37 2027')).toBeNaN();
});
