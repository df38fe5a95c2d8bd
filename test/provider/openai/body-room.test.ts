/** The bodies of all open calls together stay within a bound, and the largest gives way. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BodyRoom } from '../../../src/provider/openai/body-room.js';
import { answerJson, completionText, openProvider, send, startServer, until } from './loopback.js';

describe('bodies that are too much together', () => {
  it('cost the largest its call, not the small one that comes last, over several providers', async () => {
    const bodyRoom = new BodyRoom(250_000);
    let waiting = 0;
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const servers = await Promise.all(
      [120_000, 100_000].map((characters) =>
        startServer((_request, response) => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.write(`{"choices":[{"message":{"content":"${'x'.repeat(characters)}`);
          waiting += 1;
          void finished.then(() => response.end('"},"finish_reason":"stop"}]}'));
        }),
      ),
    );
    const [largest, middle] = servers.map(({ baseUrl }) => send(openProvider(baseUrl, { bodyRoom })));
    await until(() => waiting === 2);
    const last = await startServer((_request, response) =>
      answerJson(response, completionText('y'.repeat(60_000))),
    );
    expect(await send(openProvider(last.baseUrl, { bodyRoom }))).toMatchObject({ ok: true });
    expect(await largest).toMatchObject({ ok: false, failure: { code: 'RESPONSE_TOO_LARGE' } });
    finish();
    expect(await middle).toMatchObject({ ok: true });

    // What was cut off and what was read no longer counts.
    const after = await startServer((_request, response) =>
      answerJson(response, completionText('z'.repeat(240_000))),
    );
    expect(await send(openProvider(after.baseUrl, { bodyRoom }))).toMatchObject({ ok: true });
  });

  it('are unpacked one after the other', async () => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(gzipSync(completionText('packed')));
    });
    let unpacking = 0;
    class WatchedRoom extends BodyRoom {
      override unpack<Result>(work: () => Promise<Result>): Promise<Result> {
        return super.unpack(async () => {
          unpacking += 1;
          expect(unpacking).toBe(1);
          const result = await work();
          unpacking -= 1;
          return result;
        });
      }
    }
    const provider = openProvider(server.baseUrl, { bodyRoom: new WatchedRoom() });
    const replies = await Promise.all(Array.from({ length: 4 }, () => send(provider)));
    expect(replies).toMatchObject(replies.map(() => ({ ok: true, parts: [{ text: 'packed' }] })));
  });
});
