interface Comment {
  readonly type: string;
  readonly value: string;
  readonly loc: { readonly start: { readonly line: number }; readonly end: { readonly line: number } };
}

interface Context {
  readonly sourceCode: { getAllComments(): readonly Comment[] };
  report(problem: { loc: Comment['loc']; messageId: string; data: Readonly<Record<string, string>> }): void;
}

const first = /^[\s*]*(What|Whatever|Of|Where|As|Whose|Which|Whether|How|Why|Who|Whoever)\b/;

/** A comment begins with a noun, a verb or a condition, so that it can be read without the name below it. */
export const plainComments = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { opening: 'a comment must not begin with "{{word}}": name the thing first, or say "if"' },
  },
  create: (context: Context) => ({
    Program() {
      let before: Comment | undefined;
      for (const comment of context.sourceCode.getAllComments()) {
        const [, word] = first.exec(comment.value) ?? [];
        // A line comment may continue the sentence of the line above it.
        const goesOn =
          comment.type === 'Line' &&
          before?.type === 'Line' &&
          before.loc.end.line === comment.loc.start.line - 1 &&
          !/[.:!?)]$/.test(before.value.trim());
        if (word !== undefined && !goesOn) context.report({ loc: comment.loc, messageId: 'opening', data: { word } });
        before = comment;
      }
    },
  }),
};
