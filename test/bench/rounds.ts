// Repeats measurements so that a noisy machine affects all sides alike: every round measures each side, in alternating order.
import type { Row } from './verdicts.ts';

export interface Contender<Figures> {
  readonly name: string;
  readonly measure: () => Promise<Figures>;
}

export interface Series<Figures> {
  readonly name: string;
  readonly runs: readonly Figures[];
}

export async function measureInRounds<Figures>(
  contenders: readonly Contender<Figures>[],
  rounds: number,
): Promise<readonly Series<Figures>[]> {
  const runs = contenders.map((): Figures[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...contenders.entries()];
    if (round % 2 === 1) order.reverse();
    for (const [index, { name, measure }] of order) {
      process.stderr.write(`  round ${round + 1} of ${rounds}: ${name}\n`);
      runs[index]?.push(await measure());
    }
  }
  return contenders.map(({ name }, index) => ({ name, runs: runs[index] ?? [] }));
}

/** Returns one figure from each run. */
export function rowOf<Figures>({ name, runs }: Series<Figures>, unit: string, figure: (run: Figures) => number): Row {
  return { what: name, unit, values: runs.map(figure) };
}

/** Returns the same runs under a name that says which figures are meant. */
export function about<Figures>(what: string, { name, runs }: Series<Figures>): Series<Figures> {
  return { name: `${name}: ${what}`, runs };
}

/** Returns the responses other than 200; if there are any, nothing can be compared. */
export function failuresOf(series: readonly Series<{ readonly failure: string | null }>[]): readonly string[] {
  return series.flatMap(({ name, runs }) =>
    runs.flatMap(({ failure }) => (failure === null ? [] : [`${name} answered ${failure}`])),
  );
}
