/** POST /v1/batch: several requests of one model in one call, each of the endpoint that its fields show, answered by id. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { chatCompletions } from './chat-completions.js';
import { completions } from './completions.js';
import { mayDirect } from './directive.js';
import { embeddings } from './embeddings.js';
import type { AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import { listWithFault } from './inputs.js';
import type { SimulatorSettings } from './options.js';
import { faultOfModel, invalidRequest, isRefusal, type Refusal } from './refusal.js';
import { responses } from './responses.js';

export const multiRequest: Endpoint = {
  path: '/v1/batch',
  read(requestBody, settings) {
    const { model, batch } = requestBody;
    const ofModel = faultOfModel(requestBody);
    if (ofModel !== null) return ofModel;
    if (!Array.isArray(batch) || batch.length === 0 || !batch.every(isJsonObject)) {
      return invalidRequest("'$.batch' must be a list of requests.", 'batch', null);
    }
    const ids = batch.map(({ id }) => id);
    if (!ids.every((id) => typeof id === 'string') || new Set(ids).size < ids.length) {
      return invalidRequest('Each request needs an id of its own.', 'batch', null);
    }
    return understand(String(model), batch, settings);
  },
};

/** One of the requests, with its own refusal where it is none that can be answered. */
interface Asked {
  readonly id: string;
  readonly inquiry: Inquiry | Refusal;
}

/** Responses and embeddings both have an `input`; of the two a response alone is stored or not. */
function endpointOf(request: JsonObject): Endpoint {
  if ('prompt' in request) return completions;
  if ('input' in request) return 'store' in request ? responses : embeddings;
  return chatCompletions;
}

function understand(
  model: string,
  batch: readonly JsonObject[],
  settings: SimulatorSettings,
): Inquiry | Refusal {
  const asked = batch.map(({ id, ...request }): Asked => {
    return { id: String(id), inquiry: endpointOf(request).read({ ...request, model }, settings) };
  });
  const good = asked.flatMap(({ inquiry }) => (isRefusal(inquiry) ? [] : [inquiry]));
  // What is asked of the simulator stands in one text of a call: that one is the document whose calls are counted.
  const lead = good.find(({ userTexts }) => userTexts.some(mayDirect)) ?? good[0];
  if (lead === undefined) return asked[0]?.inquiry as Refusal;
  const sum = (amount: (inquiry: Inquiry) => number): number =>
    good.reduce((total, inquiry) => total + amount(inquiry), 0);
  const costUsd = settings.prices === null ? null : sum((inquiry) => inquiry.costUsd ?? 0);
  return {
    fingerprint: lead.fingerprint,
    companions: good.flatMap((inquiry) => (inquiry === lead ? [] : [inquiry.fingerprint])),
    model,
    userTexts: good.flatMap(({ userTexts }) => userTexts),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
    outputCapTokens: good.every(({ outputCapTokens }) => outputCapTokens !== null)
      ? sum(({ outputCapTokens }) => outputCapTokens ?? 0)
      : null,
    costUsd,
    render(variant, stamp) {
      const results = asked.map(({ id, inquiry }): JsonObject => {
        if (isRefusal(inquiry)) return { id, error: errorOf(inquiry) };
        return { ...inquiry.render(inquiry === lead ? variant : 'whole', stamp), id };
      });
      const meant = asked.findIndex(({ inquiry }) => inquiry === lead);
      return { results: faulty(results, meant, variant, stamp.callNumber) };
    },
  };
}

function errorOf({ message, type, param, code }: Pick<Refusal, 'message' | 'type' | 'param' | 'code'>): Json {
  return { message, type, param, code };
}

/** @param meant the result that a fault is meant for */
function faulty(results: JsonObject[], meant: number, variant: AnswerVariant, callNumber: number): Json[] {
  const others = results.filter((_, index) => index !== meant);
  const result = results[meant] as JsonObject;
  switch (variant) {
    case 'index_unknown':
      return [...others, { ...result, id: 'nobody' }];
    case 'item_error': {
      const message = "Invalid value for 'messages'.";
      const error = errorOf({ message, type: 'invalid_request_error', param: null, code: 'invalid_value' });
      return [...others, { id: result['id'] ?? null, error }];
    }
    default:
      return listWithFault(results, meant, variant, callNumber, {});
  }
}
