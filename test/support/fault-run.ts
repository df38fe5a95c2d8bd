/**
 * A run that meets faults: started, killed, resumed, until it is done, with everything written down that its lives
 * have said, so that afterwards the invariants can be held against it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsOf, type SentDocument, violationsOf } from './invariants.js';
import type { ProgramEnd, ProgramOptions, RunningProgram } from './program.js';
import type { SimulatorProcess } from './simulator-process.js';
import { readStore, type StoredFacts } from './stored-facts.js';
import { Workspace } from './workspace.js';

/** In the environment of every life, and nowhere else. */
export const PLANTED_KEY = 'sk-planted-Hd7QmX2vTn9LbRzW4sKcYe8G';
const TRACES = [PLANTED_KEY.slice(3, 27), Buffer.from(PLANTED_KEY).toString('base64').slice(4, 30)];

export interface FaultRunOptions {
  readonly simulator: SimulatorProcess;
  readonly documents: number | readonly SentDocument[];
  readonly concurrency: number;
  /** Flags of every life. */
  readonly flags?: readonly string[];
}

export type LifeOptions = Omit<ProgramOptions, 'folder'> & {
  /** Prints each answer when it is committed; default true. */
  readonly prints?: boolean;
};

let runs = 0;

export class FaultRun {
  readonly workspace = new Workspace();
  readonly simulator: SimulatorProcess;
  readonly documents: readonly SentDocument[];
  readonly concurrency: number;
  readonly ends: ProgramEnd[] = [];
  /** Whole lines of all lives. */
  readonly printed: string[] = [];
  readonly #flags: readonly string[];

  constructor({ simulator, documents, concurrency, flags = [] }: FaultRunOptions) {
    this.simulator = simulator;
    this.concurrency = concurrency;
    this.#flags = flags;
    // Runs may share a server, whose books must tell their documents apart.
    runs += 1;
    const prefix = `${process.pid}.${runs}`;
    this.documents =
      typeof documents === 'number'
        ? Array.from({ length: documents }, (_, index) => ({
            id: `doc-${index + 1}`,
            text: `Document ${index + 1} of run ${prefix}.`,
          }))
        : documents;
    this.workspace.writeDocuments('docs.jsonl', this.documents);
  }

  /** Starts `run docs.jsonl` or `resume`; what it says is kept when it ends. */
  start(command: 'run' | 'resume', { prints = true, ...options }: LifeOptions = {}): RunningProgram {
    const args = [
      ...(command === 'run' ? ['run', 'docs.jsonl'] : ['resume']),
      ...['--base-url', this.simulator.url, '--concurrency', String(this.concurrency)],
      ...(prints ? ['-o', '-', '--only-new'] : []),
      ...this.#flags,
    ];
    const environment = { OPENAI_API_KEY: PLANTED_KEY, ...options.environment };
    const program = this.workspace.start(args, { ...options, environment });
    const ended = program.ended.then((end) => {
      this.ends.push(end);
      if (prints) this.printed.push(...wholeLines(end.stdout));
      return end;
    });
    return { ...program, ended };
  }

  live(command: 'run' | 'resume', options: LifeOptions = {}): Promise<ProgramEnd> {
    return this.start(command, options).ended;
  }

  /** A last life without faults. An import that was cut off is run again, as the program asks for. */
  async finish(options: LifeOptions = {}): Promise<ProgramEnd> {
    const end = await this.live('resume', options);
    return end.exitCode === 2 || end.exitCode === 5 ? this.live('run', options) : end;
  }

  stored(): StoredFacts {
    return readStore(this.workspace.storePath);
  }

  /** Calls that the server has seen so far. */
  async calls(): Promise<number> {
    return callsOf(this.documents, await this.simulator.books());
  }

  /** @param extraCalls beyond one for each document, that the faults account for */
  async violations(extraCalls: number, finished = true): Promise<string[]> {
    const store = this.stored();
    await this.workspace.run(['results', '-o', 'checked.jsonl', '--force']);
    const written = store.tasks.some(({ state }) => state === 'completed')
      ? wholeLines(this.workspace.read('checked.jsonl'))
      : [];
    const violations = violationsOf({
      documents: this.documents,
      printed: this.printed,
      store,
      written,
      books: await this.simulator.books(),
      mostCalls: this.documents.length + extraCalls,
      finished,
    });
    return [...violations, ...this.#leaks()];
  }

  remove(): void {
    this.workspace.remove();
  }

  /** A key on the disk or on a screen is read by whoever sees these. */
  #leaks(): string[] {
    const places = new Map(this.ends.map((end, index) => [`life ${index + 1}`, end.stdout + end.stderr]));
    const names = readdirSync(this.workspace.folder, { recursive: true, encoding: 'utf8' });
    for (const name of names) {
      try {
        places.set(name, readFileSync(join(this.workspace.folder, name), 'latin1'));
      } catch {} // A folder.
    }
    return [...places].flatMap(([place, text]) =>
      TRACES.some((trace) => text.includes(trace)) ? [`the key is in ${place}`] : [],
    );
  }
}

/** The last line of a program that was killed may have been cut. */
export function wholeLines(text: string): string[] {
  return text.split('\n').slice(0, -1);
}
