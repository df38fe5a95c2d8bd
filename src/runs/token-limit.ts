/** Refuses, before the first call, a run of which no document could ever be sent. */
import { usageError } from '../core/errors.js';
import { runEndpointOf } from '../documents/request.js';
import { lanesOf, type RunSettings } from './run-settings.js';

/**
 * Servers count the whole output cap of a call against the tokens of a minute before they let it in (OpenAI: "Request
 * too large"), so a cap as large as the limit fits no lane.
 * @throws LlmBatchError OUTPUT_CAP_OVER_LIMIT (exit 2)
 */
export function checkTokenLimit(settings: RunSettings): void {
  const cap = runEndpointOf(settings.request).outputCapOf(settings.request.parameters);
  if (cap === null) return;
  const limits = lanesOf(settings).map(({ tpm }) => tpm ?? Number.POSITIVE_INFINITY);
  const most = Math.max(...limits);
  if (cap < most) return;
  throw usageError(
    'OUTPUT_CAP_OVER_LIMIT',
    `Each answer may take ${cap} tokens, and a minute's limit is ${most} tokens, so no document could ever be sent.`,
  );
}
