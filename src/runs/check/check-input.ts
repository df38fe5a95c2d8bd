/**
 * Reads an input as a run would and reports everything that a run would meet, in one pass. Nothing is stored and
 * nobody is called. Memory: some 45 bytes a document, to tell repeats, besides what reading takes.
 */

import type { PreparedDocument } from '../../documents/read.js';
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
export async function checkInput({
  pages,
  settings,
  prices,
  nowMs,
  signal,
}: InputReading): Promise<CheckReport> {
  const lanes = lanesOf(settings);
  const widest = Math.max(...lanes.map((lane) => lane.tpm ?? Number.POSITIVE_INFINITY));
  const lengths = new LengthCheck({
    prices,
    query: { baseUrl: lanes[0]?.baseUrl ?? OPENAI_BASE_URL, nowMs },
    tokensPerMinute: Number.isFinite(widest) ? widest : null,
    parameterBytes: Buffer.byteLength(JSON.stringify(settings.request.parameters)),
  });
  const findings = new Findings();
  const repeats = new RepeatFinder();
  const batchRules = new BatchFileRules((rule, broken) => findings.add(rule, broken));
  const counts = { lines: 0, documents: 0, badLines: 0 };
  let isBatchFile = false;
  for await (const page of pages) {
    if (signal.aborted) break;
    isBatchFile = page.first?.form === 'batch_line';
    counts.lines = page.line;
    counts.documents += page.documents.length;
    counts.badLines += page.bad.length;
    for (const bad of page.bad) {
      const { line, reason: message, place } = bad;
      const example = { line, id: null, message, ...(place === undefined ? {} : { place }) };
      findings.add(badLineKind(bad), example);
    }
    for (const { kind, line, message } of page.remarks) findings.add(kind, { line, id: null, message });
    for (const document of page.documents) await examine(document);
  }
  if (isBatchFile) batchRules.finish();
  return { ...counts, models: lengths.models(), findings: findings.list() };

  async function examine(prepared: PreparedDocument): Promise<void> {
    const { line, key, requestHash, body, document, request } = prepared;
    // A hash in place of an id tells a reader nothing.
    const id = key.startsWith('sha256:') ? null : key;
    const problems = lengths.problemsOf(request, document.form === 'record' ? '' : body);
    for (const { kind, message } of problems instanceof Promise ? await problems : problems) {
      findings.add(kind, { line, id, message });
    }
    const isBatchLine = isBatchFile && document.form === 'batch_line';
    if (isBatchLine) batchRules.add(line, document, request.model, Buffer.byteLength(body) + 1);
    const repeat = repeats.see(key, requestHash, line);
    if (repeat === null) return;
    const { kind, firstLine } = repeat;
    if (isBatchLine && id !== null && kind !== 'repeated_request') batchRules.repeated(line, id, firstLine);
    else findings.add(kind, { line, id, message: repeatWords(repeat) });
  }
}

function repeatWords({ kind, firstLine }: Repeat): string {
  const words = {
    repeated_document: `the same as line ${firstLine}`,
    repeated_id: `has the id of line ${firstLine}, but another request`,
    repeated_request: `sends the same as line ${firstLine}`,
  };
  return words[kind];
}
