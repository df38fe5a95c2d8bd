/** What the books hold of files, batches and background responses. Their lines are the documents' too: see `Books.acceptLine`. */

/** One batch, as it stands. */
export interface BatchEntry {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly inputFileId: string;
  readonly endpoint: string;
  /** Of its first line; null before it was read. */
  model: string | null;
  /** OpenAI's word, whatever the dialect makes of it. */
  status: string;
  total: number;
  completed: number;
  failed: number;
}

/** A response that was asked for in the background, as it stands. */
export interface ResponseEntry {
  readonly id: string;
  /** Fingerprint of the document that it was created for. */
  readonly document: string;
  /** OpenAI's word; an expired one keeps its last. */
  status: string;
  /** Billed; 0 where it is not done or the simulator has no prices. */
  costUsd: number;
  isDeleted: boolean;
}

export interface RemoteBooks {
  /** Whole ones. */
  filesUploaded: number;
  bytesUploaded: number;
  filesDeleted: number;
  /** Times that a file's content was sent to its end. */
  filesFetched: number;
  /** In the order of their creation. */
  readonly batches: BatchEntry[];
  /** In the order of their creation. Their tokens are those of calls. */
  readonly responses: ResponseEntry[];
  /** Lines that were run and billed, those included whose answer was lost afterwards. */
  linesRun: number;
  promptTokens: number;
  completionTokens: number;
  /** At half the price; 0 where the simulator has no prices. */
  costUsd: number;
}

/** New ones, in which nothing is written. */
export function remoteBooks(): RemoteBooks {
  const files = { filesUploaded: 0, bytesUploaded: 0, filesDeleted: 0, filesFetched: 0 };
  const lines = { linesRun: 0, promptTokens: 0, completionTokens: 0, costUsd: 0 };
  return { ...files, batches: [], responses: [], ...lines };
}

/** As they are now. */
export function snapshotOf({ batches, responses, ...totals }: RemoteBooks): RemoteBooks {
  const copied = <Entry extends object>(entries: readonly Entry[]) => entries.map((entry) => ({ ...entry }));
  return { ...totals, batches: copied(batches), responses: copied(responses) };
}
