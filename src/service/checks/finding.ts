// Findings of checks. The start stops at a finding with an exit code; doctor prints all.
import { type ConfigError, describeProblem } from '../../config.ts';
import { EXIT_CONFIG } from '../../process/exit.ts';

export interface Finding {
  readonly subject: 'configuration' | 'settings' | 'flags' | 'disk' | 'keys' | 'clock' | 'chain' | 'ports' | 'service';
  /** A `problem` stops the service or defeats its purpose; a `warning` may be temporary or intended. */
  readonly level: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  /** The variable to set, if that is the fix. */
  readonly variable: string | null;
  /** The exit code of a start; 0 if the start continues. */
  readonly exitCode: number;
}

export function ok(subject: Finding['subject'], detail: string, variable: string | null = null): Finding {
  return { subject, level: 'ok', detail, variable, exitCode: 0 };
}

export function warning(subject: Finding['subject'], detail: string, variable: string | null = null): Finding {
  return { subject, level: 'warning', detail, variable, exitCode: 0 };
}

/** A start continues unless there is an exit code. */
export function problem(
  subject: Finding['subject'],
  detail: string,
  { variable = null, exitCode = 0 }: { readonly variable?: string | null; readonly exitCode?: number } = {},
): Finding {
  return { subject, level: 'problem', detail, variable, exitCode };
}

export function configurationFindings(
  error: ConfigError,
  subject: Finding['subject'] = 'configuration',
): readonly Finding[] {
  return error.problems.map(({ variable, problem: detail }) =>
    problem(subject, detail, { variable, exitCode: EXIT_CONFIG }),
  );
}

export function describeFinding({ variable, detail }: Finding): string {
  return describeProblem({ variable, problem: detail });
}
