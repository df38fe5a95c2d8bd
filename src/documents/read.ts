/** The whole way from an input's rows to documents, and back from a stored document to its request. */
import { usageError } from '../core/errors.js';
import { theInput } from '../core/input-name.js';
import { isLineProblem, type LineProblem } from '../core/line-problem.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import type { Input } from '../input/input.js';
import { createDocumentParser } from './document.js';
import { type DocumentPage, PageCollector } from './document-page.js';
import { createRequestBuilder, type RequestSettings } from './request.js';

export type { DocumentPage, PreparedDocument } from './document-page.js';
export type { FirstDocument } from './first-document.js';

export interface ReadOptions {
  readonly settings: RequestSettings;
  /** Of one row in the input; default 32 MiB. */
  readonly maxLineBytes?: number;
}

/**
 * Reads all documents of an input in pages of about a thousand. A bad line is a value and never ends the reading.
 * @throws LlmBatchError (exit 2) when no line can be right: nothing in the input, a JSON file that is no JSONL, a
 *   template without any field, no template and no field to take its place; and whatever `input.records` throws
 */
export async function* readDocuments(input: Input, options: ReadOptions): AsyncGenerator<DocumentPage> {
  const collector = new PageCollector(input, options.settings);
  const pages = input.records(
    options.maxLineBytes === undefined ? {} : { maxLineBytes: options.maxLineBytes },
  );
  for await (const page of pages) {
    for (const record of page) {
      collector.add(record);
      if (collector.isFull) yield collector.takePage();
    }
  }
  if (!collector.hasSeenLines) {
    throw usageError(
      'INPUT_EMPTY',
      `${theInput(input.name)} has only blank lines.`,
      'Give a file with at least one document.',
    );
  }
  if (!collector.isEmpty) yield collector.takePage();
}

/**
 * Turns stored documents back into their requests, when they are sent. Gives a problem only for a document that was
 * not prepared with the same settings.
 * @throws LlmBatchError TEMPLATE_SYNTAX (exit 2)
 */
export function createStoredRequestReader(
  settings: RequestSettings,
): (body: string) => RenderedRequest | LineProblem {
  const parse = createDocumentParser(settings);
  const build = createRequestBuilder(settings);
  return (body) => {
    const document = parse(body);
    return isLineProblem(document) ? document : build(document);
  };
}
