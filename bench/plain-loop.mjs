// The loop a user would write: p-limit over the SDK's default fetch, results appended to a file. The peer of calls.mjs.
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import OpenAI from 'openai';
import pLimit from 'p-limit';

const [baseURL, input, output, concurrency] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'none' });
const limit = pLimit(Number(concurrency));
const results = createWriteStream(output);
const calls = [];
for await (const line of createInterface({ input: createReadStream(input) })) {
  const document = JSON.parse(line);
  calls.push(
    limit(async () => {
      const answer = await client.chat.completions.create({
        model: 'gpt-4o-mini',
        messages: [{ role: 'user', content: `Classify: ${document.text}` }],
      });
      results.write(`${JSON.stringify({ id: document.id, output: answer.choices[0].message.content })}\n`);
    }),
  );
}
await Promise.all(calls);
results.end();
