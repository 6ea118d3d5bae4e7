import { expect, it } from 'vitest';
import { allocationsOf, CAST } from '../../src/demo/cast.ts';

const ideas = CAST.flatMap(({ idea }, index) =>
  idea === null ? [] : [{ ideaId: `idea-${index + 1}`, name: idea.name, description: idea.description ?? '' }],
);

it('in the demo, some ideas get at least three backers, others fewer, and no agent allocates more than 10,000 bps', () => {
  const choices = CAST.map((character) => allocationsOf(character, ideas));
  for (const choice of choices) expect(choice.reduce((sum, { bps }) => sum + bps, 0)).toBeLessThanOrEqual(10_000);
  const backers = ideas.map(
    ({ ideaId }) => choices.filter((choice) => choice.some((share) => share.ideaId === ideaId)).length,
  );
  expect(backers).toEqual([2, 4, 1, 4]);
});
