/** Where a PostgreSQL store lies, and how that is told without its password. */
import { usageError } from '../../core/errors.js';
import { withoutPassword } from '../../core/server-url.js';

export interface Address {
  /** As it was given, password included: for the driver alone. */
  readonly url: string;
  /** For people: without a password. */
  readonly place: string;
  readonly schema: string;
}

/** What needs no quotes as an identifier, so that no name has two spellings. */
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** @throws LlmBatchError STORE_URL_ODD, STORE_SCHEMA_NAME (exit 2); neither holds what was given */
export function addressOf(url: string, schema: string): Address {
  if (!SCHEMA_NAME.test(schema) || schema.startsWith('pg_')) {
    throw usageError(
      'STORE_SCHEMA_NAME',
      `"${schema}" is no name for a schema: lower-case letters, digits and underscores, at most 63, not starting with pg_.`,
    );
  }
  const shown = withoutPassword(url);
  if (shown === null) {
    throw usageError(
      'STORE_URL_ODD',
      'The address of the store is no URL.',
      'It looks like postgres://user@host:5432/database; signs like @ : / # in a password are written as %40 %3A %2F %23.',
    );
  }
  return { url, place: `${shown} (schema ${schema})`, schema };
}
