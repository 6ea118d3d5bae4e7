// Dates of other programs, each in one form, whatever the machine's time zone.
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { certificateInstantOf, httpInstantOf } from '../../src/reading/http-date.ts';

test('a header has the date of RFC 9110, and no other', () => {
  expect(httpInstantOf('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
  for (const text of ['Sunday, 06-Nov-94 08:49:37 GMT', '06 Nov 1994 08:49:37 GMT', '1994-11-06', '', null, undefined])
    expect([text, httpInstantOf(text)]).toEqual([text, Number.NaN]);
});

test('a certificate has the date that OpenSSL writes', () => {
  expect(certificateInstantOf('Nov  6 08:49:37 2027 GMT')).toBe(Date.UTC(2027, 10, 6, 8, 49, 37));
  for (const text of rootCertificates.slice(0, 20)) {
    const { validTo } = new X509Certificate(text);
    expect([validTo, Number.isNaN(certificateInstantOf(validTo))]).toEqual([validTo, false]);
  }
  expect(certificateInstantOf('Nov  6 08:49:37 2027')).toBeNaN();
});
