/** The formats that documents come in. */
export const INPUT_FORMATS = ['jsonl', 'csv', 'tsv', 'text', 'parquet', 'sqlite'] as const;

export type InputFormat = (typeof INPUT_FORMATS)[number];
