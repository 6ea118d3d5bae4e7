// Who may join a chamber, and who may set its rules.
import { describe, expect, it } from 'vitest';
import { ANN, type Created, created, joined } from '../kit/brief-events.ts';
import { type BriefEvent, fold, given, HOURS, walletOf } from '../kit/given.ts';
import { Signer } from '../kit/signer.ts';

const JOIN = { operation: 'join', body: {} } as const;
/** Real keys, because the DIDs of an admission are validated when the body is parsed. */
const keyOf = (byte: number) => new Signer(Buffer.alloc(32, byte)).did;
const [BOB, CYD, EVE] = [keyOf(1), keyOf(2), keyOf(3)];

/** The payload of the first join. */
function joinPayload(did: string) {
  return { turnOrder: 0, walletAddress: walletOf(did), walletProven: false };
}

function admit(did: string) {
  return { operation: 'admit', body: { did } } as const;
}

function admitted(did: string): BriefEvent {
  return [HOURS.lobby, ANN, { type: 'chamber.admitted', payload: { did } }];
}

function listing(dids: readonly string[], changes: Partial<Created> = {}): BriefEvent {
  return created({ admission: { dids }, ...changes });
}

describe('a chamber with a list of agents', () => {
  it('a chamber with a list admits only agents that its creator listed', () => {
    given(listing([BOB]))
      .when(JOIN, { at: HOURS.lobby, by: BOB })
      .gives({ type: 'chamber.joined', payload: joinPayload(BOB) });
    given(listing([BOB]))
      .when(JOIN, { at: HOURS.lobby, by: CYD })
      .rejects('FORUM_ERR_ADMISSION', `dids: ${CYD} is not on the list of chamber 7: its creator ${ANN} may add it`);
  });

  it('a chamber with an empty list admits nobody, not even its creator', () => {
    given(listing([])).when(JOIN, { at: HOURS.lobby, by: ANN }).rejects('FORUM_ERR_ADMISSION', ANN);
  });

  it('a chamber with a list admits an agent that was added', () => {
    given(listing([BOB]), admitted(CYD))
      .when(JOIN, { at: HOURS.lobby, by: CYD })
      .gives({ type: 'chamber.joined', payload: joinPayload(CYD) });
  });

  it('a join is checked for its phase before admission, and for admission before duplicates', () => {
    given(listing([BOB]))
      .when(JOIN, { at: HOURS.proposal, by: CYD })
      .rejects('FORUM_ERR_PHASE', 'LOBBY');
    given(listing([BOB], { maxMembers: 2 }), ...joined(BOB, EVE))
      .when(JOIN, { at: HOURS.lobby, by: CYD })
      .rejects('FORUM_ERR_ADMISSION', CYD);
    given(listing([BOB]), ...joined(BOB))
      .when(JOIN, { at: HOURS.lobby, by: BOB })
      .rejects('FORUM_ERR_CONFLICT', BOB);
  });

  it('the view of a chamber shows agents added to its list', () => {
    expect(fold([listing([BOB]), admitted(CYD), admitted(EVE)]).admission).toEqual({ dids: [BOB, CYD, EVE] });
  });
});

describe('a chamber without a list', () => {
  it.each([undefined, {}] as const)('a chamber without a list is open to everybody: %j', (admission) => {
    given(created(admission === undefined ? {} : { admission }))
      .when(JOIN, { at: HOURS.lobby, by: CYD })
      .gives({ type: 'chamber.joined', payload: joinPayload(CYD) });
  });
});

describe('admit', () => {
  it('admit adds an agent, registered or not', () => {
    given(listing([BOB]))
      .when(admit(CYD), { at: HOURS.lobby, by: ANN })
      .gives({ type: 'chamber.admitted', payload: { did: CYD } });
  });

  it.each([
    ['a chamber without a list', [created()], ANN, HOURS.lobby, 'FORUM_ERR_VALIDATION', 'admission.dids'],
    ['a chamber with another rule', [created({ admission: {} })], ANN, HOURS.lobby, 'FORUM_ERR_VALIDATION', 'dids'],
    ['after LOBBY', [listing([BOB])], ANN, HOURS.proposal, 'FORUM_ERR_PHASE', 'expected phase LOBBY'],
    ['by a listed agent', [listing([BOB]), ...joined(BOB)], BOB, HOURS.lobby, 'FORUM_ERR_FORBIDDEN', ANN],
    ['of a listed agent', [listing([CYD])], ANN, HOURS.lobby, 'FORUM_ERR_CONFLICT', CYD],
    ['of a member', [listing([CYD]), ...joined(CYD)], ANN, HOURS.lobby, 'FORUM_ERR_CONFLICT', CYD],
    ['twice', [listing([BOB]), admitted(CYD)], ANN, HOURS.lobby, 'FORUM_ERR_CONFLICT', CYD],
  ] as const)('admit is rejected: %s', (_what, past, by, at, code, detail) => {
    given(...past)
      .when(admit(CYD), { at, by })
      .rejects(code, detail);
  });

  it('admit fills a list up to 1,024 agents', () => {
    const many = Array.from({ length: 1_023 }, (_, index) => `did:key:${index}`);
    given(listing(many))
      .when(admit(CYD), { at: HOURS.lobby, by: ANN })
      .gives({ type: 'chamber.admitted', payload: { did: CYD } });
    given(listing(many), admitted(BOB))
      .when(admit(CYD), { at: HOURS.lobby, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'is full: it has 1024 agents');
  });
});
