// The kinds of attack that the load consists of.
export const ATTACKS = [
  'pipelining',
  'wrong-signatures',
  'unknown-keys',
  'bulk-readers',
  'cold-chambers',
  'fat-bodies',
  'lists',
  'idle-streams',
  'slow-readers',
  'consumers',
  'silent-connections',
  'pages',
  'unread-pages',
  'unread-lists',
  'transcripts',
  'model-reads',
  'documents',
  'blank-headers',
  'pipelined-signatures',
] as const;
export type AttackKind = (typeof ATTACKS)[number];
