// The auditor for any runtime: the command, the page and other programs audit with it. It needs nothing of Node.
export { type Accounts, listedAccounts } from './accounts.ts';
export { type AuditOptions, ChamberAudit, type StartedLine } from './chamber-audit.ts';
export { type AuditContext, auditContext } from './context.ts';
export { CHECK_NAMES, type CheckName, type CheckResult, type Finding, type Verdict } from './findings.ts';
export { type RawLine, readLines, UnusableInput } from './input.ts';
export type { MoveTree } from './move-tree.ts';
export type { AuditPolicy } from './policy.ts';
export { compareAccounts } from './registrations.ts';
export { checkedVerify, createWebVerify, type FastVerify, type Verify } from './verify.ts';
