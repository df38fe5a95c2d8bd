/**
 * What an image costs in tokens, by the rules that OpenAI's vision guide gives for each model family. The guide leaves out
 * some models, and other vendors have rules of their own, so the result is always an estimate.
 */
import type { ImageSize } from '../core/image-head.js';
import { bareModelName } from './encoding.js';

export type ImageDetail = 'low' | 'high' | 'original' | 'auto';

/** Fitted into 2,048 x 2,048, its short side brought to 768, and paid by 512-pixel tile. */
interface TileRule {
  readonly base: number;
  readonly perTile: number;
}

/** Paid by 32-pixel patch, and made smaller if it would need more patches than its budget. */
interface PatchRule {
  readonly tokensPerPatch: number;
  readonly budgetOf: (detail: ImageDetail) => PatchBudget;
}

interface PatchBudget {
  readonly patches: number;
  readonly longestSide: number;
}

const LOW: PatchBudget = { patches: 256, longestSide: 512 };
const USUAL: PatchBudget = { patches: 1_536, longestSide: 2_048 };
const HIGH: PatchBudget = { patches: 2_500, longestSide: 2_048 };
const ORIGINAL: PatchBudget = { patches: 10_000, longestSide: 6_000 };
const UNLIMITED: PatchBudget = { patches: Number.POSITIVE_INFINITY, longestSide: Number.POSITIVE_INFINITY };

const usualBudget = (detail: ImageDetail): PatchBudget => (detail === 'low' ? LOW : USUAL);

function budgets(auto: PatchBudget, original: PatchBudget): (detail: ImageDetail) => PatchBudget {
  return (detail) => ({ low: LOW, high: HIGH, original, auto })[detail];
}

/** The first match counts. */
const RULES: readonly (readonly [RegExp, TileRule | PatchRule])[] = [
  [/^gpt-4o-mini/, { base: 2_833, perTile: 5_667 }],
  [/^gpt-4\.1-mini|^gpt-5(?:\.\d+)?-mini/, { tokensPerPatch: 1.62, budgetOf: usualBudget }],
  [/^gpt-4\.1-nano|^gpt-5(?:\.\d+)?-nano/, { tokensPerPatch: 2.46, budgetOf: usualBudget }],
  [/^o4-mini/, { tokensPerPatch: 1.72, budgetOf: usualBudget }],
  [/^gpt-5\.4/, { tokensPerPatch: 1, budgetOf: budgets(HIGH, ORIGINAL) }],
  [/^gpt-5\.5/, { tokensPerPatch: 1, budgetOf: budgets(ORIGINAL, ORIGINAL) }],
  [/^gpt-5\.[6-9]|^gpt-[6-9]/, { tokensPerPatch: 1, budgetOf: budgets(UNLIMITED, UNLIMITED) }],
  [/^gpt-5\.[23]|codex/, { tokensPerPatch: 1, budgetOf: usualBudget }],
  [/^gpt-5/, { base: 70, perTile: 140 }],
  [/^o[13]/, { base: 75, perTile: 150 }],
  [/^computer-use/, { base: 65, perTile: 129 }],
];

/** gpt-4o, gpt-4.1 and gpt-4.5; also used for other vendors' models, for want of a better guess. */
const OTHER_MODELS: TileRule = { base: 85, perTile: 170 };
const OPENAI_MODELS = /^(?:gpt|chatgpt|o\d|codex|computer-use)/;

/** @param size null if unknown: then the most that an image of this detail can cost is taken */
export function imageTokens(model: string, size: ImageSize | null, detail: ImageDetail): number {
  const rule = ruleOf(bareModelName(model));
  return 'perTile' in rule ? tileTokens(rule, size, detail) : patchTokens(rule, size, detail);
}

/** Qwen-VL's cap on the patches of one image, the largest of the caps that open models publish. */
const MOST_OF_OTHER_VENDORS = 16_384;

/** The most that an image can cost, for budgets: by its model's rule, whatever the detail. */
export function mostImageTokens(model: string, size: ImageSize | null): number {
  const byRule = Math.max(
    imageTokens(model, null, 'high'),
    imageTokens(model, null, 'original'),
    imageTokens(model, size, 'original'),
  );
  return OPENAI_MODELS.test(bareModelName(model)) ? byRule : Math.max(byRule, MOST_OF_OTHER_VENDORS);
}

function ruleOf(name: string): TileRule | PatchRule {
  return RULES.find(([pattern]) => pattern.test(name))?.[1] ?? OTHER_MODELS;
}

const FIT = 2_048;
const SHORT_SIDE = 768;
const TILE = 512;

function tileTokens(rule: TileRule, size: ImageSize | null, detail: ImageDetail): number {
  if (detail === 'low') return rule.base;
  const { width, height } = size ?? { width: FIT, height: SHORT_SIDE };
  // Images are only ever made smaller, never blown up to fill more tiles.
  const fitted = Math.min(1, FIT / Math.max(width, height));
  const scale = fitted * Math.min(1, SHORT_SIDE / (Math.min(width, height) * fitted));
  const tiles = Math.ceil(Math.floor(width * scale) / TILE) * Math.ceil(Math.floor(height * scale) / TILE);
  return rule.base + rule.perTile * Math.max(1, tiles);
}

const PATCH = 32;

function patchTokens(rule: PatchRule, size: ImageSize | null, detail: ImageDetail): number {
  const budget = rule.budgetOf(detail);
  const patches = size === null ? Math.min(budget.patches, ORIGINAL.patches) : patchesOf(size, budget);
  return Math.ceil(patches * rule.tokensPerPatch);
}

function patchesOf(size: ImageSize, budget: PatchBudget): number {
  const fitted = Math.min(1, budget.longestSide / Math.max(size.width, size.height));
  let width = size.width * fitted;
  let height = size.height * fitted;
  if (covering(width) * covering(height) > budget.patches) {
    const shrunk = Math.sqrt((budget.patches * PATCH * PATCH) / (width * height));
    width *= shrunk;
    height *= shrunk;
    // Scaled once more, so that the side that loses least is a whole number of patches.
    const columns = width / PATCH;
    const rows = height / PATCH;
    const whole = Math.min(Math.floor(columns) / columns, Math.floor(rows) / rows);
    width *= whole;
    height *= whole;
  }
  return Math.min(budget.patches, Math.max(1, covering(width) * covering(height)));
}

/** Patches along a length; a hair above a whole number is a rounding error rather than another patch. */
function covering(length: number): number {
  return Math.ceil(length / PATCH - 1e-9);
}
