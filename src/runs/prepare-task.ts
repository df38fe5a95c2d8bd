/** From a stored document to its request, with what that will charge the limits, and from requests to a call's. */

import type { Attachment } from '../core/attachment.js';
import { errorWithoutCall } from '../core/outcome.js';
import type { LeasedTask } from '../core/task.js';
import { loadAttachments } from '../documents/attachment.js';
import { createStoredRequestReader } from '../documents/read.js';
import { modelOf } from '../documents/request.js';
import type { Endpoint, Mistake } from '../endpoints/endpoint.js';
import { ENDPOINTS } from '../endpoints/endpoints.js';
import { joinBodies } from '../endpoints/multi-request.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import type { CheckOutput, JoinRequests, PreparedTask, PrepareTask } from '../engine/prepared-task.js';
import { expectedAttachmentTokens, mostAttachmentTokens } from '../pricing/attachment-tokens.js';
import { createInputEstimator, type InputEstimator } from '../pricing/input-estimate.js';
import { createOutputEstimator } from '../pricing/output-estimate.js';
import type { ProviderRequest } from '../provider/provider.js';
import { createLikeOthers } from './like-others.js';
import type { RunSettings } from './run-settings.js';

/** The check of answers is loaded where there is one: that takes a while, and most runs take any text. */
export async function loadPrepareTask(settings: RunSettings): Promise<PrepareTask> {
  const { check } = settings.answers;
  if (check === null) return createPrepareTask(settings, null);
  const { createOutputCheck } = await import('./output-check.js');
  return createPrepareTask(settings, createOutputCheck(check));
}

/**
 * Rendered when it is sent, so that a long system prompt is stored once and not with every document. A document
 * that cannot be rendered (it could at import) becomes `invalid_request` instead of stopping the run.
 */
export function createPrepareTask(settings: RunSettings, check: CheckOutput | null): PrepareTask {
  const render = createStoredRequestReader(settings.request);
  const estimators = new Map<Endpoint, InputEstimator>();
  const outputs = createOutputEstimator();
  const mistakes = new Map<number, Mistake>();
  const likeOthersOf = createLikeOthers();
  const groupPath = settings.pacing.groupUrl;
  const runModel = modelOf(settings.request);
  return (task) => {
    try {
      return prepare(task);
    } catch (error) {
      // A fault of our own: it fails this document, with words that tell, where it would end every life of the run.
      const message = `The document could not be made into a request: ${String(error)}`;
      return { refused: errorWithoutCall('invalid_request', message) };
    }
  };
  function prepare(task: LeasedTask): ReturnType<PrepareTask> {
    const rendered = render(task.body);
    if ('reason' in rendered) return { refused: errorWithoutCall('invalid_request', rendered.reason) };
    // Taken once: those of a whole request are looked for in its messages, and their images measured.
    const { endpoint: name, model, inputText, attachments, outputCap, serviceTier } = rendered;
    const endpoint = ENDPOINTS[name];
    const mistake = mistakes.get(task.taskId);
    const bodyJson =
      mistake === undefined || endpoint.withMistake === null
        ? rendered.bodyJson
        : endpoint.withMistake(rendered.bodyJson, mistake);
    const input = inputEstimatorOf(endpoint).measure(inputText, expectedAttachmentTokens(model, attachments));
    return {
      task,
      grouping: groupPath === null ? groupingOf(rendered, endpoint) : groupingAt(groupPath, rendered),
      request: { endpoint: name, bodyJson, attachments },
      model,
      namesModel: model !== runModel,
      billing: {
        model,
        mostInputTokens: mostInputTokens(model, bodyJson, attachments) + endpoint.framingTokens.most,
        outputCap,
        serviceTier,
      },
      checkOutput: check === null ? likeOthers(rendered, endpoint) : remembering(task.taskId, check),
      cost() {
        const inputTokens = input.tokens();
        const tokens = inputTokens + outputs.outputTokens(outputCap);
        return { requests: 1, tokens, tokensAtCap: outputCap === null ? tokens : inputTokens + outputCap };
      },
      learn(usage) {
        input.observe(usage.inputTokens);
        outputs.observe(usage.outputTokens);
      },
    };
  }
  function inputEstimatorOf(endpoint: Endpoint): InputEstimator {
    let estimator = estimators.get(endpoint);
    if (estimator === undefined) {
      estimator = createInputEstimator(endpoint.framingTokens.expected);
      estimators.set(endpoint, estimator);
    }
    return estimator;
  }
  function likeOthers({ groupKey }: RenderedRequest, { sizeOf }: Endpoint): CheckOutput | null {
    return sizeOf === null || groupKey === null ? null : likeOthersOf(groupKey, sizeOf);
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

function groupingOf({ groupKey, inputs }: RenderedRequest, endpoint: Endpoint): PreparedTask['grouping'] {
  const { path, grouping: bounds } = endpoint;
  return groupKey === null || bounds === null ? null : { key: `${path} ${groupKey}`, inputs, bounds };
}

/** Requests of all endpoints may share a call, but for those that are loaded when they leave. */
function groupingAt(
  groupPath: string,
  { endpoint, model, serviceTier, attachments }: RenderedRequest,
): PreparedTask['grouping'] {
  if (attachments.some(({ file }) => file !== null)) return null;
  const key = JSON.stringify([groupPath, endpoint, model, serviceTier]);
  const bounds = { mostInputs: Number.POSITIVE_INFINITY, mostTokens: Number.POSITIVE_INFINITY };
  return { key, inputs: 1, bounds };
}

/**
 * Pictures and PDFs are read when the call is about to leave: of a thousand that wait none is in memory.
 * @param groupPath where several requests go in one call; null: to endpoints that take arrays
 */
export function createJoinRequests(groupPath: string | null): JoinRequests {
  return (prepared) => {
    const [first] = prepared;
    if (first === undefined) throw new RangeError('a call without a document');
    const { endpoint, bodyJson, attachments } = first.request;
    const { grouping, placeFile } = ENDPOINTS[endpoint];
    const parts = prepared.length;
    const request = (bodies: readonly string[]): ProviderRequest => {
      if (groupPath !== null) return { endpoint, parts, groupPath, bodyJson: joinBodies(bodies) };
      const [only = ''] = bodies;
      if (parts === 1) return { endpoint, parts, bodyJson: only };
      if (grouping === null) throw new RangeError(`${endpoint} takes one document a call`);
      return { endpoint, parts, bodyJson: grouping.join(bodies) };
    };
    if (parts > 1 || placeFile === null || attachments.every(({ file }) => file === null))
      return request(prepared.map((each) => each.request.bodyJson));
    return async () => {
      const loaded = await loadAttachments(bodyJson, attachments, placeFile);
      return typeof loaded === 'string'
        ? request([loaded])
        : { refused: errorWithoutCall('invalid_request', loaded.reason) };
    };
  };
}

/** No tokenizer makes more tokens of a text than it has bytes; an image in base64 is no text. */
function mostInputTokens(model: string, bodyJson: string, attachments: readonly Attachment[]): number {
  const urlBytes = attachments.reduce((sum, { url }) => sum + Buffer.byteLength(url), 0);
  return Buffer.byteLength(bodyJson) - urlBytes + mostAttachmentTokens(model, attachments);
}
