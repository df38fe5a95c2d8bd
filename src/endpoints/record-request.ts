/** The request of a record: a frame that all share around the record's own text, or its texts and attachments. */
import type { Attachment } from '../core/attachment.js';
import { digest } from '../core/digest.js';
import type { EndpointName } from '../core/endpoint-name.js';
import type { Json, JsonObject } from '../core/json.js';
import type { LineProblem } from '../core/line-problem.js';
import { MODEL_MISSING } from './body-fields.js';
import type { Endpoint, RecordContent, RequestDefaults, RequestMaker } from './endpoint.js';
import { type RenderedRequest, serviceTierOf } from './rendered-request.js';
import { groupKeyOf, type RequestShape } from './whole-request.js';

/** How an endpoint asks what a record says. */
export interface RecordShape extends RequestShape {
  /** The JSON text of a body before and behind a record's content. */
  readonly around: (asked: AskedOfAll) => readonly [before: string, after: string];
  /** The content of a record with attachments, in the template's order. */
  readonly contentOf: (parts: readonly (string | Attachment)[]) => Json;
  /** Why these attachments cannot be sent; null when they can. */
  readonly refuseAttachments: (attachments: readonly Attachment[]) => string | null;
}

/** What is asked of all records alike. */
export interface AskedOfAll {
  readonly model: string;
  readonly systemText: string | null;
  readonly parameters: JsonObject;
}

/** @param frame all of a body but its content, which goes last */
export function contentLast(
  contentField: string,
  frame: JsonObject,
): readonly [before: string, after: string] {
  return [`${JSON.stringify(frame).slice(0, -1)},${JSON.stringify(contentField)}:`, '}'];
}

/** Completes a request that came whole. @param systemText as `RequestMaker.ofBody` has it */
export type CompleteRequest = (
  body: JsonObject,
  defaults: RequestDefaults,
  systemText: string | null,
) => RenderedRequest | LineProblem;

/** What an endpoint says of its requests. */
export function requestsOf(
  shape: RecordShape,
  complete: CompleteRequest,
): Pick<Endpoint, 'contentField' | 'outputCapOf' | 'createRequests'> {
  const { contentField, outputCapOf } = shape;
  const createRequests = (defaults: RequestDefaults): RequestMaker => {
    const { model, parameters } = defaults;
    const frameFor = model === null ? null : keepingLast(shape, model, parameters);
    return {
      ofBody: (body, systemText) => complete(body, defaults, systemText),
      ofRecord(content, systemText) {
        if (frameFor === null) return MODEL_MISSING;
        const reason = typeof content === 'string' ? null : refusedIn(content, shape);
        return reason === null ? new RecordRequest(shape, frameFor(systemText), content) : { reason };
      },
    };
  };
  return { contentField, outputCapOf, createRequests };
}

function refusedIn(content: Exclude<RecordContent, string>, shape: RecordShape): string | null {
  return shape.refuseAttachments(content.filter((part) => typeof part !== 'string'));
}

/** The part of a record's request that is the same for all of them. */
interface Frame {
  readonly model: string;
  readonly outputCap: number | null;
  readonly serviceTier: string | null;
  readonly systemText: string | null;
  readonly groupKey: string | null;
  readonly beforeText: string;
  readonly afterText: string;
  readonly digest: string;
}

/** Keeps the last frame: only a system template with fields makes another one. */
function keepingLast(
  shape: RecordShape,
  model: string,
  parameters: JsonObject,
): (systemText: string | null) => Frame {
  let last: Frame | null = null;
  return (systemText) => {
    if (last !== null && last.systemText === systemText) return last;
    const [beforeText, afterText] = shape.around({ model, systemText, parameters });
    last = {
      model,
      outputCap: shape.outputCapOf(parameters),
      serviceTier: serviceTierOf(parameters),
      systemText,
      groupKey: shape.isGrouped ? keyOfFrame(shape, beforeText, afterText) : null,
      beforeText,
      afterText,
      digest: digest(beforeText + afterText),
    };
    return last;
  };
}

/** As that of a whole request with the same body. */
function keyOfFrame({ contentField }: RequestShape, beforeText: string, afterText: string): string {
  const { [contentField]: _content, ...frame } = JSON.parse(`${beforeText}""${afterText}`) as JsonObject;
  return groupKeyOf(frame);
}

const NONE: readonly Attachment[] = [];

/** The request of a record: a frame around its text, or, where it has attachments, around its parts. */
class RecordRequest implements RenderedRequest {
  readonly inputs = 1;

  constructor(
    private readonly shape: RecordShape,
    private readonly frame: Frame,
    private readonly content: RecordContent,
  ) {}

  get endpoint(): EndpointName {
    return this.shape.endpoint;
  }

  get model(): string {
    return this.frame.model;
  }

  get outputCap(): number | null {
    return this.frame.outputCap;
  }

  get serviceTier(): string | null {
    return this.frame.serviceTier;
  }

  get groupKey(): string | null {
    return typeof this.content === 'string' ? this.frame.groupKey : null;
  }

  get attachments(): readonly Attachment[] {
    return typeof this.content === 'string' ? NONE : this.content.filter((part) => typeof part !== 'string');
  }

  get inputText(): string {
    const { content } = this;
    const texts =
      typeof content === 'string' ? [content] : content.filter((part) => typeof part === 'string');
    const { systemText } = this.frame;
    return (systemText === null ? texts : [systemText, texts.join('\n')]).join('\n');
  }

  get bodyJson(): string {
    const { content, frame } = this;
    const said = typeof content === 'string' ? content : this.shape.contentOf(content);
    return frame.beforeText + JSON.stringify(said) + frame.afterText;
  }

  /** The colon, which no digest has, tells that of parts from that of a text. */
  get fingerprint(): string {
    const { content, frame } = this;
    if (typeof content === 'string') return frame.digest + content;
    const parts = content.map((part) => (typeof part === 'string' ? part : [part.kind, part.identity]));
    return `parts:${frame.digest}${JSON.stringify(parts)}`;
  }
}
