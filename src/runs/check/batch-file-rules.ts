/**
 * What a provider's Batch API asks of its input file, as OpenAI documents it. A direct run does not mind, so these are
 * warnings, and only for a file that is written as one.
 */
import type { ParsedDocument } from '../../documents/document.js';

export type BatchRule =
  /** One model a file. */
  | 'batch_models'
  /** One endpoint a file. */
  | 'batch_endpoints'
  | 'batch_id_repeated'
  | 'batch_id_missing'
  | 'batch_id_not_text'
  | 'batch_id_too_long'
  /** `method` and `url` have to be there, though only one value of each makes sense. */
  | 'batch_field_missing'
  | 'batch_lines'
  | 'batch_bytes';

/** OpenAI, Groq and others. */
export const MOST_BATCH_LINES = 50_000;
export const MOST_BATCH_BYTES = 200_000_000;
/** The strictest that is documented: Together's and Anthropic's. */
const LONGEST_CUSTOM_ID = 64;

/** What broke a rule: a line, or with null the whole file. */
export interface BrokenRule {
  readonly line: number | null;
  readonly id: string | null;
  readonly message: string;
}

interface Group {
  lines: number;
  readonly firstLine: number;
}

export class BatchFileRules {
  readonly #report: (rule: BatchRule, broken: BrokenRule) => void;
  readonly #models = new Map<string, Group>();
  readonly #endpoints = new Map<string, Group>();
  #lines = 0;
  #bytes = 0;

  constructor(report: (rule: BatchRule, broken: BrokenRule) => void) {
    this.#report = report;
  }

  /** @param bytes of the line, its end included */
  add(line: number, { fields }: ParsedDocument, model: string, bytes: number): void {
    this.#lines += 1;
    this.#bytes += bytes;
    countIn(this.#models, model, line);
    const { url, method, custom_id: id } = fields;
    if (typeof url === 'string') countIn(this.#endpoints, url, line);
    const missing = [...(method === undefined ? ['method'] : []), ...(url === undefined ? ['url'] : [])];
    const shownId = typeof id === 'string' ? id : null;
    const say = (rule: BatchRule, message: string): void =>
      this.#report(rule, { line, id: shownId, message });
    if (missing.length > 0) say('batch_field_missing', `has no ${missing.join(' and no ')}`);
    if (id === undefined || id === null) say('batch_id_missing', 'has no custom_id');
    else if (typeof id !== 'string') say('batch_id_not_text', `custom_id ${String(id)} is no string`);
    else if ([...id].length > LONGEST_CUSTOM_ID) {
      say('batch_id_too_long', `custom_id is ${[...id].length} characters long`);
    }
  }

  repeated(line: number, id: string, firstLine: number): void {
    const message = `custom_id ${JSON.stringify(id)} is on line ${firstLine} too`;
    this.#report('batch_id_repeated', { line, id, message });
  }

  /** What only the whole file shows. */
  finish(): void {
    this.#addGroups('batch_models', this.#models);
    this.#addGroups('batch_endpoints', this.#endpoints);
    const whole = (rule: BatchRule, message: string): void =>
      this.#report(rule, { line: null, id: null, message });
    if (this.#lines > MOST_BATCH_LINES) {
      whole('batch_lines', `${grouped(this.#lines)} lines, where ${grouped(MOST_BATCH_LINES)} are taken`);
    }
    if (this.#bytes > MOST_BATCH_BYTES) {
      whole('batch_bytes', `${grouped(this.#bytes)} bytes, where ${grouped(MOST_BATCH_BYTES)} are taken`);
    }
  }

  #addGroups(rule: BatchRule, groups: ReadonlyMap<string, Group>): void {
    if (groups.size < 2) return;
    for (const [name, { lines, firstLine }] of groups) {
      const message = `${name} on ${grouped(lines)} ${lines === 1 ? 'line' : 'lines'}, here first`;
      this.#report(rule, { line: firstLine, id: null, message });
    }
  }
}

function countIn(groups: Map<string, Group>, name: string, line: number): void {
  const group = groups.get(name);
  if (group === undefined) groups.set(name, { lines: 1, firstLine: line });
  else group.lines += 1;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
