/** From the body of a submission to a task that can be stored, or to what is wrong with it, field by field. */
import { DEFAULT_ENDPOINT, type EndpointName } from '../core/endpoint-name.js';
import { LlmBatchError } from '../core/errors.js';
import { memberText } from '../core/json-text.js';
import { isLineProblem, type LineProblem } from '../core/line-problem.js';
import type { NewServedTask } from '../core/served-task.js';
import { createDocumentParser, type DocumentParser } from '../documents/document.js';
import {
  createRequestBuilder,
  type RequestBuilder,
  type RequestSettings,
  requestHash,
  runEndpointOf,
} from '../documents/request.js';
import { batchUrlOf, ENDPOINTS } from '../endpoints/endpoints.js';
import { unprocessable } from './problem.js';

/** A body that has the shape of `NEW_TASK`. */
export interface Submission {
  readonly request?: object;
  readonly document?: object;
  readonly prompt?: string;
  readonly model?: string;
  readonly endpoint?: EndpointName;
  readonly priority?: number;
  readonly metadata?: object;
  readonly max_attempts?: number;
  readonly webhook_url?: string;
}

/** What a submission, or the query of a whole run, says in place of the service. */
export type AskedWith = Pick<Submission, 'prompt' | 'model' | 'endpoint'>;

/** What a task is sent as. */
export type TaskContent = Pick<NewServedTask, 'requestHash' | 'priority' | 'body' | 'metadataJson'>;

/** Compiled templates that are kept: clients send a few prompts again and again. */
const MOST_KEPT = 200;

export class TaskIntake {
  readonly #service: RequestSettings;
  readonly #makers = new Map<string, { readonly parse: DocumentParser; readonly build: RequestBuilder }>();

  /** @param service what holds where a submission says nothing */
  constructor(service: RequestSettings) {
    this.#service = service;
  }

  /** What holds for documents that were asked for so. They name no files of this machine. */
  settingsFor(asked: AskedWith): RequestSettings {
    const endpoint = asked.endpoint ?? this.#service.endpoint ?? null;
    const isOther = runEndpointOf({ endpoint }) !== runEndpointOf(this.#service);
    return {
      ...this.#service,
      endpoint,
      model: asked.model ?? (isOther ? null : this.#service.model),
      promptTemplate: asked.prompt ?? this.#service.promptTemplate,
      parameters: isOther ? {} : this.#service.parameters,
      imageFolder: null,
      allowAnyPath: false,
      idField: null,
    };
  }

  /**
   * @param text the body as it came: what it says is stored to the digit
   * @throws Problem (422) naming the field
   */
  read(submission: Submission, text: string): TaskContent {
    const field = submission.request === undefined ? 'document' : 'request';
    const contentText = memberText(text, field);
    if (contentText === null || (submission.request !== undefined && submission.document !== undefined)) {
      throw unprocessable('', 'Give either a request or a document.');
    }
    if (field === 'request' && submission.prompt !== undefined) {
      throw unprocessable('prompt', 'goes with a document; a request has its messages');
    }
    const { parse, build } = this.#makerOf(submission, field);
    const document = parse(contentText);
    if (isLineProblem(document)) throw problemIn(field, document);
    if (field === 'request' && document.form === 'record') {
      const { endpoint = DEFAULT_ENDPOINT } = submission;
      const other = submission.endpoint === undefined ? '; name another in endpoint' : '';
      throw unprocessable(
        `request.${ENDPOINTS[endpoint].contentField}`,
        `is missing, without which it is no request of the endpoint ${endpoint}${other}`,
      );
    }
    const request = build(document);
    if (isLineProblem(request)) throw problemIn(field, request);
    const metadataJson = memberText(text, 'metadata') ?? document.metadataJson;
    const url = JSON.stringify(batchUrlOf(request.endpoint));
    return {
      requestHash: requestHash(request),
      priority: submission.priority ?? document.priority ?? 0,
      // The request as a line of a Batch API file: whatever the service is started with later, this is what is sent.
      body: `{"method":"POST","url":${url},"body":${request.bodyJson}}`,
      metadataJson,
    };
  }

  #makerOf(asked: AskedWith, field: 'request' | 'document') {
    const { prompt, model, endpoint } = asked;
    const key = JSON.stringify([field, prompt, model, endpoint]);
    const kept = this.#makers.get(key);
    if (kept !== undefined) return kept;
    const settings = {
      ...this.settingsFor(asked),
      ...(field === 'request' && { promptTemplate: null }),
      requestsAsTheyAre: false,
    };
    const maker = compiled(settings);
    const [oldest] = this.#makers.keys();
    if (this.#makers.size >= MOST_KEPT && oldest !== undefined) this.#makers.delete(oldest);
    this.#makers.set(key, maker);
    return maker;
  }
}

/** Settings under which tasks that were taken in are sent: each is a whole request by now. */
export function settingsOfTasks(service: RequestSettings): RequestSettings {
  return {
    endpoint: null,
    model: service.model,
    promptTemplate: null,
    systemTemplate: null,
    parameters: {},
    imageFolder: null,
    allowAnyPath: false,
    idField: null,
  };
}

function problemIn(field: string, { reason, field: inner }: LineProblem): Error {
  return unprocessable(inner === undefined ? field : `${field}.${inner}`, reason);
}

/** @throws Problem (422) for a prompt that cannot be compiled */
function compiled(settings: RequestSettings): { parse: DocumentParser; build: RequestBuilder } {
  try {
    return { parse: createDocumentParser(settings), build: createRequestBuilder(settings) };
  } catch (error) {
    if (error instanceof LlmBatchError) throw unprocessable('prompt', error.message);
    throw error;
  }
}
