/** The user's wish to stop, as a use case sees it: the first asks for a good end, the second for one now. */
export interface StopRequests {
  /** How often the user has asked so far. */
  readonly count: number;
  /** Calls back with 1, 2, …; at once when the user has asked already. @returns stops listening */
  subscribe(listener: (count: number) => void): () => void;
}
