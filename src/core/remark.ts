/** What a document shows that its user may not have meant. It is sent all the same. */
export type RemarkKind = 'empty_field' | 'foreign_template' | 'assistant_last' | 'template_unused';

export interface Remark {
  readonly kind: RemarkKind;
  /** Of the document. */
  readonly line: number;
  /** One clause. */
  readonly message: string;
}
