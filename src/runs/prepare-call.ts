/** From a stored document to the call that answers it, with what it will charge the limits. */

import { createStoredRequestReader } from '../documents/read.js';
import type { CheckOutput, PrepareCall } from '../engine/call.js';
import { createInputEstimator } from '../pricing/input-estimate.js';
import { createOutputEstimator } from '../pricing/output-estimate.js';
import { type Mistake, withMistake } from './repair.js';
import type { RunSettings } from './run-settings.js';

/** What a chat template adds to the bytes of the request, of which no tokenizer makes more tokens: separators. */
const TEMPLATE_TOKENS = 16;

/**
 * Rendered when it is sent, so that a long system prompt is stored once and not with every document. A document
 * that can not be rendered (it could at import) becomes `invalid_request` instead of stopping the run.
 */
export function createPrepareCall(settings: RunSettings, check: CheckOutput | null): PrepareCall {
  const render = createStoredRequestReader(settings.request);
  const inputs = createInputEstimator();
  const outputs = createOutputEstimator();
  const mistakes = new Map<number, Mistake>();
  return (task) => {
    const rendered = render(task.body);
    if ('reason' in rendered) {
      return {
        refused: {
          kind: 'invalid_request',
          message: rendered.reason,
          httpStatus: null,
          code: null,
          requestId: null,
          partialOutputJson: null,
        },
      };
    }
    const { inputText } = rendered;
    const mistake = mistakes.get(task.taskId);
    const bodyJson = mistake === undefined ? rendered.bodyJson : withMistake(rendered.bodyJson, mistake);
    const inputTokens = inputs.inputTokens(inputText);
    const tokens = inputTokens + outputs.outputTokens(rendered.outputCap);
    const tokensAtCap = rendered.outputCap === null ? tokens : inputTokens + rendered.outputCap;
    return {
      model: rendered.model,
      request: { endpoint: rendered.endpoint, bodyJson },
      billing: {
        model: rendered.model,
        mostInputTokens: Buffer.byteLength(bodyJson) + TEMPLATE_TOKENS,
        outputCap: rendered.outputCap,
        serviceTier: rendered.serviceTier,
      },
      checkOutput: check === null ? null : remembering(task.taskId, check),
      cost: { requests: 1, tokens, tokensAtCap },
      learn(usage) {
        inputs.observe(inputText, usage.inputTokens);
        outputs.observe(usage.outputTokens);
      },
    };
  };
  function remembering(taskId: number, plainCheck: CheckOutput): CheckOutput {
    return (output) => {
      const checked = plainCheck(output);
      if ('problem' in checked && settings.answers.repair)
        mistakes.set(taskId, { output, problem: checked.problem });
      else mistakes.delete(taskId);
      return checked;
    };
  }
}
