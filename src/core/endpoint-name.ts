/** The endpoints there are, as `--endpoint` names them. */
export const ENDPOINT_NAMES = ['chat'] as const;

export type EndpointName = (typeof ENDPOINT_NAMES)[number];

/** Of records and of requests that do not say theirs. */
export const DEFAULT_ENDPOINT: EndpointName = 'chat';
