/** The list of models (`GET /models`): free of charge, so it is what a look at a server asks for. */
import { isJsonObject, type Json } from '../../core/json.js';
import type { ProviderProbe } from '../provider.js';
import { buildFailure, type FailureContext } from './classify.js';
import { looksLikeHtml, parseJson, readText } from './error-body.js';
import { readRateLimitHints } from './headers.js';
import type { ReceivedResponse } from './response.js';

export const MODELS_PATH = '/models';

/** Many servers keep no list; how they say so. 405: the address is there, for something else. */
export const NO_LIST_STATUS: readonly number[] = [404, 405, 501];

/** Reads a response with status 2xx. Never throws, whatever came. */
export function readModels(received: ReceivedResponse, context: FailureContext): ProviderProbe {
  const { headers, content } = received;
  const hints = readRateLimitHints(headers, context.nowMs);
  if (looksLikeHtml(content)) {
    const message = `The server answers with ${readText(content)} (GET ${context.url})`;
    return { outcome: 'failed', failure: buildFailure('network', message, context, received), hints };
  }
  const models = modelsIn(content);
  return models === null ? { outcome: 'unlisted', hints } : { outcome: 'listed', models, hints };
}

/** OpenAI wraps the list in `data`; Together sends it bare, some servers call it `models`. */
function modelsIn(content: string): string[] | null {
  const body = parseJson(content) ?? null;
  const list = isJsonObject(body) ? (body['data'] ?? body['models']) : body;
  if (!Array.isArray(list)) return null;
  return list.map(nameOf).filter((name) => name !== null);
}

function nameOf(model: Json): string | null {
  const name = isJsonObject(model) ? (model['id'] ?? model['name']) : model;
  return typeof name === 'string' && name !== '' ? name : null;
}
