/** Embeddings requests of bodies that came whole and of records. */
import { digest } from '../../core/digest.js';
import { orderedText } from '../../core/exact-json.js';
import { hasText } from '../../core/foreign-text.js';
import type { Json, JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { MODEL_MISSING, modelIn } from '../body-fields.js';
import type { RequestDefaults, RequestMaker } from '../endpoint.js';
import type { RenderedRequest } from '../rendered-request.js';
import { GROUPING, groupKeyOf } from './grouping.js';
import { inputsOf } from './inputs.js';
import { refusedValue } from './parameter.js';

export function createRequests({ model, parameters }: RequestDefaults): RequestMaker {
  const frame = model === null ? null : { model, encoding_format: 'float', ...parameters };
  const ofRecords = frame === null ? null : new Frame(frame);
  return {
    ofBody: (body) => ofBody(body, model, parameters),
    ofRecord(content) {
      if (typeof content !== 'string') return { reason: 'images have no embedding here; leave them out' };
      if (ofRecords === null) return MODEL_MISSING;
      return new TextRequest(ofRecords, content);
    },
  };
}

/** What is the same for all records of a run. */
class Frame {
  readonly model: string;
  readonly groupKey: string;
  readonly beforeText: string;
  readonly digest: string;

  constructor(frame: JsonObject & { readonly model: string }) {
    this.model = frame.model;
    this.groupKey = groupKeyOf(frame);
    this.beforeText = `${JSON.stringify(frame).slice(0, -1)},"input":`;
    this.digest = digest(this.beforeText);
  }
}

abstract class EmbeddingsRequest {
  readonly endpoint = 'embeddings';
  readonly outputCap = 0;
  readonly serviceTier = null;
  readonly attachments = [];
}

class TextRequest extends EmbeddingsRequest implements RenderedRequest {
  readonly inputs = 1;

  constructor(
    readonly frame: Frame,
    readonly inputText: string,
  ) {
    super();
  }

  get model(): string {
    return this.frame.model;
  }

  get groupKey(): string {
    return this.frame.groupKey;
  }

  get bodyJson(): string {
    return `${this.frame.beforeText}${JSON.stringify(this.inputText)}}`;
  }

  get fingerprint(): string {
    return this.frame.digest + this.inputText;
  }
}

class WholeRequest extends EmbeddingsRequest implements RenderedRequest {
  constructor(
    readonly model: string,
    readonly body: JsonObject,
    readonly inputs: number,
  ) {
    super();
  }

  /** A list of inputs is one document, whose vectors belong together. */
  get groupKey(): string | null {
    const { input, ...frame } = this.body;
    return typeof input === 'string' ? groupKeyOf(frame) : null;
  }

  get inputText(): string {
    return textOf(this.body['input'] ?? null);
  }

  get bodyJson(): string {
    return JSON.stringify(this.body);
  }

  get fingerprint(): string {
    return orderedText(this.body);
  }
}

function ofBody(
  body: JsonObject,
  defaultModel: string | null,
  parameters: JsonObject,
): RenderedRequest | LineProblem {
  const model = modelIn(body, defaultModel);
  if (model === null) return MODEL_MISSING;
  for (const name of ['dimensions', 'stream']) {
    const reason = refusedValue(name, body[name]);
    if (reason !== null) return { reason, field: name };
  }
  const problem = problemOf(body['input']);
  if (problem !== null) return problem;
  // What a line says of encoding_format is how its writer would have read the answer, which is our part.
  const whole = { ...parameters, ...body, model, encoding_format: 'float' };
  return new WholeRequest(model, whole, inputsOf(body['input']).length);
}

function problemOf(input: Json | undefined): LineProblem | null {
  const field = 'input';
  if (input === undefined) return { reason: 'input is missing: it holds the text', field };
  if (typeof input === 'string') return hasText(input) ? null : { reason: 'input is empty', field };
  if (!Array.isArray(input) || (!isTokens(input) && !input.every(isInput))) {
    return { reason: 'input must be a string, a list of strings, or tokens as whole numbers', field };
  }
  const inputs = inputsOf(input);
  if (inputs.length === 0 || inputs.some(isEmpty)) return { reason: 'input is empty', field };
  if (inputs.length > GROUPING.mostInputs) {
    return { reason: `input must have at most ${GROUPING.mostInputs} members, not ${inputs.length}`, field };
  }
  return null;
}

function isTokens(value: Json): boolean {
  return Array.isArray(value) && value.every((token) => Number.isInteger(token));
}

function isInput(value: Json): boolean {
  return typeof value === 'string' || isTokens(value);
}

function isEmpty(input: Json): boolean {
  return typeof input === 'string' ? !hasText(input) : Array.isArray(input) && input.length === 0;
}

/** Tokens stand for words of about their number; estimates are scaled by what the server charges anyway. */
function textOf(input: Json): string {
  return inputsOf(input)
    .map((each) => (typeof each === 'string' ? each : Array.isArray(each) ? ' a'.repeat(each.length) : ''))
    .join('\n');
}
