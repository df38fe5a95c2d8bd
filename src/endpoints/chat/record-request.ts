/** The request of a record: a frame that all share around the record's own text, or its text and images. */
import type { Attachment } from '../../core/attachment.js';
import { digest } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import { type RenderedRequest, serviceTierOf } from '../rendered-request.js';
import { attachmentPart } from './attachment-part.js';
import { outputCapOf } from './output-cap.js';
import { systemMessage } from './whole-request.js';

/** The part of a record's request that is the same for all of them. */
export interface Frame {
  readonly model: string;
  readonly outputCap: number | null;
  readonly serviceTier: string | null;
  readonly systemText: string | null;
  readonly beforeText: string;
  readonly afterText: string;
  readonly digest: string;
}

/** Keeps the last frame: only a system template with fields makes another one. */
export class FrameMaker {
  readonly #model: string;
  readonly #parameters: JsonObject;
  #last: Frame | null = null;

  constructor(model: string, parameters: JsonObject) {
    this.#model = model;
    this.#parameters = parameters;
  }

  frame(systemText: string | null): Frame {
    if (this.#last !== null && this.#last.systemText === systemText) return this.#last;
    const systemJson = systemText === null ? '' : `${JSON.stringify(systemMessage(systemText))},`;
    const parametersJson = JSON.stringify(this.#parameters).slice(1);
    const beforeText = `{"model":${JSON.stringify(this.#model)},"messages":[${systemJson}{"role":"user","content":`;
    const afterText = parametersJson === '}' ? '}]}' : `}],${parametersJson}`;
    this.#last = {
      model: this.#model,
      outputCap: outputCapOf(this.#parameters),
      serviceTier: serviceTierOf(this.#parameters),
      systemText,
      beforeText,
      afterText,
      digest: digest(beforeText + afterText),
    };
    return this.#last;
  }
}

const NONE: readonly Attachment[] = [];

/** What the frame says of a request, whatever its message is. */
abstract class FramedRequest {
  readonly endpoint = 'chat';
  readonly groupKey = null;
  readonly inputs = 1;

  constructor(protected readonly frame: Frame) {}

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

  /** @param content of the user's message, as JSON */
  protected bodyAround(content: string): string {
    return this.frame.beforeText + content + this.frame.afterText;
  }
}

export class RecordRequest extends FramedRequest implements RenderedRequest {
  readonly #text: string;

  constructor(frame: Frame, text: string) {
    super(frame);
    this.#text = text;
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

/** A record's request whose message has images: its texts and attachments in the template's order. */
export class PartsRequest extends FramedRequest implements RenderedRequest {
  readonly #parts: readonly (string | Attachment)[];

  constructor(frame: Frame, parts: readonly (string | Attachment)[]) {
    super(frame);
    this.#parts = parts;
  }

  get inputText(): string {
    return this.withSystemText(this.#parts.filter((part) => typeof part === 'string').join('\n'));
  }

  get attachments(): readonly Attachment[] {
    return this.#parts.filter((part) => typeof part !== 'string');
  }

  get bodyJson(): string {
    const content = this.#parts.map((part) =>
      typeof part === 'string' ? { type: 'text', text: part } : attachmentPart(part),
    );
    return this.bodyAround(JSON.stringify(content));
  }

  /** The colon, which no digest has, tells it from that of a text. */
  get fingerprint(): string {
    const parts = this.#parts.map((part) => (typeof part === 'string' ? part : [part.kind, part.identity]));
    return `parts:${this.frame.digest}${JSON.stringify(parts)}`;
  }
}
