/** What a look at everything a run depends on finds, one finding a check. */
import { type ErrorFacts, EXIT_CODES, type ExitCode, LlmBatchError, type WayOut } from '../../core/errors.js';

/** What is looked at, by the names that scripts read, and the exit code of a run that meets a fault there. */
const CHECKS = {
  node: EXIT_CODES.unexpected,
  storage_engine: EXIT_CODES.store,
  file_system: EXIT_CODES.store,
  disk_space: EXIT_CODES.store,
  store_file: EXIT_CODES.store,
  store_server: EXIT_CODES.store,
  schema: EXIT_CODES.store,
  integrity: EXIT_CODES.store,
  counts: EXIT_CODES.store,
  owner: EXIT_CODES.store,
  salvage: EXIT_CODES.store,
  deleted_runs: EXIT_CODES.store,
  settings: EXIT_CODES.usage,
  key: EXIT_CODES.usage,
  proxy: EXIT_CODES.usage,
  endpoint: EXIT_CODES.halted,
  key_accepted: EXIT_CODES.halted,
  model: EXIT_CODES.halted,
  limits: EXIT_CODES.halted,
} as const;

type Check = keyof typeof CHECKS;

export interface Diagnosis {
  readonly check: Check;
  /** A fault stops a run, or will. */
  readonly level: 'ok' | 'warning' | 'fault';
  /** The lane that was looked at, null for what concerns all. */
  readonly lane: string | null;
  /** Never holds a key. */
  readonly message: string;
  /** Null where none is needed. */
  readonly wayOut: WayOut | null;
  /** Of a run that meets this fault; 0 for the other levels. */
  readonly exitCode: ExitCode;
}

/** A sentence that is the same for everybody, or a code that stands for one, with its facts. */
type Advice = string | { readonly code: string; readonly facts?: ErrorFacts };

function wayOutBy(advice: Advice): WayOut {
  return typeof advice === 'string'
    ? { code: '', facts: {}, hint: advice }
    : { code: advice.code, facts: advice.facts ?? {}, hint: undefined };
}

export function ok(check: Check, message: string, lane: string | null = null): Diagnosis {
  return { check, level: 'ok', lane, message, wayOut: null, exitCode: EXIT_CODES.completed };
}

export function warning(
  check: Check,
  message: string,
  advice: Advice,
  lane: string | null = null,
): Diagnosis {
  return { ...ok(check, message, lane), level: 'warning', wayOut: wayOutBy(advice) };
}

export function fault(check: Check, message: string, advice: Advice, lane: string | null = null): Diagnosis {
  return { ...warning(check, message, advice, lane), level: 'fault', exitCode: CHECKS[check] };
}

/** An error that a run would end with. @throws what is none */
export function faultOf(check: Check, error: unknown, lane: string | null = null): Diagnosis {
  if (!(error instanceof LlmBatchError)) throw error;
  return { ...fault(check, error.message, '', lane), wayOut: error, exitCode: error.exitCode };
}

/** The store comes first, for without it nothing runs; then what a run refuses to start with; then what stops it. */
const BY_WEIGHT = [EXIT_CODES.store, EXIT_CODES.usage, EXIT_CODES.halted] as const;

/** The exit code of the worst fault; 0 when there is none. */
export function worstExitCode(findings: readonly Diagnosis[]): ExitCode {
  const codes = new Set(findings.map((finding) => finding.exitCode));
  const worst = BY_WEIGHT.find((code) => codes.has(code));
  return worst ?? [...codes].find((code) => code !== EXIT_CODES.completed) ?? EXIT_CODES.completed;
}
