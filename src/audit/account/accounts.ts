// Checks the members' account lines, which show when each key was bound to which wallet.
import { type AccountState, evolveAccount } from '../../../projections/account.ts';
import { contentDigestOf, digestProblem } from '../../crypto/content-digest.ts';
import { parseDid } from '../../crypto/did-key.ts';
import { type ParsedSignature, SignatureError } from '../../crypto/http-signature.ts';
import { toBaseUrl } from '../../crypto/wallet-texts.ts';
import type { ChainQuestion, ReadChain } from '../../moves/chain-question.ts';
import { changePersonality } from '../../moves/change-personality.ts';
import { parseBody } from '../../moves/move.ts';
import { agentIdOf, register, registeredDid } from '../../moves/register.ts';
import { isContractWallet, retire, retireByWallet, retirementClaim } from '../../moves/retire.ts';
import { NO_CONTRACT, requireProof } from '../../moves/wallet-proof.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { AccountEvent, AccountPayloads, RequestEvidence, WalletProof } from '../../vocabulary/events.ts';
import { canonicalJson, parseJson } from '../../vocabulary/json.ts';
import { withoutTexts } from '../../vocabulary/texts.ts';
import {
  type Hex,
  instantOf,
  type JsonValue,
  type Millis,
  NO_PREVIOUS,
  type Personality,
  toHex,
} from '../../vocabulary/values.ts';
import type { ContractProof } from '../chain/recorded-block.ts';
import type { AuditContext } from '../context.ts';
import { CopyCheck, foreignFormat } from '../line/copy.ts';
import {
  baseOf,
  concludeVerification,
  judgeAge,
  normalBase,
  startVerification,
  type Verification,
} from '../line/evidence.ts';
import { ahead, type RawLine, UnusableInput } from '../line/input.ts';
import { leafOf } from '../line/leaf.ts';
import { type LineRecord, readAccountRecord } from '../line/record.ts';
import { type StartedStub, startStub } from '../line/stub.ts';
import { UsedValues } from '../line/used-values.ts';
import type { AuditedService } from '../service/service-reader.ts';

export interface AccountEntry {
  readonly leaf: Hex;
  readonly at: Millis;
  /** undefined if the registration is not published. */
  readonly walletAddress: string | undefined;
  readonly walletProven: boolean;
  readonly label: string | null;
  readonly isLabelWithheld: boolean;
  /** Whether the last registration contains its complete signed request. */
  readonly isSigned: boolean;
  readonly isRetirement: boolean;
}

/** Bounds memory and the number of calls to the chain. */
const CONTRACT_PROOFS_MAX = 64;

export class AccountLog {
  /** Once set, further lines are ignored. */
  problem: string | undefined;
  /** An open question that the caller can settle with an option. */
  doubt: string | undefined;
  /** Signatures that contracts accepted, as recorded; only the chain can confirm them. */
  readonly contractProofs: ContractProof[] = [];
  /** Estimated memory: the lines plus 1 KB. */
  bytes = 1_000;
  /** The number of unsigned lines accepted because of --allow-unsigned. */
  unsignedLines = 0;
  /** The event id of the first published line; the evidence in earlier lines contains an e-mail address. */
  firstEventId = 1;
  readonly entries: AccountEntry[] = [];
  readonly stubs: StartedStub[] = [];
  readonly origins = new Set<string>();
  readonly #did: string;
  readonly #context: AuditContext;
  readonly #signatures = new UsedValues();
  #state: AccountState | null = null;
  /** undefined until a line states it. */
  #personality: Personality | undefined;
  #leaf: Hex = NO_PREVIOUS;

  constructor(did: string, context: AuditContext) {
    this.#did = did;
    this.#context = context;
  }

  /** Returns undefined if the line was not provided. */
  entryAt(eventId: number): AccountEntry | undefined {
    return this.entries[eventId - this.firstEventId];
  }

  /** 0 if there are no lines. */
  get lastEventId(): number {
    return this.entries.length === 0 ? 0 : this.firstEventId + this.entries.length - 1;
  }

