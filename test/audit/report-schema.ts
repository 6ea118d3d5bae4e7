// Validates every report of the tests against the published schema.
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import type { AuditReport } from '../../src/audit/report/report-types.ts';

const schema: object = JSON.parse(
  readFileSync(new URL('../../src/audit/report/report.schema.json', import.meta.url), 'utf8'),
);
const ajv = new Ajv2020({ allErrors: true });
// ajv-formats is a CommonJS module.
addFormats.default(ajv);
const fits = ajv.compile(schema);

export function expectReport(report: AuditReport): void {
  const value: unknown = JSON.parse(JSON.stringify(report));
  expect(fits(value), ajv.errorsText(fits.errors)).toBe(true);
}
