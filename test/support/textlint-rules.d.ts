/** Types of textlint rules that ship without any. */
declare module 'textlint-rule-terminology' {
  const rule: import('@textlint/types').TextlintRuleModule;
  export default rule;
}
declare module 'textlint-rule-en-max-word-count' {
  const rule: import('@textlint/types').TextlintRuleModule;
  export default rule;
}
