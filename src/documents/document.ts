/**
 * One line to one document. A line has one of three forms:
 *
 * - `batch_line`: a line of a Batch API file, `{custom_id, method, url, body}`; the body is sent.
 * - `request`: a request body, `{model?, messages | prompt | input, …}`; all of it is sent but this program's own
 *   fields (id, custom_id, metadata, priority).
 * - `record`: any other object; it is data, and a template or its text field makes the request.
 */

import { DEFAULT_ENDPOINT, ENDPOINT_NAMES, type EndpointName } from '../core/endpoint-name.js';
import {
  type ExactJson,
  type ExactObject,
  parseExactJson,
  stringifyExact,
  surveyJson,
} from '../core/exact-json.js';
import { findField, showName } from '../core/field.js';
import { isJsonObject, type JsonObject } from '../core/json.js';
import { memberText } from '../core/json-text.js';
import type { LineProblem } from '../core/line-problem.js';
import { ENDPOINTS, endpointAt } from '../endpoints/endpoints.js';
import { recogniseRequest } from '../endpoints/recognise.js';
import { describeJsonError } from './json-syntax.js';
import { findLoneSurrogate, mayHoldLoneSurrogate } from './lone-surrogate.js';
import { compileTemplate } from './template.js';

export type DocumentForm = 'batch_line' | 'request' | 'record';

export interface ParsedDocument {
  readonly form: DocumentForm;
  /** The whole line; what templates and `--id-field` see. */
  readonly fields: ExactObject;
  /** Where the request goes; null for a record. */
  readonly endpoint: EndpointName | null;
  /** What is to be sent, before settings fill it up; null for a record. */
  readonly request: JsonObject | null;
  /** Null when the line gives none. */
  readonly priority: number | null;
  /** The line's `metadata` as it stands there, null when it has none. */
  readonly metadataJson: string | null;
}

export interface DocumentRules {
  /** With a prompt template every line is a record, whatever fields it has. */
  readonly promptTemplate: string | null;
  /** Beside a prompt template too, whole requests are no records. Absent in runs of earlier versions: they are none. */
  readonly requestsAsTheyAre?: boolean;
  /** Where all requests go. Absent: to the endpoint that each shows to be its own. */
  readonly endpoint?: EndpointName | null;
  /** A field used as the id; not sent with a request. */
  readonly idField: string | null;
}

export type DocumentParser = (text: string) => ParsedDocument | LineProblem;

/** @throws LlmBatchError TEMPLATE_SYNTAX (exit 2) */
export function createDocumentParser(rules: DocumentRules): DocumentParser {
  const template = rules.promptTemplate === null ? null : compileTemplate(rules.promptTemplate, 'prompt');
  const asked = rules.endpoint ?? null;
  const templateRoots = new Set(template?.fields.map((field) => field.split('.')[0] as string));

  /** A template that names `body` or what a request asks means to use it as data. */
  const formOf = (fields: ExactObject): DocumentForm => {
    if (template !== null && rules.requestsAsTheyAre === false) return 'record';
    const hasBatchFields = fields['url'] !== undefined && fields['method'] !== undefined;
    if (template === null && hasBatchFields && fields['custom_id'] !== undefined) return 'batch_line';
    if (isObject(fields['body']) && !templateRoots.has('body')) {
      if (fields['custom_id'] !== undefined) return 'batch_line';
      if (template === null && hasBatchFields) return 'batch_line';
    }
    if (template === null) return endpointOfBody(fields, asked) === null ? 'record' : 'request';
    const found = recogniseRequest(fields);
    if (found?.certainty !== 'surely') return 'record';
    return templateRoots.has(ENDPOINTS[found.endpoint].contentField) ? 'record' : 'request';
  };

  return (text) => {
    const parsed = parseObject(text);
    if (parsed.problem !== null) return parsed.problem;
    const { fields, unusualNumbers } = parsed;
    const form = formOf(fields);
    const endpoint = endpointOf(form, fields, asked);
    if (typeof endpoint === 'object' && endpoint !== null) return endpoint;
    const request = requestOf(form, fields, rules.idField);
    const problem = request !== null && unusualNumbers ? checkNumbersToSend(request, form) : null;
    if (problem !== null) return problem;
    const priority = readPriority(fields['priority'], form);
    if (typeof priority === 'object' && priority !== null) return priority;
    const metadata = fields['metadata'];
    const hasMetadata = metadata !== undefined && metadata !== null;
    return {
      form,
      fields,
      endpoint,
      // Without a bigint left in it, an ExactObject is a JsonObject.
      request: request as JsonObject | null,
      priority,
      metadataJson: hasMetadata ? memberText(text, 'metadata') : null,
    };
  };
}

type ParsedObject =
  | { readonly problem: LineProblem }
  | { readonly problem: null; readonly fields: ExactObject; readonly unusualNumbers: boolean };

