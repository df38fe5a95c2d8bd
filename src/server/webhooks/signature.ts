/** Standard Webhooks (standardwebhooks.com, specification 1.0): how a receiver knows that a message is ours. */
import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';
const FEWEST_BYTES = 24;
const MOST_BYTES = 64;

/**
 * @param text secrets of the form `whsec_…`, with spaces or commas between: while they are changed there are two
 * @throws RangeError that says what is wrong, and not what was given
 */
export function readSecrets(text: string | undefined): Buffer[] {
  return (text ?? '')
    .split(/[\s,]+/)
    .filter((secret) => secret !== '')
    .map((secret) => {
      const bytes = Buffer.from(secret.slice(PREFIX.length), 'base64');
      const isWhole =
        bytes.toString('base64').replace(/=+$/, '') === secret.slice(PREFIX.length).replace(/=+$/, '');
      if (!secret.startsWith(PREFIX) || !isWhole) throw new RangeError(`must be ${PREFIX} and base64`);
      if (bytes.length < FEWEST_BYTES || bytes.length > MOST_BYTES) {
        throw new RangeError(`must hold ${FEWEST_BYTES} to ${MOST_BYTES} bytes, and holds ${bytes.length}`);
      }
      return bytes;
    });
}

export interface SignedMessage {
  readonly messageId: string;
  /** Of this try, in seconds since the epoch. */
  readonly timestamp: number;
  /** The very bytes that are sent. */
  readonly body: string;
}

/** @returns the headers of a message; one signature for each secret */
export function signatureHeaders(
  secrets: readonly Buffer[],
  { messageId, timestamp, body }: SignedMessage,
): Record<string, string> {
  const signed = `${messageId}.${timestamp}.${body}`;
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`,
  );
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
