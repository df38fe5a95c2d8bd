/** What is read back of a run's settings: a store may have come from anybody, so it is looked at like any input. */
import { ENDPOINT_NAMES } from '../core/endpoint-name.js';
import {
  amount,
  anyObject,
  either,
  listOf,
  objectOf,
  oneOf,
  orNull,
  positive,
  recordOf,
  type Shape,
  text,
  truth,
} from '../core/shape.js';

const LANE = objectOf({
  name: text,
  apiKeyEnv: text,
  baseUrl: orNull(text),
  models: recordOf(text),
  rpm: orNull(positive),
  tpm: orNull(positive),
  rpd: orNull(positive),
  weight: positive,
});

/** Of `RunSettings`. A field that an earlier version did not have yet may be absent. */
export const STORED_SETTINGS: Shape = objectOf({
  request: objectOf({
    endpoint: orNull(oneOf(...ENDPOINT_NAMES)),
    model: orNull(text),
    promptTemplate: orNull(text),
    systemTemplate: orNull(text),
    parameters: anyObject,
    imageFolder: orNull(text),
    idField: orNull(text),
  }),
  input: orNull(objectOf({ format: text })),
  connection: objectOf({ baseUrl: orNull(text), apiKeyEnv: listOf(text), lanes: orNull(listOf(LANE)) }),
  pacing: objectOf({
    concurrency: either(positive, oneOf('auto')),
    rpm: orNull(positive),
    tpm: orNull(positive),
    rpd: orNull(positive),
    groupMax: positive,
    groupWaitMs: amount,
    maxAttempts: positive,
    timeoutMs: amount,
    maxWaitMs: amount,
    graceMs: amount,
    guard: orNull(truth),
  }),
  budget: objectOf({
    maxCostMicroUsd: orNull(amount),
    maxTokensTotal: orNull(amount),
    maxFailures: orNull(either(objectOf({ documents: amount }), objectOf({ share: amount }))),
  }),
  answers: objectOf({
    check: orNull(
      either(objectOf({ kind: oneOf('schema'), schema: anyObject }), objectOf({ kind: oneOf('json') })),
    ),
    repair: orNull(truth),
  }),
  sharing: objectOf({ dedupe: truth, reuse: truth }),
  pricesFile: orNull(text),
  simulator: orNull(anyObject),
  output: orNull(text),
});
