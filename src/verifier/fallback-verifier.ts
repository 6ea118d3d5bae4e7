// Applies the rule itself to signatures that a fast verifier refused for an R of small order.
import { isSignedBy, toVerifyingKey } from '../crypto/verify.ts';
import { type Question, TOO_MANY_WAITING, unavailable } from './question.ts';

/** Beyond this many waiting, a signature is rejected with FORUM_ERR_UNAVAILABLE: no honest signer makes such an R. */
const WAITING_MAX = 32;

/**
 * Runs on the calling thread, where a signature takes about 4 ms. The pause after each leaves that thread to others, however
 * many such signatures arrive.
 */
export function createFallbackVerifier(pauseMillis: number): (question: Question) => void {
  const waiting: Question[] = [];
  let isPausing = false;

  function judgeNext(): void {
    const question = waiting.shift();
    isPausing = question !== undefined;
    if (question === undefined) return;
    judge(question);
    setTimeout(judgeNext, pauseMillis);
  }

  return (question) => {
    if (waiting.length === WAITING_MAX) return question.reject(unavailable(TOO_MANY_WAITING));
    waiting.push(question);
    if (!isPausing) judgeNext();
  };
}

function judge({ publicKey, message, signature, resolve, reject }: Question): void {
  try {
    resolve(isSignedBy(toVerifyingKey(publicKey), message, signature));
  } catch (error) {
    reject(error);
  }
}
