/** What is wrong with a line of the input, with the flags that could let it through. */

const WITH_FLAGS: readonly (readonly [words: RegExp, withFlags: string])[] = [
  [/( over the cap of \d+)$/, '$1 (--max-line-bytes)'],
  [/^(the id field .*?) is missing;/, '$1 (--id-field) is missing;'],
  [/ where the limit lets /, ' where --tpm lets '],
  [/ for which the prompt is not used$/, ' for which --prompt is not used'],
  [/( in a prompt: )(?='…\{\{)/, ' with --prompt '],
  [
    /whole requests may be sent without the prompt$/,
    '--requests-as-they-are sends whole requests without the prompt',
  ],

  [
    /(, which lies outside [^;]*)$/,
    '$1; --image-folder names another folder, --allow-any-path takes files from anywhere',
  ],
];

export function lineReason(reason: string): string {
  const found = WITH_FLAGS.find(([words]) => words.test(reason));
  return found === undefined ? reason : reason.replace(...found);
}