function parseObject(text: string): ParsedObject {
  let rounded: ExactJson;
  try {
    rounded = JSON.parse(text) as ExactJson;
  } catch {
    return { problem: { reason: `not JSON: ${describeJsonError(text)}` } };
  }
  if (!isObject(rounded)) {
    return { problem: { reason: `${describeValue(rounded)}, where each line must be one JSON object` } };
  }
  const traits = surveyJson(rounded);
  if (traits === 'too_deep') return { problem: { reason: 'nested too deeply' } };
  if (mayHoldLoneSurrogate(text)) {
    const field = findLoneSurrogate(rounded);
    if (field !== null) return { problem: loneSurrogate(field) };
  }
  if (traits === 'plain') return { problem: null, fields: rounded, unusualNumbers: false };
  const field = findField(rounded, (member) => typeof member === 'number' && !Number.isFinite(member));
  if (field !== null) return { problem: boundless(field) };
  return { problem: null, fields: parseExactJson(text) as ExactObject, unusualNumbers: true };
}

function boundless(field: string): LineProblem {
  return { reason: `${showName(field)} is a number beyond all range; write it as a string`, field };
}

function loneSurrogate(field: string): LineProblem {
  return {
    reason: `${showName(field)} holds half of a surrogate pair (such as \\ud83d alone), which is no character; remove it`,
    field,
  };
}

function endpointOf(
  form: DocumentForm,
  fields: ExactObject,
  asked: EndpointName | null,
): EndpointName | null | LineProblem {
  if (form === 'record') return null;
  return form === 'batch_line' ? endpointOfBatchLine(fields, asked) : endpointOfBody(fields, asked);
}

/** The endpoint of which this is a request body; null for a record. */
function endpointOfBody(fields: ExactObject, asked: EndpointName | null): EndpointName | null | LineProblem {
  const found = recogniseRequest(fields);
  if (asked === null || found?.endpoint === asked) return found?.endpoint ?? null;
  const content = fields[ENDPOINTS[asked].contentField];
  // What shows no endpoint of its own goes where it is told to; a list is no text of a record.
  if (content !== undefined && (found?.certainty === 'perhaps' || (found === null && Array.isArray(content))))
    return asked;
  return found && { reason: `is a request for ${found.endpoint}, and the run is for ${asked}` };
}

function endpointOfBatchLine(
  { url, method, body }: ExactObject,
  asked: EndpointName | null,
): EndpointName | LineProblem {
  if (method !== undefined && method !== 'POST') {
    return { reason: `method ${showValue(method)} is not supported; only POST is`, field: 'method' };
  }
  const endpoint = url === undefined ? endpointWithoutUrl(body, asked) : endpointOfUrl(url);
  if (typeof endpoint === 'object') return endpoint;
  if (asked !== null && endpoint !== asked) {
    return {
      reason: `url ${showValue(url ?? null)} is for ${endpoint}, and the run is for ${asked}`,
      field: 'url',
    };
  }
  const { contentField } = ENDPOINTS[endpoint];
  if (!isObject(body) || body[contentField] === undefined) {
    return { reason: `body has no ${contentField}`, field: `body.${contentField}` };
  }
  return endpoint;
}

function endpointOfUrl(url: ExactJson): EndpointName | LineProblem {
  const endpoint = typeof url === 'string' ? endpointAt(url) : null;
  if (endpoint !== null) return endpoint;
  const known = ENDPOINT_NAMES.map((name) => `/v1${ENDPOINTS[name].path}`).join(', ');
  return { reason: `url ${showValue(url)} is not supported; only ${known} are`, field: 'url' };
}

function endpointWithoutUrl(
  body: ExactJson | undefined,
  asked: EndpointName | null,
): EndpointName | LineProblem {
  const found = isObject(body) ? endpointOfBody(body, asked) : null;
  return found ?? asked ?? DEFAULT_ENDPOINT;
}

function requestOf(form: DocumentForm, fields: ExactObject, idField: string | null): ExactObject | null {
  if (form === 'record') return null;
  if (form === 'batch_line') return fields['body'] as ExactObject;
  const { id: _id, custom_id: _customId, metadata: _metadata, priority: _priority, ...request } = fields;
  if (idField !== null) delete request[idField];
  return request;
}

/** A request goes to the server as a double would have it, so an exact integer cannot be kept. */
function checkNumbersToSend(request: ExactObject, form: DocumentForm): LineProblem | null {
  const path = findField(request, (member) => typeof member === 'bigint');
  if (path === null) return null;
  const field = form === 'batch_line' ? `body.${path}` : path;
  return {
    reason: `${showName(field)} is an integer beyond 2^53 and would be rounded; write it as a string`,
    field,
  };
}

/** Whole numbers, also as text, for columns of CSV files are text. In a record anything else is a column of data. */
function readPriority(value: ExactJson | undefined, form: DocumentForm): number | null | LineProblem {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  if (typeof value === 'string' && /^-?\d{1,9}$/.test(value)) return Number(value);
  if (form === 'record') return null;
  return { reason: `priority must be a whole number, not ${showValue(value)}`, field: 'priority' };
}

function isObject(value: ExactJson | undefined): value is ExactObject {
  return isJsonObject(value);
}

function describeValue(value: ExactJson): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a JSON array';
  return typeof value === 'string' ? 'a string' : typeof value === 'boolean' ? 'true or false' : 'a number';
}

/** A value in a message: short, on one line. */
export function showValue(value: ExactJson): string {
  const text = stringifyExact(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
