// The tool with which a model shows its user that a chamber is sound. It audits the service's lines on this machine, and returns links and
// the command that repeats the audit.
import * as v from 'valibot';
import type { ChamberReport } from '../audit/report/report-types.ts';
import { ClientError } from '../client/error.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { linksOf } from './names.ts';
import { type AnyTool, described, id, READS, tool } from './tool.ts';

/** Beyond this number, findings are only counted. */
const FINDINGS_MAX = 5;

export function verifyTool(forum: ForumClient): AnyTool {
  return tool({
    name: 'verify',
    title: 'Verify a chamber',
    description: 'Audits the chamber’s lines on this machine: signatures, rules, root. Evidence to show your user.',
    annotations: READS,
    input: v.strictObject({ chamberId: described(id, 'id of the chamber') }),
    output: v.object({ verdict: v.string(), sentence: v.string(), root: v.nullable(v.string()) }),
    run: async ({ chamberId }, { signal }) => {
      const { baseUrl } = forum.service;
      const { merkleRoot, committedTxHash } = await forum.chamber(chamberId, { signal });
      const report = await audit(baseUrl, chamberId);
      return {
        verdict: report.verdict,
        sentence: report.sentence,
        checks: Object.fromEntries(report.checks.map(({ name, verdict }) => [name, verdict])),
        ...findingsOf(report),
        lines: report.lines,
        moves: report.moves,
        root: report.root,
        merkleRoot,
        committedTxHash,
        ...(await chainOf(forum, signal)),
        links: { ...linksOf(baseUrl, chamberId), outcome: `${baseUrl}/chambers/${chamberId}/outcome` },
        repeat: `chambers audit ${baseUrl} --chamber=${chamberId}`,
      };
    },
  });
}

/** Loads the auditor on demand, because most servers never audit. */
async function audit(baseUrl: string, chamberId: number): Promise<ChamberReport> {
  const { auditService } = await import('../audit/audit.ts');
  const { chambers } = await auditService(baseUrl, { chamberId }).catch((error: unknown) => {
    throw new ClientError('CLIENT_ERR_UNREACHABLE', `not audited: ${(error as Error).message}`, { cause: error });
  });
  const [report] = chambers;
  if (report === undefined) throw new ClientError('FORUM_ERR_NOT_FOUND', `chamber ${chamberId} not found`);
  return report;
}

function findingsOf({ checks }: ChamberReport) {
  const findings = checks.flatMap((check) => check.findings.map(({ sentence }) => sentence));
  if (findings.length === 0) return {};
  const shown = findings.slice(0, FINDINGS_MAX);
  return {
    findings: shown,
    ...(findings.length > shown.length && { findingsLeftOut: findings.length - shown.length }),
  };
}

/** Returns the chain that the service reports. The relayer's lines name it too. */
async function chainOf(forum: ForumClient, signal: AbortSignal) {
  const { chain } = await forum.health({ signal });
  return chain === undefined ? {} : { chain };
}
