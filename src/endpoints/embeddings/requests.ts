/** Embeddings requests of bodies that came whole and of records. */
import type { JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { MODEL_MISSING, modelIn } from '../body-fields.js';
import type { RequestDefaults } from '../endpoint.js';
import { inputsOf, problemOfInputs, textOfInputs } from '../inputs.js';
import { contentLast, type RecordShape } from '../record-request.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';
import { refusedValue } from './parameter.js';

/** OpenAI's API reference, embeddings: "array must be 2048 dimensions or less". */
export const MOST_INPUTS = 2_048;
/** Some servers send base64 where nothing is said. */
const FORMAT = { encoding_format: 'float' };

export const EMBEDDINGS_SHAPE: RecordShape = {
  endpoint: 'embeddings',
  contentField: 'input',
  /** There is no output to pay for. */
  outputCapOf: () => 0,
  textOf: ({ input }) => textOfInputs(input),
  attachmentsIn: () => [],
  inputsOf: ({ input }) => inputsOf(input).length,
  isGrouped: true,
  around: ({ model, parameters }) => contentLast('input', { model, ...FORMAT, ...parameters }),
  contentOf: (parts) => parts.filter((part) => typeof part === 'string').join('\n'),
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
