/** Embeddings requests of bodies that came whole and of records. */
import type { Json, JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { asksToStream, generatesNothing, MODEL_MISSING, modelIn } from '../body-fields.js';
import type { RequestDefaults } from '../endpoint.js';
import { listShape, problemOfInputs } from '../inputs.js';
import { contentLast, type RecordShape } from '../record-request.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';

/** OpenAI's API reference, embeddings: "array must be 2048 dimensions or less". */
export const MOST_INPUTS = 2_048;
/** Some servers send base64 where nothing is said. */
const FORMAT = { encoding_format: 'float' };

export const EMBEDDINGS_SHAPE: RecordShape = {
  ...listShape('input'),
  endpoint: 'embeddings',
  /** There is no output to pay for. */
  outputCapOf: () => 0,
  around: ({ model, parameters }) => contentLast('input', { model, ...FORMAT, ...parameters }),
  refuseAttachments: () => 'images have no embedding here; leave them out',
};

export function completeRequest(body: JsonObject, defaults: RequestDefaults): RenderedRequest | LineProblem {
  const model = modelIn(body, defaults.model);
  if (model === null) return MODEL_MISSING;
  for (const name of ['dimensions', 'stream']) {
    const reason = refusedValue(name, body[name]);
    if (reason !== null) return { reason, field: name };
  }
  const problem = problemOfInputs(body['input'], 'input', MOST_INPUTS);
  if (problem !== null) return problem;
  // What a line says of encoding_format is how its writer would have read the answer, which is our part.
  return new WholeRequest(EMBEDDINGS_SHAPE, model, { ...defaults.parameters, ...body, model, ...FORMAT });
}

/** Why a request may not carry this value; null when it may. */
export function refusedValue(name: string, value: Json | undefined): string | null {
  if (name === 'encoding_format' && value !== undefined && value !== 'float') {
    return 'encoding_format must be float: vectors are kept as numbers';
  }
  if (name === 'dimensions' && value !== undefined && !(Number.isInteger(value) && Number(value) > 0)) {
    return 'dimensions must be a whole number of at least 1';
  }
  return name === 'stream' && !asksToStream(value) ? null : generatesNothing(name, 'embeddings');
}
