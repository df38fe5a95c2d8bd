/** What PostgreSQL, its driver and the network say becomes what a user can act on, in this one place. */
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';

/** The connection broke: nobody knows what became of what had been asked last. */
export class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super('the connection to the store was lost', { cause });
    this.name = 'ConnectionLost';
  }
}

/** SQLSTATE of what the server refused, or the code of an error of the system (`ECONNREFUSED`); empty for others. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : '';
}

/** By prefix. The server is going down, coming up or full of others; or two transactions were in each other's way. */
const TRANSIENT = [
  '08',
  '25P03',
  '40001',
  '40P01',
  '53300',
  '55P03',
  '57P01',
  '57P02',
  '57P03',
  'ECONN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
];

/** The whole transaction may be tried again. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionLost) return true;
  const code = codeOf(error);
  return TRANSIENT.some((prefix) => code.startsWith(prefix));
}

/** Nobody knows whether what was asked was done. */
export function isLoss(error: unknown): boolean {
  return error instanceof ConnectionLost || /^(08|57P0)/.test(codeOf(error));
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

interface Translation {
  readonly code: string;
  readonly message: (place: string) => string;
  /** Where it is the same for everybody. */
  readonly hint?: string;
}

const UNREACHABLE: Translation = {
  code: 'STORE_UNREACHABLE',
  message: (place) => `${place} cannot be reached.`,
};
const REFUSED: Translation = {
  code: 'STORE_REFUSED',
  message: (place) => `${place} lets this user in no further.`,
};
const READ_ONLY: Translation = {
  code: 'STORE_READ_ONLY',
  message: (place) => `${place} cannot be written: this user may not, or the server takes no changes.`,
  hint: 'The user needs CREATE on the database at the first start, and the tables of the schema from then on; a replica takes no changes.',
};
const BUSY: Translation = {
  code: 'STORE_BUSY',
  message: (place) => `${place} is held up by another program, and stayed so.`,
  hint: 'Look for long transactions and locks in pg_stat_activity, then `llm-batch resume`.',
};
const FULL: Translation = {
  code: 'STORE_FULL',
  message: (place) => `The disk of ${place} is full.`,
  hint: 'Free some space on the server, then `llm-batch resume`; what was committed is safe.',
};
const CORRUPT: Translation = {
  code: 'STORE_CORRUPT',
  message: (place) => `What is stored at ${place} is damaged.`,
  hint: 'Nothing was changed. Look into the log of the server, and to its backups.',
};
const INPUT_OUTPUT: Translation = {
  code: 'STORE_IO',
  message: (place) => `The server of ${place} could not read or write its disk.`,
  hint: 'Look into the log of the server, then `llm-batch resume`.',
};

/** By prefix of the code. */
const TRANSLATIONS: readonly (readonly [string, Translation])[] = [
  ['28', REFUSED],
  ['3D000', REFUSED],
  ['42501', READ_ONLY],
  ['25006', READ_ONLY],
  ['53100', FULL],
  ['53', UNREACHABLE],
  ['XX001', CORRUPT],
  ['XX002', CORRUPT],
  ['ROW_DAMAGED', CORRUPT],
  ['58', INPUT_OUTPUT],
  ['40', BUSY],
  ['55P03', BUSY],
  ['57014', BUSY],
  ['57P0', UNREACHABLE],
  ['08', UNREACHABLE],
  ['25P03', UNREACHABLE],
  ['E', UNREACHABLE],
];

/** What is neither the user's nor the machine's doing (a broken constraint, a bug) is returned as it is. */
export function translateError(error: unknown, place: string): unknown {
  if (error instanceof LlmBatchError) return error;
  const cause = error instanceof ConnectionLost ? error.cause : error;
  const code = codeOf(cause);
  const found =
    TRANSLATIONS.find(([prefix]) => code.startsWith(prefix))?.[1] ??
    (error instanceof ConnectionLost ? UNREACHABLE : undefined);
  if (found === undefined) return error;
  // The driver and the server say what it was in words of their own; neither repeats a password.
  const said = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : '';
  return new LlmBatchError(`${found.message(place).slice(0, -1)}${said}.`, {
    code: found.code,
    exitCode: EXIT_CODES.store,
    facts: { place },
    ...(found.hint === undefined ? {} : { hint: found.hint }),
    cause: error,
  });
}