  async take({ event, line: { bytes }, verification, stub }: TakenLine): Promise<void> {
    if (this.problem !== undefined) return;
    if (stub !== undefined) this.stubs.push(stub);
    this.bytes += bytes.length;
    const problem = this.#positionProblem(event) ?? (await this.#evidenceProblem(event, verification));
    if (problem !== undefined) {
      this.problem = `event ${event.eventId} of the account of ${this.#did} ${problem}`;
      return;
    }
    if (event.type === 'agent.registered' || this.#state !== null) this.#state = evolveAccount(this.#state, event);
    // If the line withholds the personality, it is unknown until the next change states it.
    if (event.type !== retire.event)
      this.#personality = event.withheld === undefined ? event.payload.personality : undefined;
    this.#leaf = toHex(leafOf(bytes, event));
    const { walletAddress, walletProven = false, label = null, isAttested: isSigned = false } = this.#state ?? {};
    const isRetirement = event.type === retire.event;
    const isLabelWithheld = this.#state?.isRegistrationWithheld ?? false;
    this.entries.push({
      leaf: this.#leaf,
      at: instantOf(event.ts),
      walletAddress,
      walletProven,
      label,
      isLabelWithheld,
      isSigned,
      isRetirement,
    });
  }

  #positionProblem({ eventId, prev, ts, did, type }: AccountEvent): string | undefined {
    const last = this.entries.at(-1);
    if (did !== this.#did) return `belongs to ${did}`;
    if (last?.isRetirement) return 'comes after the retirement of the key';
    if (last === undefined) {
      this.firstEventId = eventId;
      if (eventId > 1) return prev === NO_PREVIOUS ? 'does not refer to a previous line' : undefined;
      return prev !== NO_PREVIOUS ? 'refers to a previous line' : type === register.event ? undefined : `is ${type}`;
    }
    const due = this.firstEventId + this.entries.length;
    if (eventId !== due) return `is in the place of event ${due}`;
    if (prev !== this.#leaf) return 'does not contain the hash of the previous line';
    return instantOf(ts) < last.at ? 'is earlier than the previous line' : undefined;
  }

  /** A registration without its request counts as unsigned. */
  async #evidenceProblem(event: AccountEvent, verification: Verification | undefined): Promise<string | undefined> {
    const { request } = event;
    if (event.type === register.event && !isOwnRegistration(event)) return 'registers another key';
    if (event.type === register.event && event.payload.pubkeyHex !== event.payload.pubkeyHex.toLowerCase())
      return 'has an uppercase pubkeyHex';
    if (event.type === retire.event && event.payload.by === 'wallet')
      return this.#retirementProblem(event, event.payload);
    if (request === null || request.body === null || verification === undefined) return this.#unsignedProblem(event);
    const at = instantOf(event.ts);
    try {
      const problem =
        this.#requestProblem(event, request, request.body) ??
        this.#signatureProblem(await concludeVerification(verification), event.eventId, at);
      return problem ?? this.#payloadProblem(event, jsonIn(request.body));
    } catch (error) {
      if (error instanceof SignatureError || error instanceof ForumError)
        return `is not what was signed: ${error.message}`;
      throw error;
    }
  }

  #requestProblem(event: AccountEvent, request: RequestEvidence, body: string): string | undefined {
    const slice = { [register.event]: register, [changePersonality.event]: changePersonality, [retire.event]: retire }[
      event.type
    ];
    const digest = digestProblem(request.contentDigest, contentDigestOf(new TextEncoder().encode(body)));
    if (digest !== undefined) return `has a body that differs from the signed one: ${digest}`;
    const origin = baseOf(request.targetUri, slice.path);
    if (origin === undefined || request.method !== slice.method)
      return `was requested by ${request.method} ${request.targetUri}`;
    this.origins.add(origin);
    return undefined;
  }

  #signatureProblem(parsed: ParsedSignature, eventId: number, at: Millis): string | undefined {
    const first = this.#signatures.add(parsed.signature, eventId, at);
    if (first !== undefined) return 'reuses the signature of an earlier line';
    const outcome = judgeAge(parsed, at, this.#context.policy);
    if (typeof outcome !== 'object') return outcome;
    this.doubt ??= `event ${eventId} of the account of ${this.#did} ${outcome.doubt}`;
    return undefined;
  }

