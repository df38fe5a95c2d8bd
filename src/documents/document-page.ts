/** Documents ready to be stored, a page at a time. */
import { isLineProblem, type LineProblem } from '../core/line-problem.js';
import type { Remark } from '../core/remark.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import type { BadLine } from '../input/bad-line.js';
import type { Input } from '../input/input.js';
import type { InputRecord } from '../input/source.js';
import { createDocumentParser, type DocumentParser, type ParsedDocument } from './document.js';
import { checkFirstRecord, describeFirst, type FirstDocument } from './first-document.js';
import { documentKey } from './key.js';
import { OccurrenceCounter } from './occurrence.js';
import { Remarks } from './remarks.js';
import { createRequestBuilder, type RequestBuilder, type RequestSettings, requestHash } from './request.js';

/** A document ready to be stored as a task; of the same shape as the store's `NewTask`. */
export interface PreparedDocument {
  /** Its place in the input, see `GoodRecord`. */
  readonly line: number;
  readonly key: string;
  readonly idIsNumber: boolean;
  /** 0 for the first document with this key, 1 for the second, … */
  readonly occurrence: number;
  readonly requestHash: string;
  /** Higher goes first; 0 where the document says nothing. */
  readonly priority: number;
  /** A line of JSON as it was; the JSON of a row of any other format. */
  readonly body: string;
  readonly metadataJson: string | null;
  /** What `body` was parsed to, and the request that it makes. */
  readonly document: ParsedDocument;
  readonly request: RenderedRequest;
}

export interface DocumentPage {
  readonly documents: readonly PreparedDocument[];
  readonly bad: readonly BadLine[];
  /** The last line that this page or one before it holds. */
  readonly line: number;
  /** Documents of this page whose key has come before. */
  readonly duplicates: number;
  /** On documents of this page. */
  readonly remarks: readonly Remark[];
  /** Of the source, so far. */
  readonly bytesRead: number;
  /** Null until there is a good document; then the same for all pages. */
  readonly first: FirstDocument | null;
}

const PAGE_LINES = 1_000;
/** Bounds a page of long lines. */
const PAGE_CHARACTERS = 8 * 1024 * 1024;

/** Makes documents of rows and gathers them into pages. */
export class PageCollector {
  readonly #input: Input;
  readonly #settings: RequestSettings;
  readonly #parse: DocumentParser;
  readonly #build: RequestBuilder;
  readonly #occurrences = new OccurrenceCounter();
  #first: FirstDocument | null = null;
  #recordSeen = false;
  #line = 0;
  #documents: PreparedDocument[] = [];
  #bad: BadLine[] = [];
  #characters = 0;
  #duplicates = 0;
  readonly #remarks: Remarks;

  constructor(input: Input, settings: RequestSettings) {
    this.#input = input;
    this.#settings = settings;
    this.#parse = createDocumentParser(settings);
    this.#build = createRequestBuilder(settings);
    this.#remarks = new Remarks(settings);
  }

  get hasSeenLines(): boolean {
    return this.#line > 0;
  }

  get isEmpty(): boolean {
    return this.#documents.length + this.#bad.length === 0;
  }

  get isFull(): boolean {
    return this.#documents.length + this.#bad.length >= PAGE_LINES || this.#characters >= PAGE_CHARACTERS;
  }

  add(record: InputRecord): void {
    const { line, text, place } = record;
    this.#line = line;
    this.#characters += text?.length ?? 0;
    if (isLineProblem(record)) {
      this.#bad.push(record);
      return;
    }
    const problem = this.#prepare(line, record.text);
    if (problem === null) return;
    this.#bad.push({ line, ...problem, text, ...(place === undefined ? {} : { place }) });
  }

  takePage(): DocumentPage {
    const page: DocumentPage = {
      documents: this.#documents,
      bad: this.#bad,
      line: this.#line,
      duplicates: this.#duplicates,
      remarks: this.#remarks.take(),
      bytesRead: this.#input.bytesRead(),
      first: this.#first,
    };
    this.#documents = [];
    this.#bad = [];
    this.#characters = 0;
    this.#duplicates = 0;
    return page;
  }

  /** Keeps a good document and returns null, or returns what is wrong. */
  #prepare(line: number, text: string): LineProblem | null {
    const document = this.#parse(text);
    if (isLineProblem(document)) return document;
    if (document.form === 'record' && !this.#recordSeen) {
      this.#recordSeen = true;
      checkFirstRecord(document, this.#settings, this.#input);
    }
    const identity = documentKey(document, this.#settings.idField);
    if (isLineProblem(identity)) return identity;
    const request = this.#build(document);
    if (isLineProblem(request)) return request;
    this.#first ??= describeFirst(line, document, request, this.#settings);
    const occurrence = this.#occurrences.next(identity.key);
    if (occurrence > 0) this.#duplicates += 1;
    this.#remarks.see(line, document);
    this.#documents.push({
      line,
      ...identity,
      occurrence,
      requestHash: requestHash(request),
      priority: document.priority ?? 0,
      body: text,
      metadataJson: document.metadataJson,
      document,
      request,
    });
    return null;
  }
}
