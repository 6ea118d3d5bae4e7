// The check `withheld` for a chamber and its members' accounts.
import type { Misbehaviour } from '../../tlog/misbehaviour.ts';
import type { AuditContext } from '../context.ts';
import { type Contradiction, contradictionOf, type StartedStub, stubProblem } from '../line/stub.ts';
import type { Findings } from '../report/findings.ts';
import type { AccountEventName } from '../report/report-types.ts';

export class StubChecks {
  readonly withheldEvents: number[] = [];
  readonly withheldAccountEvents: AccountEventName[] = [];
  /** Proofs of the service's misbehaviour; the command writes them to files. */
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
    await this.#judge(stub, pinned, { named: `event ${eventId}`, eventIds: [eventId] });
    if (stub.original === undefined) this.withheldEvents.push(eventId);
  }

  /** `namedBy` is the first chamber event that names the account. */
  async takeOfAccount(stub: StartedStub, namedBy: number, pinned: string | undefined): Promise<void> {
    const { eventId, did } = stub.event;
    await this.#judge(stub, pinned, { named: `event ${eventId} of the account of ${did}`, eventIds: [namedBy] });
    if (stub.original === undefined && did !== null) this.withheldAccountEvents.push({ did, eventId });
  }

  /** A chamber without stubs counts as verified. */
  conclude(): void {
    if (this.#isWithout) this.#findings.judge('withheld', []);
  }

  async #judge(stub: StartedStub, pinned: string | undefined, { named, eventIds }: Named): Promise<void> {
    const { original, contradiction, event } = stub;
    const problem = await stubProblem(stub, this.#context, pinned);
    this.#findings.assess('withheld', eventIds, problem, `${named} `);
    for (const found of [contradiction, await this.#contradictionByOther(stub, pinned)]) {
      if (found === undefined) continue;
      // Anybody can forge a stub that a line contradicts; only a stub signed by the service proves misbehaviour.
      if (problem === undefined) this.proofs.push(found.proof);
      this.#findings.judge('withheld', eventIds, `${named} ${found.problem}`);
    }
    if (original !== undefined || typeof problem === 'string') return;
    const why = `${named} can’t be verified, because the service has withheld its texts (${event.withheld.reason}): --originals compares it with the original line`;
    if (this.#context.policy.whole) this.#findings.undecided('withheld', why);
    else this.#findings.notEvaluated({ needs: 'originals', why }, 'withheld');
  }

  async #contradictionByOther(stub: StartedStub, pinned: string | undefined): Promise<Contradiction | undefined> {
    for (const other of stub.others) {
      if ((await stubProblem(other, this.#context, pinned)) === undefined) return contradictionOf(other, stub);
    }
    return undefined;
  }
}

interface Named {
  readonly named: string;
  readonly eventIds: readonly number[];
}