  /** A registration may lack its request. Other unsigned lines are checked against their own payload if the caller allows them. */
  #unsignedProblem(event: AccountEvent): string | undefined {
    if (event.withheld !== undefined) return this.#stubProblem(event);
    if (event.type === register.event)
      return event.payload.walletProof && 'contains a wallet proof without its request';
    if (!this.#context.policy.allowUnsigned)
      return 'has no signature: it is forged, or was accepted in development mode (--allow-unsigned)';
    this.unsignedLines++;
    try {
      const isChange = event.type === changePersonality.event;
      return this.#payloadProblem(event, isChange ? changePersonality.impliedBody(event.payload) : {});
    } catch (error) {
      if (error instanceof ForumError) return `breaks a rule: ${error.message}`;
      throw error;
    }
  }

  /** The stub withholds the request but not the wallet's signature, so the auditor rebuilds the request from the remaining payload. */
  #stubProblem(event: AccountEvent): string | undefined {
    try {
      if (event.type === register.event) return this.#payloadProblem(event, register.impliedBody(event.payload));
      if (event.type === changePersonality.event)
        return this.#payloadProblem(event, changePersonality.impliedBody(event.payload));
      return undefined;
    } catch (error) {
      if (error instanceof ForumError) return `breaks a rule: ${error.message}`;
      throw error;
    }
  }

  #payloadProblem(event: AccountEvent, json: JsonValue | undefined): string | undefined {
    let due: unknown;
    if (event.type === register.event) {
      const { walletProof } = event.payload;
      const sent = parseBody(register, { json });
      if (sent.operatorEmail !== undefined)
        return 'contains a request with an e-mail address, which a service never stores';
      if ((sent.walletSignature === undefined) !== (sent.issuedAt === undefined))
        return 'was requested with an incomplete wallet proof';
      if (sent.walletSignature !== undefined && walletProof === undefined)
        return 'lacks the wallet proof of its request';
      due = register.decide(sent, {
        state: null,
        isSigned: true,
        services: [walletProof?.service ?? ''],
        readChain: this.#recordedResult(walletProof, event),
      });
      const problem = walletProof && this.#walletProofProblem(walletProof, event);
      if (problem !== undefined) return problem;
    } else if (event.type === changePersonality.event) {
      // If the first provided line is a change, nothing else states the previous personality.
      const personality = this.#personality ?? event.payload.personality;
      due = changePersonality.decide(parseBody(changePersonality, { json }), { state: { personality } });
    } else {
      const sent = parseBody(retire, { json });
      // Without a registration, nothing can contradict the retirement.
      if (this.#state === null) return undefined;
      due = retire.decide(sent, { state: this.#state });
    }
    const expected = event.withheld === undefined ? due : withoutTexts(event.type, Object(due));
    return canonicalJson(expected) === canonicalJson(event.payload) ? undefined : 'does not match its request';
  }

  /** The wallet, not the key, signs such a retirement; an earlier registration must have proven the wallet. */
  #retirementProblem(event: AccountEvent, payload: RetirementByWallet): string | undefined {
    const { walletAddress, walletProof } = payload;
    const form = formProblem(payload);
    if (form !== undefined) return form;
    if (event.request !== null) return 'is a retirement by a wallet, but contains a key’s request';
    if (!this.#state?.provenWallets.includes(walletAddress.toLowerCase()))
      return `is a retirement by ${walletAddress}, which was never proven for the key`;
    // The service asks the chain only about contract wallets.
    const isContract = isContractWallet(this.#state, walletAddress);
    try {
      const sent = { walletAddress, walletSignature: walletProof.signature, issuedAt: walletProof.issuedAt };
      const claim = retirementClaim(sent, this.#did, [walletProof.service]);
      const due = requireProof(claim, isContract ? this.#recordedResult(walletProof, event) : NO_CONTRACT);
      if (canonicalJson(due) !== canonicalJson(walletProof))
        return 'names a block, although the service queried no contract';
    } catch (error) {
      if (!(error instanceof ForumError)) throw error;
      return `is a retirement that ${walletAddress} did not sign`;
    }
    return this.#walletProofProblem(walletProof, event);
  }

  /** Assumes the recorded result of the contract call, and queues it to be confirmed by the chain. */
  #recordedResult(
    { chainId, blockNumber, blockHash }: Partial<WalletProof> = {},
    { eventId, ts }: Pick<AccountEvent, 'eventId' | 'ts'>,
  ): ReadChain {
    if (chainId === undefined || blockNumber === undefined || blockHash === undefined) return NO_CONTRACT;
    return (question: ChainQuestion) => {
      if (question.kind !== 'signature') throw new Error('a wallet proof must ask about a signature');
      const { wallet, hashes, signature } = question;
      const hash = hashes[0] as Hex;
      const block = { chainId, blockNumber, blockHash };
      if (this.contractProofs.length < CONTRACT_PROOFS_MAX)
        this.contractProofs.push({ eventId, wallet, hash, signature, askedAt: instantOf(ts), ...block });
      else
        this.doubt ??= `the account of ${this.#did} has more than ${CONTRACT_PROOFS_MAX} contract proofs, so not all were checked`;
      return { ...block, hash } as never;
    };
  }

  /** The signed text must name a recent time and a service for which the agent signed requests. */
  #walletProofProblem(proof: WalletProof, event: AccountEvent): string | undefined {
    const { issuedAt, service, blockNumber, blockHash } = proof;
    const { policy, blocks } = this.#context;
    if (blockNumber !== undefined && blockHash !== undefined) {
      const blockProblem = blocks.problemOf({ blockNumber, blockHash });
      if (blockProblem !== undefined) return blockProblem;
    }
    const named = `event ${event.eventId} of the account of ${this.#did}`;
    if (!namesOf(policy.origins?.length ? policy.origins : [...this.origins]).includes(baseNamed(service))) {
      if (policy.origins?.length) return `contains a wallet’s signature for ${service}, which --origin does not name`;
      // A withheld request does not show which service it was signed for.
      if (event.withheld === undefined)
        this.doubt ??= `${named} contains a wallet’s signature for ${service}: list the service’s base URLs with --origin`;
    }
    const outcome = judgeAge({ created: instantOf(issuedAt) / 1000 }, instantOf(event.ts), policy);
    if (typeof outcome !== 'object') return outcome && `contains a wallet’s signature, which ${outcome}`;
    this.doubt ??= `${named} contains a wallet’s signature, which ${outcome.doubt}`;
    return undefined;
  }
}

/** The request is unsigned, so only the payload contains it. */
function formProblem(payload: RetirementByWallet): string | undefined {
  try {
    parseBody(retireByWallet, { json: retireByWallet.impliedBody(payload) });
    return undefined;
  } catch (error) {
    if (error instanceof ForumError) return `is a retirement that no service accepts: ${error.message}`;
    throw error;
  }
}

function jsonIn(body: string): JsonValue | undefined {
  return body === '' ? undefined : parseJson(body, READ_LIMITS.jsonValuesMax);
}

type RetirementByWallet = Extract<AccountPayloads['agent.retired'], { readonly by: 'wallet' }>;

/** The text signed by a wallet names the service by its base URL or its origin. */
function namesOf(addresses: readonly string[]): readonly string[] {
  return addresses.flatMap((address) => [address, URL.canParse(address) ? new URL(address).origin : address]);
}

/** Normalises a base URL as baseOf does, but only if the text is in the URL Standard's serialised form. */
function baseNamed(service: string): string {
  const isPlain = URL.canParse(service) && toBaseUrl(new URL(service)) === service;
  return (isPlain ? normalBase(service) : undefined) ?? service;
}

function isOwnRegistration({ did, payload }: Extract<AccountEvent, { type: 'agent.registered' }>): boolean {
  return registeredDid(payload) === did && payload.agentId === agentIdOf(did);
}

export interface Accounts {
  /** How a tool changed the accounts file. */
  readonly copyProblem?: string | undefined;
  /** Returns the account, including line `accountEventId` if the source has it. */
  of(did: string, accountEventId?: number): Promise<AccountLog | undefined>;
}

interface StartedLine extends LineRecord<AccountEvent> {
  readonly line: RawLine;
  readonly verification: Verification | undefined;
  /** If the line is a stub and its original was provided, `event` is the original's. */
  readonly stub: StartedStub | undefined;
}

type TakenLine = StartedLine & { readonly event: AccountEvent };

/** Starts verifying the line's signature if its account is wanted. */
function start(line: RawLine, context: AuditContext, isWanted = (_did: string) => true): StartedLine {
  const read = readAccountRecord(line);
  const stub = isWanted(read.event?.did ?? '') ? startStub(read.event, context) : undefined;
  const whole = stub?.original && { bytes: stub.original, isEnded: true };
  const record = whole ? readAccountRecord(whole) : read;
  const { did = '', request = null } = record.event ?? {};
  const verification = request !== null && isWanted(did) ? startVerification(request, did, context) : undefined;
  return { line: whole ?? line, ...record, verification, stub };
}

export interface ListedOptions {
  /** Defaults to all accounts. */
  readonly isWanted?: (did: string) => boolean;
  /** Called with each line, including those of unwanted accounts. */
  readonly onLine?: OnAccountLine | undefined;
}

type OnAccountLine = (
  event: AccountEvent,
  place: { readonly eventId: number; readonly leaf: Uint8Array },
  line: Uint8Array,
) => void;

/** Reads account lines, which must be in order for each agent. Rejects with UnusableInput if a line is not an account line. */
export async function listedAccounts(
  lines: AsyncIterable<RawLine>,
  context: AuditContext,
  { isWanted = () => true, onLine }: ListedOptions = {},
): Promise<Accounts> {
  const logs = new Map<string, AccountLog>();
  const copy = new CopyCheck();
  let copyProblem: string | undefined;
  const restored = (line: RawLine): RawLine => {
    const { bytes, problem } = copy.restore(line.bytes);
    copyProblem ??= problem;
    return { ...line, bytes };
  };
  const started = ahead(lines, (line) => start(restored(line), context, isWanted));
  for await (const taken of started) {
    const { event, problem, line } = taken;
    if (event === undefined) {
      const format = foreignFormat(line.bytes);
      throw new UnusableInput(`the accounts file ${format ? `is ${format}` : `contains a line that ${problem}`}`);
    }
    onLine?.(event, { eventId: event.eventId, leaf: leafOf(line.bytes, event) }, line.bytes);
    if (!isWanted(event.did)) continue;
    const log = logs.get(event.did) ?? new AccountLog(event.did, context);
    logs.set(event.did, log);
    if (problem === undefined) await log.take({ ...taken, event });
    else log.problem ??= `event ${event.eventId} of the account of ${event.did} ${problem}`;
  }
  return { copyProblem, of: async (did) => logs.get(did) };
}

const KEPT_BYTES_MAX = 16 * 1024 * 1024;

export class ServiceAccounts implements Accounts {
  readonly #context: AuditContext;
  readonly #service: AuditedService;
  readonly #kept = new Map<string, AccountLog>();
  #keptBytes = 0;

  constructor(context: AuditContext, service: AuditedService) {
    this.#context = context;
    this.#service = service;
  }

  /** Returns the cached account if it includes the line of `accountEventId`; otherwise reads on from the account's last line. */
  async of(did: string, accountEventId = 0): Promise<AccountLog> {
    const kept = this.#kept.get(did);
    if (kept !== undefined && (kept.problem !== undefined || accountEventId <= kept.lastEventId)) return kept;
    const log = kept ?? new AccountLog(did, this.#context);
    const bytesBefore = kept?.bytes ?? 0;
    await this.#readFurther(did, log);
    this.#keptBytes += log.bytes - bytesBefore;
    for (const [oldest, { bytes }] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES_MAX) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= bytes;
    }
    this.#kept.set(did, log);
    return log;
  }

  async #readFurther(did: string, log: AccountLog): Promise<void> {
    try {
      if (parseDid(did) === undefined) throw new UnusableInput(`${did} is not a did:key`);
      const lines = this.#service.accountLines(did, log.lastEventId);
      for await (const taken of ahead(lines, (line) => start(line, this.#context))) {
        const { event, problem } = taken;
        if (event !== undefined) await log.take({ ...taken, event });
        if (problem !== undefined) log.problem ??= `a line of the account of ${did} ${problem}`;
        if (log.problem !== undefined) break;
      }
    } catch (error) {
      if (!(error instanceof UnusableInput)) throw error;
      log.problem ??= `the service returns no account for ${did}: ${error.message}`;
    }
  }
}
