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
  readonly filesUploaded: number;
  readonly bytesUploaded: number;
  readonly filesDeleted: number;
  /** Times that a file's content was sent to its end. */
  readonly filesFetched: number;
  /** In the order of their creation. */
  readonly batches: readonly Readonly<BatchEntry>[];
  /** In the order of their creation. Their tokens are those of calls. */
  readonly responses: readonly Readonly<ResponseEntry>[];
  /** Lines that were run and billed, those included whose answer was lost afterwards. */
  readonly linesRun: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** At half the price; 0 where the simulator has no prices. */
  readonly costUsd: number;
}

export class RemoteLedger {
  readonly batches: BatchEntry[] = [];
  readonly responses: ResponseEntry[] = [];
  filesUploaded = 0;
  bytesUploaded = 0;
  filesDeleted = 0;
  filesFetched = 0;
  linesRun = 0;
  promptTokens = 0;
  completionTokens = 0;
  costUsd = 0;

  snapshot(): RemoteBooks {
    return {
      filesUploaded: this.filesUploaded,
      bytesUploaded: this.bytesUploaded,
      filesDeleted: this.filesDeleted,
      filesFetched: this.filesFetched,
      batches: this.batches.map(
        ({ id, metadata, inputFileId, endpoint, model, status, total, completed, failed }) => ({
          id,
          metadata,
          inputFileId,
          endpoint,
          model,
          status,
          total,
          completed,
          failed,
        }),
      ),
      responses: this.responses.map((response) => ({ ...response })),
      linesRun: this.linesRun,
      promptTokens: this.promptTokens,
      completionTokens: this.completionTokens,
      costUsd: this.costUsd,
    };
  }
}
