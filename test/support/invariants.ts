/**
 * What must hold after any fault, found out from three witnesses that share no code: the server's books, the store
 * read by our own SQL, and what was printed or written. Each rule says what a user would lose if it did not hold.
 */
import { simulatedAnswer } from '../../src/simulator/answer.js';
import type { SimulatorBooks } from '../../src/simulator/books.js';
import { jsonLines } from './program.js';
import type { StoredFacts } from './stored-facts.js';
import type { ResultLine } from './workspace.js';

export interface SentDocument {
  readonly id: string;
  readonly text: string;
}

export interface Evidence {
  readonly documents: readonly SentDocument[];
  /** Whole lines that any life of the program has printed with `-o -`: the answers it has acknowledged. */
  readonly printed: readonly string[];
  readonly store: StoredFacts;
  /** The lines of a results file written from the store. */
  readonly written: readonly string[];
  readonly books: Pick<SimulatorBooks, 'callsByDocument' | 'defect'>;
  /** Calls that the server may have seen at most: one a document and what the faults account for. */
  readonly mostCalls: number;
  /** Nothing more is to come. */
  readonly finished: boolean;
}

/** @returns a sentence for each rule that is broken; none when all is well */
export function violationsOf(evidence: Evidence): string[] {
  return [
    ...soundStore(evidence),
    ...everyDocumentOnce(evidence),
    ...everyPrintedAnswerIsKept(evidence),
    ...everyAnswerIsItsOwn(evidence),
    ...theFileSaysTheSame(evidence),
    ...noCallIsWasted(evidence),
  ];
}

/** A damaged file loses everything at some later time; wrong counts make `status` lie and a run end too early. */
function soundStore({ store }: Evidence): string[] {
  const found: string[] = [];
  if (store.integrity !== 'ok') found.push(`the store is damaged: ${store.integrity}`);
  if (store.orphans > 0) found.push(`${store.orphans} rows point at nothing`);
  const counted = JSON.stringify(store.countedStates);
  if (counted !== JSON.stringify(store.states)) {
    found.push(`the counters say ${counted}, the tasks are ${JSON.stringify(store.states)}`);
  }
  return found;
}

/** Imported is promised: a document that is gone or there twice is work not done, or paid for twice. */
function everyDocumentOnce({ store, documents, finished }: Evidence): string[] {
  const found: string[] = [];
  const tasks = new Map<string, number>();
  for (const { key } of store.tasks) tasks.set(key, (tasks.get(key) ?? 0) + 1);
  for (const { id } of documents) {
    if (tasks.get(id) !== 1) found.push(`${id} is in the store ${tasks.get(id) ?? 0} times`);
  }
  if (store.tasks.length !== documents.length) {
    found.push(`${documents.length} documents became ${store.tasks.length} tasks`);
  }
  const settled = new Set(['completed', 'failed']);
  for (const { key, state, results } of store.tasks) {
    if (results !== (settled.has(state) ? 1 : 0)) found.push(`${key} is ${state} with ${results} results`);
    if (finished && state !== 'completed') found.push(`${key} ended as ${state}`);
  }
  return found;
}

/**
 * Printed is promised: whoever reads standard output acts on it. Answers to one document are alike, so it is the
 * request's id that tells whether the very answer that was printed is the one that was kept.
 */
function everyPrintedAnswerIsKept({ printed, store }: Evidence): string[] {
  const kept = new Map(store.tasks.map((task) => [task.key, task]));
  const found: string[] = [];
  for (const line of printed) {
    const { id, output, request_id } = JSON.parse(line) as ResultLine;
    const task = kept.get(id);
    if (task?.state !== 'completed')
      found.push(`${id} was printed and is ${task?.state ?? 'not in the store'}`);
    else if (task.outputJson !== JSON.stringify(output) || task.requestId !== request_id) {
      found.push(`${id} was printed from ${request_id}, and kept from ${task.requestId}`);
    }
  }
  if (new Set(printed).size !== printed.length) found.push('an answer was printed twice');
  return found;
}

/** An answer under another document's id is worse than none. The server's answer is a function of the document. */
function everyAnswerIsItsOwn({ store, documents }: Evidence): string[] {
  const texts = new Map(documents.map(({ id, text }) => [id, text]));
  return store.tasks.flatMap(({ key, outputJson }) => {
    const text = texts.get(key);
    if (outputJson === null || text === undefined) return [];
    return outputJson === JSON.stringify(answerOf(text).text) ? [] : [`${key} has the answer ${outputJson}`];
  });
}

/** The file is what the user came for: every answer of the store, each once, in the order of the input. */
function theFileSaysTheSame({ written, store, printed }: Evidence): string[] {
  const completed = store.tasks.filter(({ state }) => state === 'completed').map(({ key }) => key);
  const lines = jsonLines<ResultLine>(written.join('\n'));
  const found: string[] = [];
  if (JSON.stringify(lines.map(({ id }) => id)) !== JSON.stringify(completed)) {
    found.push(`the store holds ${completed.length} answers, the file ${lines.length}, or in another order`);
  }
  const whole = new Set(written);
  for (const line of printed) if (!whole.has(line)) found.push(`printed, but not in the file: ${line}`);
  return found;
}

/** A call that is repeated is paid for twice; a call that the ledger does not know is paid for and not counted. */
function noCallIsWasted({ books, store, documents, mostCalls, finished }: Evidence): string[] {
  const calls = callsOf(documents, books);
  const found: string[] = [];
  if (calls > mostCalls) found.push(`the server saw ${calls} calls, ${mostCalls} at most were to come`);
  if (calls > store.calls.made) found.push(`the server saw ${calls} calls, the ledger ${store.calls.made}`);
  if (finished && store.calls.open > 0) found.push(`${store.calls.open} calls are open in the ledger`);
  if (books.defect !== null) found.push(`the server is no witness: ${books.defect}`);
  for (const { key, outputJson } of store.tasks) {
    const document = documents.find(({ id }) => id === key);
    if (outputJson !== null && document !== undefined && callsOf([document], books) === 0) {
      found.push(`${key} has an answer that nobody was asked for`);
    }
  }
  return found;
}

/** Calls that the server saw of these documents. */
export function callsOf(
  documents: readonly SentDocument[],
  { callsByDocument }: Pick<SimulatorBooks, 'callsByDocument'>,
): number {
  return documents.reduce((sum, { text }) => sum + (callsByDocument[answerOf(text).fingerprint] ?? 0), 0);
}

function answerOf(text: string) {
  return simulatedAnswer({ messages: [{ role: 'user', content: text }] });
}
