/** The OpenAPI 3.1 document, made of the routes and of the schemas that they check with. */
import type { RouteOptions } from 'fastify';
import type { RouteDocs } from './routes/route.js';
import { PROBLEM } from './schemas.js';

interface RouteSchema {
  readonly body?: object;
  readonly params?: { readonly properties: Readonly<Record<string, object>> };
  readonly querystring?: { readonly properties: Readonly<Record<string, object>> };
}

export class OpenApi {
  readonly #paths: Record<string, Record<string, object>> = {};

  /** Call for each route as it is added. */
  add({ method, url, schema, config }: RouteOptions): void {
    const docs = config?.docs;
    if (docs === undefined || typeof method !== 'string' || method === 'HEAD') return;
    const path = url.replace(/:(\w+)/g, '{$1}');
    this.#paths[path] = {
      ...this.#paths[path],
      [method.toLowerCase()]: operation(docs, (schema ?? {}) as RouteSchema),
    };
  }

  document(): object {
    return {
      openapi: '3.1.0',
      info: {
        title: 'llm-batch serve',
        version: '1',
        description: 'Durable tasks for LLM APIs: handed in over HTTP, answered by polling or by webhook.',
      },
      paths: this.#paths,
      components: {
        securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
        schemas: { Problem: PROBLEM },
      },
    };
  }
}

function operation(docs: RouteDocs, { body, params, querystring }: RouteSchema): object {
  const parameters = [
    ...parametersIn('path', params?.properties),
    ...parametersIn('query', querystring?.properties),
    ...(docs.takesIdempotencyKey === true ? [IDEMPOTENCY_KEY] : []),
  ];
  const bodyType = docs.bodyType ?? 'application/json';
  const bodySchema = docs.bodyType === undefined ? body : { type: 'string' };
  return {
    summary: docs.summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(bodySchema === undefined
      ? {}
      : { requestBody: { required: true, content: { [bodyType]: { schema: bodySchema } } } }),
    responses: Object.fromEntries(
      Object.entries(docs.answers).map(
        ([status, { description, schema, mediaType = 'application/json' }]) => {
          const shape =
            mediaType === 'application/problem+json' ? { $ref: '#/components/schemas/Problem' } : schema;
          return [
            status,
            { description, ...(shape === undefined ? {} : { content: { [mediaType]: { schema: shape } } }) },
          ];
        },
      ),
    ),
    security: docs.isPublic === true ? [] : [{ token: [] }],
  };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description: 'The same key and body again give the first answer again; nothing is done twice.',
};

function parametersIn(place: 'path' | 'query', properties: Readonly<Record<string, object>> = {}): object[] {
  return Object.entries(properties).map(([name, { description, ...schema }]: [string, Described]) => ({
    name,
    in: place,
    required: place === 'path',
    schema,
    ...(description === undefined ? {} : { description }),
  }));
}

type Described = { readonly description?: string };
