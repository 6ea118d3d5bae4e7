// The check `withheld` of a chamber and its members' accounts.
import type { Misbehaviour } from '../../tlog/misbehaviour.ts';
import type { AuditContext } from '../context.ts';
import { problemOfStub, type StartedStub } from '../line/stub.ts';
import type { Findings, Problem } from '../report/findings.ts';

export class StubChecks {
  readonly withheldEvents: number[] = [];
  /** Of the service's misbehaviour; the command writes them. */
  readonly proofs: Misbehaviour[] = [];
  readonly #findings: Findings;
  readonly #context: AuditContext;
  #isWithout = true;

  constructor(findings: Findings, context: AuditContext) {
    this.#findings = findings;
    this.#context = context;
  }

  async take(stub: StartedStub, eventId: number, pinned: string | undefined): Promise<void> {
    this.#isWithout = false;
    const problem = await problemOfStub(stub, this.#context, pinned);
    const named = `event ${eventId}`;
    this.#report(stub, problem, { named, eventIds: [eventId] });
    if (stub.original === undefined) this.withheldEvents.push(eventId);
  }

  /** Takes a stub of an account, which the chamber's event names first. */
  async takeOfAccount(stub: StartedStub, namedBy: number, pinned: string | undefined): Promise<void> {
    const problem = await problemOfStub(stub, this.#context, pinned);
    const { eventId, did } = stub.event;
    this.#report(stub, problem, { named: `event ${eventId} of the account of ${did}`, eventIds: [namedBy] });
  }

  /** A chamber whose lines are all there. */
  conclude(): void {
    if (this.#isWithout) this.#findings.judge('withheld', []);
  }

  #report(stub: StartedStub, problem: Problem, { named, eventIds }: Named): void {
    const { original, contradiction, event } = stub;
    this.#findings.assess('withheld', eventIds, problem, `${named} `);
    // Anybody can make a stub that contradicts another one; only the service's own proves anything.
    if (contradiction !== undefined && problem === undefined) this.proofs.push(contradiction.proof);
    if (contradiction !== undefined) this.#findings.judge('withheld', eventIds, `${named} ${contradiction.problem}`);
    if (original !== undefined || typeof problem === 'string') return;
    const why = `${named} rests on the service’s word, which has withheld its texts (${event.withheld.reason}): --originals compares it with the line that was`;
    if (this.#context.policy.whole) this.#findings.undecided('withheld', why);
    else this.#findings.notEvaluated({ needs: 'originals', why }, 'withheld');
  }
}

interface Named {
  readonly named: string;
  readonly eventIds: readonly number[];
}
