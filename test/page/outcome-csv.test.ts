import { expect, it } from 'vitest';
import type { OutcomeIdea, OutcomeView } from '../../projections/outcome.ts';
import { outcomeCsv } from '../../src/page/outcome-csv.ts';

const IDEA = { ideaId: 'idea-1', ticker: 'RSV', proposer: 'did:key:z', failure: null } as OutcomeIdea;

function cellOf(name: string): string {
  const [, row = ''] = outcomeCsv({ ideas: [{ ...IDEA, name }] } as unknown as OutcomeView).split('\r\n');
  return row;
}

it.each([
  ['=1+1', /^idea-1,RSV,'=1\+1,/],
  ['@SUM(A1)', /,'@SUM\(A1\),/],
  ['rain, and sun', /,"rain, and sun",/],
  ['5, -3 at night', /,"5, -3 at night",/],
])('a name is never a formula in the CSV: %s', (name, row) => {
  expect(cellOf(name)).toMatch(row);
});

it.each([';=1+1', 'a;=1+1', 'a; =1+1', 'a;"=1+1', 'a\t=1+1', 'a\r\n=1+1', 'a;+1', 'a;-1', 'a;@x'])(
  'a name is never a formula if cells are separated by semicolons or tabs: %j',
  (name) => {
    for (const cell of cellOf(name).split(/[;\t\r\n]/)) {
      expect(cell.replace(/^[ "]*/, '')).not.toMatch(/^[=+\-@]/);
    }
  },
);
