/** A part of a request that is no text: an image or a PDF, from a local file, a URL or a data URL. */
import { type ImageSize, type MediaType, sizeOfDataUrl } from './image-head.js';

/** Where documents may name files. */
export interface ImagePlace {
  /** What relative paths start from. */
  readonly folder: string;
  /** Files outside the folder are taken too. */
  readonly isOpen: boolean;
}

export interface AttachedFile {
  /** As the document gives it. */
  readonly path: string;
  readonly absolutePath: string;
  readonly place: ImagePlace;
  readonly mediaType: MediaType;
  /** Null for a PDF and where the head does not tell it. */
  readonly size: ImageSize | null;
  readonly bytes: number;
  /** Whole milliseconds since the epoch. */
  readonly changedAtMs: number;
}

export interface Attachment {
  readonly kind: 'image' | 'pdf';
  /** As it stands in the body; of a file, what holds the place of its bytes until the call is sent. */
  readonly url: string;
  /** In pixels; null where it is not known. */
  readonly size: ImageSize | null;
  /** Of the image or the PDF itself, not of its base64; 0 where it is not known. */
  readonly bytes: number;
  /** Null: `url` is sent as it is. */
  readonly file: AttachedFile | null;
  /** The document's field that names it, for messages. */
  readonly field: string;
  /**
   * What the request's hash covers. Of a file its path as given, its size and its time of change, as make and rsync
   * tell a file that was edited: to hash what is in it, every import would have to read every picture.
   */
  readonly identity: string;
}

/** What a URL that is sent as it is tells of its attachment. */
export function attachedUrl(url: string): Omit<Attachment, 'field' | 'identity'> {
  const kind = /^data:application\/pdf[;,]/i.test(url) ? 'pdf' : 'image';
  const size = kind === 'pdf' ? null : sizeOfDataUrl(url);
  const bytes = Math.floor((Math.max(0, url.length - url.indexOf(',') - 1) * 3) / 4);
  return { kind, url, size, bytes, file: null };
}
