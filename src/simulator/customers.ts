/** Who may call: the keys, their accounts and their terms. A key is turned into its hash here and goes no further. */
import { createHash } from 'node:crypto';
import { Account, type Limits } from './account.js';
import type { PeakLimits } from './books.js';
import type { SimulatorSettings } from './options.js';
import { type Refusal, wrongKey } from './refusal.js';

export interface Customer {
  readonly key: string | null;
  readonly keyHash: string;
  readonly account: Account;
  /** Calls let in so far, which its money has to pay. */
  accepted: number;
  insufficientQuotaAfter: number | null;
}

interface Terms extends Limits {
  readonly insufficientQuotaAfter: number | null;
}

const UNLIMITED: PeakLimits = { rpm: null, tpm: null };

/** Names a key in books and logs: the first 12 hexadecimal digits of its SHA-256, or `none` without a key. */
export function keyHash(key: string | null): string {
  return key === null ? 'none' : createHash('sha256').update(key).digest('hex').slice(0, 12);
}

export class Customers {
  readonly #byKey = new Map<string | null, Customer>();
  #settings: SimulatorSettings;

  constructor(settings: SimulatorSettings) {
    this.#settings = settings;
  }

  /** Changes everybody's terms; what was used already still counts. */
  configure(settings: SimulatorSettings): void {
    this.#settings = settings;
    for (const customer of this.#byKey.values()) {
      const terms = this.#termsOf(customer.key);
      customer.account.configure(terms);
      customer.insufficientQuotaAfter = terms.insufficientQuotaAfter;
    }
  }

  /** The refusal that a key meets; null when it is good. */
  refusalOf(key: string | null): Refusal | null {
    const { keys, revokedKeys } = this.#settings;
    const revoked = key !== null && revokedKeys.includes(key);
    const unknown = keys !== null && !keys.some((accepted) => accepted.key === key);
    return revoked || unknown ? wrongKey(key) : null;
  }

  of(key: string | null): Customer {
    let customer = this.#byKey.get(key);
    if (customer === undefined) {
      const terms = this.#termsOf(key);
      const { insufficientQuotaAfter } = terms;
      customer = {
        key,
        keyHash: keyHash(key),
        account: new Account(terms),
        accepted: 0,
        insufficientQuotaAfter,
      };
      this.#byKey.set(key, customer);
    }
    return customer;
  }

  /** The limits of one key, by its hash. */
  limitsOf(hash: string): PeakLimits {
    const customer = [...this.#byKey.values()].find(({ keyHash: own }) => own === hash);
    return customer?.account.limits ?? UNLIMITED;
  }

  /** What all accepted keys may use together; where any key is accepted, those seen so far. */
  limitsTogether(): PeakLimits {
    const { keys } = this.#settings;
    const limits = keys
      ? keys.map(({ key }) => this.#termsOf(key))
      : [...this.#byKey.values()].map(({ account }) => account.limits);
    const sum = (name: 'rpm' | 'tpm'): number | null =>
      limits.reduce<number | null>((total, one) => {
        const limit = one[name];
        return total === null || limit === null ? null : total + limit;
      }, 0);
    return limits.length === 0 ? UNLIMITED : { rpm: sum('rpm'), tpm: sum('tpm') };
  }

  /** A key's own terms, and the server's where it has none. */
  #termsOf(key: string | null): Terms {
    const { rpm, tpm, rpd, enforceOverMs, insufficientQuotaAfter, keys } = this.#settings;
    const own = keys?.find((accepted) => accepted.key === key);
    return {
      rpm: own?.rpm ?? rpm,
      tpm: own?.tpm ?? tpm,
      rpd: own?.rpd ?? rpd,
      enforceOverMs,
      insufficientQuotaAfter: own?.insufficientQuotaAfter ?? insufficientQuotaAfter,
    };
  }
}
