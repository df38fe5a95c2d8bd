/** The endpoints there are: one line each. */
import type { CompletedResult } from '../core/outcome.js';
import type { TokenUsage } from '../core/usage.js';
import { CHAT } from './chat/chat.js';
import { COMPLETIONS } from './completions/completions.js';
import { EMBEDDINGS } from './embeddings/embeddings.js';
import type { Endpoint, EndpointName } from './endpoint.js';
import { MODERATIONS } from './moderations/moderations.js';
import { RESPONSES } from './responses/responses.js';

export const ENDPOINTS: Readonly<Record<EndpointName, Endpoint>> = {
  chat: CHAT,
  responses: RESPONSES,
  embeddings: EMBEDDINGS,
  completions: COMPLETIONS,
  moderations: MODERATIONS,
};

/** `https://host/v1/chat/completions/?x=1` taken apart; null where it is no endpoint's address. */
function takeApart(address: string): { name: EndpointName; root: string; query: string } | null {
  const path = /^[^?#]*/.exec(address)?.[0] ?? '';
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  const bare = path.slice(0, end);
  // `/chat/completions` ends like `/completions`: the longest is meant.
  const [name] = (Object.keys(ENDPOINTS) as EndpointName[])
    .filter((each) => bare.endsWith(ENDPOINTS[each].path))
    .sort((one, other) => ENDPOINTS[other].path.length - ENDPOINTS[one].path.length);
  if (name === undefined) return null;
  const root = bare.slice(0, -ENDPOINTS[name].path.length);
  return { name, root, query: address.slice(path.length) };
}

/** The endpoint that a line's `url` means: a path, one below an Azure deployment, or a whole address. */
export function endpointAt(address: string): EndpointName | null {
  return takeApart(address)?.name ?? null;
}

/** What lines of Batch API files, and batches of them, call an endpoint (OpenAI's API reference, batches). */
export function batchUrlOf(endpoint: EndpointName): string {
  return `/v1${ENDPOINTS[endpoint].path}`;
}

/** A base URL as it was meant: users copy the address of an endpoint as well, query and all. */
export function apiRootOf(baseUrl: string): string {
  const found = takeApart(baseUrl);
  return found === null ? baseUrl : found.root + found.query;
}

/** The body of an answer of which the store holds the output alone. */
export function bodyOf(result: CompletedResult, usage: TokenUsage | null): string {
  for (const endpoint of Object.values(ENDPOINTS)) {
    const body = endpoint.bodyOf(result, usage);
    if (body !== null) return body;
  }
  return result.outputJson;
}
