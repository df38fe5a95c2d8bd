/** What a batch's file must be before any of it is run; as OpenAI's guide to its Batch API has it. */
import { isJsonObject, type JsonObject, parseJsonObject } from '../core/json.js';
import type { HeaderDialect } from './dialect.js';

const MOST_LINES = 50_000;
const MOST_BYTES = 200_000_000;
/** A broken file is told by its first mistakes. */
const MOST_ERRORS = 20;

export interface BatchFileError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  /** From 1; null for a mistake of the file as a whole. */
  readonly line: number | null;
}

export interface BatchLine {
  readonly customId: string;
  readonly body: JsonObject;
}

export interface BatchFileRules {
  /** The endpoint of the batch, which every line must name. */
  readonly endpoint: string;
  readonly dialect: HeaderDialect;
  /** Only these exist; null: any. */
  readonly models: readonly string[] | null;
}

/** With or without the version in front, as Azure takes them. */
export function endpointName(path: string): string {
  return path.replace(/^\/v1(?=\/)/, '');
}

/** A line that was checked before. */
export function readBatchLine(text: string): BatchLine {
  const line = JSON.parse(text) as { custom_id: string; body: JsonObject };
  return { customId: line.custom_id, body: line.body };
}

/** Takes the lines one after the other and has the findings at the end. */
export class BatchFileCheck {
  readonly errors: BatchFileError[] = [];
  readonly #rules: BatchFileRules;
  readonly #customIds = new Set<string>();
  model: string | null = null;
  lines = 0;

  constructor(rules: BatchFileRules) {
    this.#rules = rules;
  }

  add(text: string): void {
    this.lines += 1;
    if (this.errors.length >= MOST_ERRORS) return;
    const error = this.#faultOf(text);
    if (error !== null) this.errors.push({ ...error, line: this.lines });
  }

  finish(bytes: number): void {
    const whole = (code: string, message: string): void => {
      this.errors.push({ code, message, param: null, line: null });
    };
    if (this.lines === 0) whole('empty_file', 'The batch input file is empty.');
    if (this.lines > MOST_LINES) {
      whole('too_many_tasks', `The batch has ${this.lines} requests, more than the limit of ${MOST_LINES}.`);
    }
    if (bytes > MOST_BYTES) whole('file_too_large', `The file is larger than ${MOST_BYTES} bytes.`);
  }

  #faultOf(text: string): Omit<BatchFileError, 'line'> | null {
    const line = parseJsonObject(text);
    if (line === null) return fault('invalid_json_line', 'This line is not parseable as valid JSON.', null);
    const { custom_id: customId, method, url, body } = line;
    if (typeof customId !== 'string' || customId === '') {
      return fault('missing_required_parameter', "Missing required parameter: 'custom_id'.", 'custom_id');
    }
    if (this.#customIds.has(customId)) {
      return fault('duplicate_custom_id', `The custom_id '${customId}' is used twice.`, 'custom_id');
    }
    this.#customIds.add(customId);
    // Together has neither.
    if (this.#rules.dialect !== 'together') {
      if (method !== 'POST') return fault('invalid_method', "The method must be 'POST'.", 'method');
      if (typeof url !== 'string' || endpointName(url) !== endpointName(this.#rules.endpoint)) {
        return fault('invalid_url', 'The URL provided for this request does not match the endpoint.', 'url');
      }
    }
    if (!isJsonObject(body)) return fault('invalid_request', 'The body must be an object.', 'body');
    if (body['stream'] === true) {
      return fault('invalid_request', 'Streaming is not supported in batches.', 'body.stream');
    }
    return this.#faultOfModel(body['model']);
  }

  #faultOfModel(model: unknown): Omit<BatchFileError, 'line'> | null {
    const { dialect, models } = this.#rules;
    if (typeof model !== 'string') {
      return fault('missing_required_parameter', "Missing required parameter: 'model'.", 'body.model');
    }
    if (models !== null && !models.includes(model)) {
      return fault('model_not_found', `The provided model '${model}' is not supported.`, 'body.model');
    }
    this.model ??= model;
    // Groq takes several.
    if (model !== this.model && dialect !== 'groq') {
      const message = 'The batch has more than one model. All of its requests must be for the same.';
      return fault(dialect === 'azure' ? 'model_mismatch' : 'mismatched_model', message, 'body.model');
    }
    return null;
  }
}

function fault(code: string, message: string, param: string | null): Omit<BatchFileError, 'line'> {
  return { code, message, param };
}
