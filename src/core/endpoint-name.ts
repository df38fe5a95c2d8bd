/** The endpoints there are, as `--endpoint` names them. */
export const ENDPOINT_NAMES = ['chat', 'responses', 'embeddings', 'completions', 'moderations'] as const;

export type EndpointName = (typeof ENDPOINT_NAMES)[number];

/** Of runs that do not say theirs. */
export const DEFAULT_ENDPOINT: EndpointName = 'chat';
