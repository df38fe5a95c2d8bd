/** The request of a record: a frame that all share around the record's own text, or its texts and attachments. */
import type { Attachment } from '../core/attachment.js';
import { digest } from '../core/digest.js';
import type { EndpointName } from '../core/endpoint-name.js';
import type { Json, JsonObject } from '../core/json.js';
import type { LineProblem } from '../core/line-problem.js';
import { MODEL_MISSING } from './body-fields.js';
import type { RecordContent, RequestDefaults, RequestMaker } from './endpoint.js';
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

/** @param ofBody completes a request that came whole */
export function createRequestMaker(
  shape: RecordShape,
  { model, parameters }: RequestDefaults,
  ofBody: RequestMaker['ofBody'],
): RequestMaker {
  const frames = model === null ? null : new FrameMaker(shape, model, parameters);
  return {
    ofBody,
    ofRecord(content, systemText) {
      if (frames === null) return MODEL_MISSING;
      if (typeof content === 'string') return new TextRequest(shape, frames.frame(systemText), content);
      const problem = refusedIn(content, shape);
      return problem ?? new PartsRequest(shape, frames.frame(systemText), content);
    },
  };
}

function refusedIn(content: Exclude<RecordContent, string>, shape: RecordShape): LineProblem | null {
  const reason = shape.refuseAttachments(content.filter((part) => typeof part !== 'string'));
  return reason === null ? null : { reason };
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
class FrameMaker {
  #last: Frame | null = null;

  constructor(
    private readonly shape: RecordShape,
    private readonly model: string,
    private readonly parameters: JsonObject,
  ) {}

  frame(systemText: string | null): Frame {
    if (this.#last !== null && this.#last.systemText === systemText) return this.#last;
    const { shape, model, parameters } = this;
    const [beforeText, afterText] = shape.around({ model, systemText, parameters });
    this.#last = {
      model,
      outputCap: shape.outputCapOf(parameters),
      serviceTier: serviceTierOf(parameters),
      systemText,
      groupKey: shape.isGrouped ? keyOfFrame(shape, beforeText, afterText) : null,
      beforeText,
      afterText,
      digest: digest(beforeText + afterText),
    };
    return this.#last;
  }
}

/** As that of a whole request with the same body. */
function keyOfFrame({ contentField }: RequestShape, beforeText: string, afterText: string): string {
  const { [contentField]: _content, ...frame } = JSON.parse(`${beforeText}""${afterText}`) as JsonObject;
  return groupKeyOf(frame);
}

const NONE: readonly Attachment[] = [];

/** What the frame says of a request, whatever its content is. */
abstract class FramedRequest {
  readonly inputs = 1;

  constructor(
    protected readonly shape: RecordShape,
    protected readonly frame: Frame,
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

  protected withSystemText(text: string): string {
    return this.frame.systemText === null ? text : `${this.frame.systemText}\n${text}`;
  }

  /** @param content JSON text */
  protected bodyAround(content: string): string {
    return this.frame.beforeText + content + this.frame.afterText;
  }
}

class TextRequest extends FramedRequest implements RenderedRequest {
  readonly #text: string;

  constructor(shape: RecordShape, frame: Frame, text: string) {
    super(shape, frame);
    this.#text = text;
  }

  get groupKey(): string | null {
    return this.frame.groupKey;
  }

  get attachments(): readonly Attachment[] {
    return NONE;
  }

  get inputText(): string {
    return this.withSystemText(this.#text);
  }

  get bodyJson(): string {
    return this.bodyAround(JSON.stringify(this.#text));
  }

  get fingerprint(): string {
    return this.frame.digest + this.#text;
  }
}

/** A record's request that has images: its texts and attachments in the template's order. */
class PartsRequest extends FramedRequest implements RenderedRequest {
  readonly groupKey = null;
  readonly #parts: readonly (string | Attachment)[];

  constructor(shape: RecordShape, frame: Frame, parts: readonly (string | Attachment)[]) {
    super(shape, frame);
    this.#parts = parts;
  }

  get inputText(): string {
    return this.withSystemText(this.#parts.filter((part) => typeof part === 'string').join('\n'));
  }

  get attachments(): readonly Attachment[] {
    return this.#parts.filter((part) => typeof part !== 'string');
  }

  get bodyJson(): string {
    return this.bodyAround(JSON.stringify(this.shape.contentOf(this.#parts)));
  }

  /** The colon, which no digest has, tells it from that of a text. */
  get fingerprint(): string {
    const parts = this.#parts.map((part) => (typeof part === 'string' ? part : [part.kind, part.identity]));
    return `parts:${this.frame.digest}${JSON.stringify(parts)}`;
  }
}
