/** POST /v1/completions, without streaming and with one choice a prompt: goes on with a prompt as a chat answers it. */
import type { Json, JsonObject } from '../core/json.js';
import { outputCapOf, type SimulatedAnswer, simulatedAnswer } from './answer.js';
import { costUsdOf, say, servedTier, usageOf } from './chat-completions.js';
import type { AnswerStamp, AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import { type Input, inputsOf, inquireInputs, listWithFault, tokensOf } from './inputs.js';
import type { SimulatorSettings } from './options.js';
import { faultOfChoices, faultOfModel, invalidRequest, type Refusal } from './refusal.js';

/** As OpenAI's API reference has it. */
const DEFAULT_CAP = 16;

export const completions: Endpoint = {
  path: '/v1/completions',
  read(requestBody, settings) {
    return faultOfModel(requestBody) ?? faultOf(requestBody) ?? understand(requestBody, settings);
  },
};

/** What the simulator makes of a prompt. */
export function simulatedCompletion(
  prompt: Input,
  requestBody: JsonObject,
  settings: AnswerSettings,
): SimulatedAnswer {
  const answer = simulatedAnswer(
    {
      model: requestBody['model'] ?? null,
      max_tokens: outputCapOf(requestBody) ?? DEFAULT_CAP,
      messages: [{ role: 'user', content: prompt }],
    },
    settings,
  );
  return { ...answer, promptTokens: tokensOf(prompt) };
}

type AnswerSettings = Parameters<typeof simulatedAnswer>[1];

function faultOf(requestBody: JsonObject): Refusal | null {
  const prompts = inputsOf(requestBody['prompt'] ?? null);
  if (prompts === null || prompts.length === 0 || prompts.some((each) => each.length === 0)) {
    return invalidRequest("'$.prompt' is invalid. Please check the API reference.", 'prompt', null);
  }
  return faultOfChoices(requestBody);
}

function understand(requestBody: JsonObject, settings: SimulatorSettings): Inquiry {
  const { inputs, lead, ...asked } = inquireInputs(requestBody['prompt'] ?? null);
  const answers = inputs.map((prompt) => simulatedCompletion(prompt, requestBody, settings));
  const completionTokens = answers.reduce((sum, answer) => sum + answer.completionTokens, 0);
  const whole = { promptTokens: asked.promptTokens, completionTokens };
  const costUsd = costUsdOf(whole, settings.prices);
  const model = String(requestBody['model']);
  return {
    ...asked,
    model,
    completionTokens,
    outputCapTokens: (outputCapOf(requestBody) ?? DEFAULT_CAP) * inputs.length,
    costUsd,
    render: (variant, stamp) => ({
      id: `cmpl-simulated-${stamp.callNumber}`,
      object: 'text_completion',
      created: stamp.createdSeconds,
      model: `simulated/${model}`,
      choices: choicesOf(answers, lead, variant, stamp),
      service_tier: servedTier(requestBody['service_tier']),
      ...(variant !== 'without_usage' && { usage: usageOf(whole, costUsd) }),
    }),
  };
}

/** @param lead the prompt that a fault is meant for */
function choicesOf(
  answers: readonly SimulatedAnswer[],
  lead: number,
  variant: AnswerVariant,
  { callNumber }: AnswerStamp,
): Json[] {
  const choices = answers.map((answer, index): JsonObject => {
    const { content, refusal, finishReason } = say(answer, index === lead ? variant : 'whole');
    return { text: content ?? refusal, index, logprobs: null, finish_reason: finishReason };
  });
  return listWithFault(choices, lead, variant, callNumber, { text: 'Another text.' });
}
