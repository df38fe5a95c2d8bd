/** HTML that cannot be broken into: what is filled into a template is escaped, unless it is markup of ours. */

/** A piece of HTML that is safe as it stands. */
export class Markup {
  constructor(readonly text: string) {}
}

type Filling = Markup | readonly Markup[] | string | number | null;

/** Fillings are escaped, markup goes in as it is, null is left out. Attribute values must stand in double quotes. */
export function html(parts: TemplateStringsArray, ...fillings: readonly Filling[]): Markup {
  let text = parts[0] ?? '';
  fillings.forEach((filling, index) => {
    text += textOf(filling) + (parts[index + 1] ?? '');
  });
  return new Markup(text);
}

function textOf(filling: Filling): string {
  if (filling === null) return '';
  if (filling instanceof Markup) return filling.text;
  if (typeof filling === 'object') return filling.map((part) => part.text).join('\n');
  return escaped(String(filling));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/**
 * JSON for a script element that is never run. Nothing in it can end the element or open a comment: HTML Standard,
 * 4.12.1.3 "Restrictions for contents of script elements".
 */
export function embeddedJson(value: unknown): Markup {
  return new Markup(JSON.stringify(value).replaceAll('<', '\\u003c'));
}
