/**
 * Reads an input as a run would and reports everything that a run would meet, in one pass. Nothing is stored and
 * nobody is called. Memory: some 45 bytes a document, to tell repeats, besides what reading takes.
 */

import type { DocumentPage, PreparedDocument } from '../../documents/read.js';
import type { InputReading } from '../read-documents.js';
import { lanesOf, OPENAI_BASE_URL } from '../run-settings.js';
import { badLineKind } from './bad-line-kind.js';
import { BatchFileRules } from './batch-file-rules.js';
import { type CheckedModel, LengthCheck } from './document-length.js';
import { type Finding, Findings } from './findings.js';
import { type Repeat, RepeatFinder } from './repeats.js';

export interface CheckReport {
  /** Of the input, blank ones included. */
  readonly lines: number;
  /** That a run would send. */
  readonly documents: number;
  readonly badLines: number;
  readonly models: readonly CheckedModel[];
  /** Errors first. */
  readonly findings: readonly Finding[];
}

/** @throws LlmBatchError (exit 2) as reading throws it: no input, no line that could be right */
export async function checkInput(options: InputReading): Promise<CheckReport> {
  const check = new Check(options);
  for await (const page of options.pages) {
    if (options.signal.aborted) break;
    await check.add(page);
  }
  return check.report();
}

class Check {
  readonly #lengths: LengthCheck;
  readonly #findings = new Findings();
  readonly #repeats = new RepeatFinder();
  readonly #batchRules = new BatchFileRules((rule, broken) => this.#findings.add(rule, broken));
  documents = 0;
  #lines = 0;
  #badLines = 0;
  #isBatchFile = false;

  constructor({ settings, prices, nowMs }: InputReading) {
    const { request } = settings;
    const lanes = lanesOf(settings);
    const limits = lanes.map((lane) => lane.tpm ?? Number.POSITIVE_INFINITY);
    const widest = Math.max(...limits);
    this.#lengths = new LengthCheck({
      prices,
      query: { baseUrl: lanes[0]?.baseUrl ?? OPENAI_BASE_URL, nowMs },
      tokensPerMinute: Number.isFinite(widest) ? widest : null,
      parameterBytes: Buffer.byteLength(JSON.stringify(request.parameters)),
    });
  }

  async add(page: DocumentPage): Promise<void> {
    this.#lines = page.line;
    this.#isBatchFile = page.first?.form === 'batch_line';
    for (const bad of page.bad) {
      this.#badLines += 1;
      const { line, reason: message, place } = bad;
      const example = { line, id: null, message, ...(place === undefined ? {} : { place }) };
      this.#findings.add(badLineKind(bad), example);
    }
    for (const { kind, line, message } of page.remarks) this.#findings.add(kind, { line, id: null, message });
    for (const document of page.documents) {
      this.documents += 1;
      await this.#examine(document);
    }
  }

  report(): CheckReport {
    if (this.#isBatchFile) this.#batchRules.finish();
    return {
      lines: this.#lines,
      documents: this.documents,
      badLines: this.#badLines,
      models: this.#lengths.models(),
      findings: this.#findings.list(),
    };
  }

  async #examine(prepared: PreparedDocument): Promise<void> {
    const { line, key, requestHash, body, document, request } = prepared;
    // A hash in place of an id tells a reader nothing.
    const id = key.startsWith('sha256:') ? null : key;
    const isRecord = document.form === 'record';
    const problems = this.#lengths.problemsOf(request, isRecord ? '' : body);
    for (const { kind, message } of problems instanceof Promise ? await problems : problems) {
      this.#findings.add(kind, { line, id, message });
    }
    if (this.#isBatchFile && document.form === 'batch_line') {
      this.#batchRules.add(line, document, request.model, Buffer.byteLength(body) + 1);
    }
    const repeat = this.#repeats.see(key, requestHash, line);
    if (repeat !== null) this.#tellRepeat(line, id, repeat, document.form === 'batch_line');
  }

  #tellRepeat(line: number, id: string | null, { kind, firstLine }: Repeat, isBatchLine: boolean): void {
    if (this.#isBatchFile && isBatchLine && id !== null && kind !== 'repeated_request') {
      this.#batchRules.repeated(line, id, firstLine);
      return;
    }
    const messages = {
      repeated_document: `the same as line ${firstLine}`,
      repeated_id: `has the id of line ${firstLine}, but another request`,
      repeated_request: `sends the same as line ${firstLine}`,
    };
    this.#findings.add(kind, { line, id, message: messages[kind] });
  }
}
