/** The endpoints there are: one line each. */
import { CHAT } from './chat/chat.js';
import type { Endpoint, EndpointName } from './endpoint.js';

export const ENDPOINTS: Readonly<Record<EndpointName, Endpoint>> = { chat: CHAT };

export { bodyOfOldAnswer } from './chat/old-answer.js';
