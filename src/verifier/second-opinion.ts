// Asks node:crypto about signatures that libsodium refused, a few at a time.
import type { NodeVerifier } from './node-verifier.ts';
import type { Question } from './question.ts';

/** Nearly all of these are plainly bad, so a flood of them waits for itself and leaves the thread pool to others. */
const AT_ONCE_MAX = 2;

export function createSecondOpinion(askNode: NodeVerifier): NodeVerifier {
  const waiting: Question[] = [];
  let asked = 0;

  function askNext(): void {
    const question = asked < AT_ONCE_MAX ? waiting.shift() : undefined;
    if (question === undefined) return;
    asked++;
    askNode({ ...question, resolve: answered(question.resolve), reject: answered(question.reject) });
  }

  function answered<Answer>(settle: (answer: Answer) => void): (answer: Answer) => void {
    return (answer) => {
      asked--;
      settle(answer);
      askNext();
    };
  }

  return (question) => {
    waiting.push(question);
    askNext();
  };
}
