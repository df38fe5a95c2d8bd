/**
 * Quotas that workers share: a row for each lane. It is read, worked out here and written if nobody has written it
 * meanwhile, so that no lock is ever held while a worker thinks, or is stopped.
 *
 * The session of its own does not wait for the disk: thousands of answers a second are possible, and a crash of the server
 * loses the last of them. After one the row gives nothing until whoever was given something has been heard of again.
 */
import type pg from 'pg';
import { distrusted, QUOTA_LEASE_MS, type QuotaState, shareQuota } from '../../limiter/shared-quota.js';
import type { QuotaStore } from '../quota-store.js';
import { asLoss, type Connections } from './connections.js';
import { translateError } from './errors.js';

/** Beside the lease a question must be short; nobody holds the row for longer than one statement. */
const TIMEOUT_MS = 2_000;

interface QuotaRow {
  readonly nowMs: number;
  /** Of the server: another after each of its starts. */
  readonly startedAt: string;
  readonly version: number | null;
  readonly rowStartedAt: string | null;
  readonly stateJson: string | null;
}

export class PostgresQuotas implements QuotaStore {
  readonly #connections: Connections;
  #client: Promise<pg.Client> | null = null;
  #wasLost = false;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  readonly ask: QuotaStore['ask'] = async (lane, ask) => {
    try {
      for (;;) {
        const row = await this.#read(lane);
        const stored = row.stateJson === null ? null : (JSON.parse(row.stateJson) as QuotaState);
        const isDoubtful = this.#wasLost || row.rowStartedAt !== row.startedAt;
        const known = isDoubtful ? distrusted(stored, QUOTA_LEASE_MS, row.nowMs) : stored;
        const { state, answer } = shareQuota(known, ask, row.nowMs);
        if (!(await this.#write(lane, row, state))) continue;
        this.#wasLost = false;
        return answer;
      }
    } catch (error) {
      await this.#drop();
      throw translateError(asLoss(error), this.#connections.address.place);
    }
  };

  async close(): Promise<void> {
    await this.#drop();
  }

  async #read(lane: string): Promise<QuotaRow> {
    const client = await this.#connected();
    const { rows } = await client.query<QuotaRow>(
      `SELECT now_ms() AS "nowMs", pg_postmaster_start_time()::text AS "startedAt", version,
         started_at AS "rowStartedAt", state_json AS "stateJson"
       FROM (VALUES ($1)) AS asked (lane) LEFT JOIN lane_quotas USING (lane)`,
      [lane],
    );
    return rows[0] as QuotaRow;
  }

  /** @returns false where somebody else has written it since it was read */
  async #write(lane: string, { version, startedAt }: QuotaRow, state: QuotaState): Promise<boolean> {
    const client = await this.#connected();
    const { rowCount } = await client.query(
      version === null
        ? `INSERT INTO lane_quotas (lane, version, started_at, state_json) VALUES ($1, $2 + 1, $3, $4)
           ON CONFLICT DO NOTHING`
        : `UPDATE lane_quotas SET version = $2 + 1, started_at = $3, state_json = $4 WHERE lane = $1 AND version = $2`,
      [lane, version ?? 0, startedAt, JSON.stringify(state)],
    );
    return rowCount === 1;
  }

  #connected(): Promise<pg.Client> {
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<pg.Client> {
    const client = await this.#connections.separate();
    await client.query(
      `SET synchronous_commit = off; SET statement_timeout = ${TIMEOUT_MS}; SET lock_timeout = ${TIMEOUT_MS}`,
    );
    return client;
  }

  /** The next question opens another. */
  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    this.#wasLost = true;
    await client.then((each) => each.end()).catch(() => undefined);
  }
}
