/** From a stored document to the call that answers it, with what it will charge the limits. */

import { errorWithoutCall } from '../core/outcome.js';
import type { LeasedTask } from '../core/task.js';
import { type Attachment, loadAttachments } from '../documents/attachment.js';
import { createStoredRequestReader } from '../documents/read.js';
import type { RenderedRequest } from '../documents/rendered-request.js';
import type { CheckOutput, PrepareCall, PreparedCall } from '../engine/call.js';
import { expectedAttachmentTokens, mostAttachmentTokens } from '../pricing/attachment-tokens.js';
import { createInputEstimator } from '../pricing/input-estimate.js';
import { createOutputEstimator } from '../pricing/output-estimate.js';
import { type Mistake, withMistake } from './repair.js';
import type { RunSettings } from './run-settings.js';

/** What a chat template adds to the bytes of the request, of which no tokenizer makes more tokens: separators. */
const TEMPLATE_TOKENS = 16;

/**
 * Rendered when it is sent, so that a long system prompt is stored once and not with every document. A document
 * that cannot be rendered (it could at import) becomes `invalid_request` instead of stopping the run.
 */
export function createPrepareCall(settings: RunSettings, check: CheckOutput | null): PrepareCall {
  const render = createStoredRequestReader(settings.request);
  const inputs = createInputEstimator();
  const outputs = createOutputEstimator();
  const mistakes = new Map<number, Mistake>();
  return (task) => {
    try {
      return prepare(task);
    } catch (error) {
      // A fault of our own: it fails this document, with words that tell, where it would end every life of the run.
      const message = `The document could not be made into a request: ${String(error)}`;
      return { refused: errorWithoutCall('invalid_request', message) };
    }
  };
  function prepare(task: LeasedTask): ReturnType<PrepareCall> {
    const rendered = render(task.body);
    if ('reason' in rendered) return { refused: errorWithoutCall('invalid_request', rendered.reason) };
    // Taken once: those of a whole request are looked for in its messages, and their images measured.
    const { model, inputText, attachments } = rendered;
    const mistake = mistakes.get(task.taskId);
    const bodyJson = mistake === undefined ? rendered.bodyJson : withMistake(rendered.bodyJson, mistake);
    const attachmentTokens = expectedAttachmentTokens(model, attachments);
    const inputTokens = inputs.inputTokens(inputText, attachmentTokens);
    const tokens = inputTokens + outputs.outputTokens(rendered.outputCap);
    const tokensAtCap = rendered.outputCap === null ? tokens : inputTokens + rendered.outputCap;
    return {
      model,
      request: requestOf(rendered.endpoint, bodyJson, attachments),
      billing: {
        model,
        mostInputTokens: mostInputTokens(model, bodyJson, attachments) + TEMPLATE_TOKENS,
        outputCap: rendered.outputCap,
        serviceTier: rendered.serviceTier,
      },
      checkOutput: check === null ? null : remembering(task.taskId, check),
      cost: { requests: 1, tokens, tokensAtCap },
      learn(usage) {
        inputs.observe(inputText, usage.inputTokens, attachmentTokens);
        outputs.observe(usage.outputTokens);
      },
    };
  }
  function remembering(taskId: number, plainCheck: CheckOutput): CheckOutput {
    return async (output) => {
      const checked = await plainCheck(output);
      if ('problem' in checked && settings.answers.repair)
        mistakes.set(taskId, { output, problem: checked.problem });
      else mistakes.delete(taskId);
      return checked;
    };
  }
}

/** Pictures and PDFs are read when the call is about to leave: of a thousand that wait none is in memory. */
function requestOf(
  endpoint: RenderedRequest['endpoint'],
  bodyJson: string,
  attachments: readonly Attachment[],
): PreparedCall['request'] {
  if (attachments.every(({ file }) => file === null)) return { endpoint, bodyJson };
  return async () => {
    const loaded = await loadAttachments(bodyJson, attachments);
    return typeof loaded === 'string'
      ? { endpoint, bodyJson: loaded }
      : { refused: errorWithoutCall('invalid_request', loaded.reason) };
  };
}

/** No tokenizer makes more tokens of a text than it has bytes; an image in base64 is no text. */
function mostInputTokens(model: string, bodyJson: string, attachments: readonly Attachment[]): number {
  const urlBytes = attachments.reduce((sum, { url }) => sum + Buffer.byteLength(url), 0);
  return Buffer.byteLength(bodyJson) - urlBytes + mostAttachmentTokens(model, attachments);
}
