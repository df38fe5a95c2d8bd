/** What a store on a thread of its own and whoever uses it say to each other. */
import type { CarriedError } from '../../core/carried-error.js';
import type { MigrationStep } from '../store.js';
import type { OpenDatabaseOptions } from './database.js';

/** What the thread is started with. */
export interface ThreadOptions extends Pick<OpenDatabaseOptions, 'mode' | 'create' | 'workingFolder'> {
  readonly path: string;
}

/** What a port is made of. */
export interface PortShape {
  /** What never changes, by name. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly methods: readonly string[];
  /** The ports in it, by name. */
  readonly parts: Readonly<Record<string, PortShape>>;
}

export interface ToThread {
  readonly id: number;
  /** With the parts that it is in: `remote.settle`. */
  readonly method: string;
  readonly parameters: readonly unknown[];
}

/** Of the answer to how the thread was started: the shape of the store. */
export const OPENING_ID = 0;

export type FromThread =
  | { readonly migration: MigrationStep }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: CarriedError };
