/** What is read back of a run's settings: a store may have come from anybody, so it is looked at like any input. */

import { storedGroup } from '../config/settings.js';
import { ENDPOINT_NAMES } from '../core/endpoint-name.js';
import {
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
  apiKeyHeader: orNull(text),
  headers: orNull(recordOf(text)),
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
  inputSha256: orNull(text),
  connection: objectOf({
    baseUrl: orNull(text),
    apiKeyEnv: listOf(text),
    apiKeyHeader: orNull(text),
    headers: orNull(recordOf(text)),
    lanes: orNull(listOf(LANE)),
  }),
  pacing: storedGroup('pacing'),
  remote: storedGroup('remote'),
  budget: storedGroup('budget'),
  answers: objectOf({
    check: orNull(
      either(objectOf({ kind: oneOf('schema'), schema: anyObject }), objectOf({ kind: oneOf('json') })),
    ),
    repair: orNull(truth),
  }),
  sharing: storedGroup('sharing'),
  pricesFile: orNull(text),
  simulator: orNull(anyObject),
  output: orNull(text),
});
