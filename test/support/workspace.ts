/** A folder of a user's own: inputs are put there, the program is run there, and what it left is read back. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import {
  jsonLines,
  type ProgramEnd,
  type ProgramOptions,
  type RunningProgram,
  startProgram,
  temporaryFolder,
} from './program.js';

/** What `status --json` says, as far as tests look at it. */
export interface StatusReport {
  readonly run: string;
  readonly status: string;
  readonly halt_reason: string | null;
  readonly drained_by: { readonly pid: number; readonly host: string } | null;
  readonly documents: Readonly<Record<string, number>>;
  readonly failed_by_kind: Readonly<Record<string, number>>;
  readonly calls: {
    readonly made: number;
    readonly open: number;
    readonly failed: number;
    readonly repeated: number;
  };
}

export interface ResultLine {
  readonly id: string;
  readonly line: number;
  readonly status: string;
  readonly output: string;
  readonly attempts: number;
  readonly request_id: string;
  readonly error?: { readonly kind: string; readonly message: string };
}

type RunOptions = Omit<ProgramOptions, 'folder'>;

export class Workspace {
  readonly #folder = temporaryFolder();

  get folder(): string {
    return this.#folder.path;
  }

  get storePath(): string {
    return this.path('llm-batch.db');
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, content: string | Uint8Array): string {
    writeFileSync(this.path(name), content);
    return name;
  }

  /** @returns the file's name, as the program is to be told */
  writeDocuments(name: string, documents: readonly object[]): string {
    return this.write(name, documents.map((document) => `${JSON.stringify(document)}\n`).join(''));
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  readLines<Line = ResultLine>(name: string): Line[] {
    return jsonLines<Line>(this.read(name));
  }

  start(args: readonly string[], options: RunOptions = {}): RunningProgram {
    return startProgram(args, { ...options, folder: this.folder });
  }

  run(args: readonly string[], options: RunOptions = {}): Promise<ProgramEnd> {
    return this.start(args, options).ended;
  }

  async status(...args: readonly string[]): Promise<StatusReport> {
    const { stdout, stderr } = await this.run(['status', '--json', ...args]);
    if (stdout === '') throw new Error(`status says nothing: ${stderr}`);
    return JSON.parse(stdout) as StatusReport;
  }

  /** Read from the store by the program itself. */
  async results(...args: readonly string[]): Promise<ResultLine[]> {
    const { stdout } = await this.run(['results', '-o', '-', ...args]);
    return jsonLines<ResultLine>(stdout);
  }

  /** As a process left it that died at an odd moment. */
  change(sql: string): void {
    const database = new Database(this.storePath);
    try {
      database.exec(sql);
    } finally {
      database.close();
    }
  }

  /** A look into the store without the program. */
  query<Row>(sql: string): Row[] {
    const database = new Database(this.storePath, { readonly: true });
    try {
      return database.prepare<[], Row>(sql).all();
    } finally {
      database.close();
    }
  }

  /** `ok` for a sound store. */
  integrity(): string {
    return this.query<{ integrity_check: string }>('PRAGMA integrity_check')
      .map((row) => row.integrity_check)
      .join('\n');
  }

  removeFile(name: string): void {
    rmSync(this.path(name));
  }

  remove(): void {
    this.#folder.remove();
  }
}

/** `count` short texts, each different, with ids `doc-1`, `doc-2`, … */
export function numberedDocuments(count: number): { id: string; text: string }[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `doc-${index + 1}`,
    text: `This is document number ${index + 1}.`,
  }));
}

/** What the simulator answers to a document that is sent as it is, without a template. */
export function answerTo(text: string): string {
  return simulatedAnswer({ messages: [{ role: 'user', content: text }] }).text;
}
