// The auditor for any runtime: does not need Node.
export { type Accounts, listedAccounts } from './account/accounts.ts';
export { compareAccounts } from './account/compare-accounts.ts';
export { type AuditOptions, ChamberAudit, type StartedLine } from './chamber/chamber-audit.ts';
export type { MoveTree } from './chamber/move-tree.ts';
export { type AuditContext, auditContext } from './context.ts';
export { type RawLine, readLines, UnusableInput } from './line/input.ts';
export { checkedVerify, createWebVerify, type FastVerify, type Verify } from './line/verify.ts';
export type { AuditPolicy } from './policy.ts';
export { CHECK_NAMES, type CheckName, type CheckResult, type Finding, type Verdict } from './report/findings.ts';
