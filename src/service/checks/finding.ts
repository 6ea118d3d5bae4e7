// What a check finds. The start stops at a finding with an exit code, and doctor prints all.
import { type ConfigError, describeProblem } from '../../config.ts';
import { EXIT_CONFIG } from '../../process/exit.ts';

export interface Finding {
  readonly subject: 'configuration' | 'settings' | 'flags' | 'disk' | 'keys' | 'clock' | 'chain' | 'ports' | 'service';
  /** A `problem` stops the service or defeats its purpose; a `warning` may pass or may be intended. */
  readonly level: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  /** The variable to set, if that fixes it. */
  readonly variable: string | null;
  /** What a start ends with; 0 if it goes on. */
  readonly exitCode: number;
}

export function ok(subject: Finding['subject'], detail: string, variable: string | null = null): Finding {
  return { subject, level: 'ok', detail, variable, exitCode: 0 };
}

export function warning(subject: Finding['subject'], detail: string, variable: string | null = null): Finding {
  return { subject, level: 'warning', detail, variable, exitCode: 0 };
}

/** A start goes on with it, unless it is given an exit code. */
export function problem(
  subject: Finding['subject'],
  detail: string,
  { variable = null, exitCode = 0 }: { readonly variable?: string | null; readonly exitCode?: number } = {},
): Finding {
  return { subject, level: 'problem', detail, variable, exitCode };
}

export function ofConfiguration(error: ConfigError, subject: Finding['subject'] = 'configuration'): readonly Finding[] {
  return error.problems.map(({ variable, problem: detail }) =>
    problem(subject, detail, { variable, exitCode: EXIT_CONFIG }),
  );
}

/** As the last line of a start has it. */
export function describeFinding({ variable, detail }: Finding): string {
  return describeProblem({ variable, problem: detail });
}
