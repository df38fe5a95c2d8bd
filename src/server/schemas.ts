/** The shapes of what the service takes and gives: what it checks bodies with, and what its OpenAPI document says. */
import { ENDPOINT_NAMES } from '../core/endpoint-name.js';

/** Attempts are calls that are paid for. */
const MOST_ATTEMPTS = 100;

const TASK_FIELDS = {
  request: {
    type: 'object',
    description:
      'A request body of an OpenAI-compatible endpoint, e.g. model and messages, or a line of a Batch API file.',
  },
  document: {
    type: 'object',
    description: 'Data for the prompt; without a prompt its text field is the message.',
  },
  prompt: {
    type: 'string',
    minLength: 1,
    description: 'User message for a document; {{field}} is filled from it, {{image field}} with its images.',
  },
  model: { type: 'string', minLength: 1, description: 'Model, where the request names none.' },
  endpoint: {
    type: 'string',
    enum: ENDPOINT_NAMES,
    description: 'Where it is sent; else what the request shows, else chat.',
  },
  priority: { type: 'number', description: 'Higher goes first; 0 by default.' },
  metadata: { type: 'object', description: 'Given back with the result as it is.' },
  max_attempts: {
    type: 'integer',
    minimum: 1,
    maximum: MOST_ATTEMPTS,
    description: 'Attempts that this task may use before it counts as failed.',
  },
  webhook_url: {
    type: 'string',
    minLength: 1,
    description: 'Gets the task in a POST when it has ended, signed as Standard Webhooks.',
  },
} as const;

export const NEW_TASK = {
  title: 'NewTask',
  description: 'A request, or a document; one of the two.',
  type: 'object',
  properties: TASK_FIELDS,
  additionalProperties: false,
} as const;

/** Of `POST /v1/runs`: what holds for lines that do not say it themselves. */
export const RUN_QUERY = {
  type: 'object',
  properties: {
    prompt: TASK_FIELDS.prompt,
    model: TASK_FIELDS.model,
    endpoint: TASK_FIELDS.endpoint,
  },
  additionalProperties: false,
} as const;

export const RESULTS_QUERY = {
  type: 'object',
  properties: { status: { type: 'string', enum: ['completed', 'failed', 'all'], default: 'all' } },
  additionalProperties: false,
} as const;

/** A run has the name that its user gave it. */
export const LONGEST_ID = 300;

export const ID_PARAMETER = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, maxLength: LONGEST_ID } },
  required: ['id'],
} as const;

const TASK_ERROR = {
  title: 'TaskError',
  type: 'object',
  properties: {
    kind: {
      type: 'string',
      description: 'Such as refused, timeout or invalid_request; cancelled where it was cancelled.',
    },
    message: { type: 'string' },
    http_status: { type: ['integer', 'null'] },
    code: { type: ['string', 'null'] },
    request_id: { type: ['string', 'null'] },
  },
  required: ['kind', 'message'],
} as const;

const RESULT_LINE = {
  title: 'ResultLine',
  type: 'object',
  description: 'A line of a results file.',
  properties: {
    id: { type: ['string', 'number'] },
    line: { type: 'integer' },
    status: { type: 'string', enum: ['completed', 'failed'] },
    output: {},
    model: { type: 'string' },
    finish_reason: { type: ['string', 'null'] },
    usage: { type: ['object', 'null'] },
    cost_usd: { type: ['number', 'null'] },
    attempts: { type: 'integer' },
    latency_ms: { type: ['integer', 'null'] },
    request_id: { type: ['string', 'null'] },
    completed_at: { type: 'string', format: 'date-time' },
    metadata: { type: 'object' },
  },
  required: ['id', 'line', 'status'],
} as const;

const STATUS = { type: 'string', enum: ['pending', 'in_progress', 'completed', 'failed'] } as const;

export const TASK = {
  title: 'Task',
  type: 'object',
  properties: {
    id: { type: 'string' },
    status: STATUS,
    result: { anyOf: [RESULT_LINE, { type: 'null' }] },
    error: { anyOf: [TASK_ERROR, { type: 'null' }] },
  },
  required: ['id', 'status', 'result', 'error'],
} as const;

export const ACCEPTED = {
  title: 'Accepted',
  type: 'object',
  properties: { id: { type: 'string' }, status: { type: 'string', enum: ['pending'] } },
  required: ['id', 'status'],
} as const;

export const RUN = {
  title: 'Run',
  type: 'object',
  properties: {
    id: { type: 'string' },
    status: {
      type: 'string',
      enum: ['importing', 'open', 'finished', 'cancelled'],
      description: 'finished: every document is completed or failed.',
    },
    documents: {
      type: 'object',
      properties: Object.fromEntries(
        ['total', 'pending', 'in_progress', 'completed', 'failed', 'cancelled'].map((state) => [
          state,
          { type: 'integer' },
        ]),
      ),
    },
    cost_usd: { type: 'number' },
    halt_reason: { type: ['string', 'null'], description: 'Why the last drain stopped early.' },
    created_at: { type: 'string', format: 'date-time' },
  },
  required: ['id', 'status', 'documents'],
} as const;

export const RUNS = {
  title: 'Runs',
  type: 'object',
  properties: {
    runs: {
      type: 'array',
      items: {
        ...RUN,
        properties: {
          ...RUN.properties,
          failed_by_kind: { type: 'object', additionalProperties: { type: 'integer' } },
          documents_per_minute: { type: 'integer', description: 'Completed or failed, of late.' },
        },
      },
    },
    left_out: { type: 'integer', description: 'Older runs.' },
  },
  required: ['runs', 'left_out'],
} as const;

export const PROBLEM = {
  title: 'Problem',
  description: 'Problem details (RFC 9457).',
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: { field: { type: 'string' }, message: { type: 'string' } },
        required: ['field', 'message'],
      },
    },
  },
  required: ['type', 'title', 'status', 'detail', 'code'],
} as const;
