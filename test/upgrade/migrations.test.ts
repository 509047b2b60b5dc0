import { describe, expect, test } from 'vitest';
import { convertStep } from '../../src/upgrade/migrations/step-parameters.ts';

const step = (parameters: string) => `import { defineStep } from '../step.ts';
import type { CogOptions } from '../../raster/cog.ts';

export default defineStep<{ a: string; b: number }>({
  id: 'mine',
  parameters: ${parameters},
  input: { description: 'x', synthetic: 'elevation' },
});
`;

describe("a step's parameters of 0.1.0", () => {
  test('become those of 0.2.0, every value as it was written', () => {
    const { text, problem } = convertStep(
      step(`{
    a: { type: 'string', title: 'A, of all', description: "It's (a)", enum: ['x', 'y'], default: 'x' },
    b: { type: 'integer', title: \`B\`, description: 'n', minimum: -limits.low, maximum: 1_000 },
    c: { type: 'integer', title: 'C', description: 'n', enum: [256, 512], default: 512 },
    d: { type: 'string', title: 'D', description: 'n', minLength: 1, maxLength: 64, pattern: '^a' },
    e: { type: 'boolean', title: 'E', description: 'n', default: false },
    f: { type: 'number', title: 'F', description: 'n' },
  }`),
    );
    expect(problem).toBeNull();
    expect(text).toContain(`a: z.enum(['x', 'y']).default('x').meta({ title: 'A, of all', description: "It's (a)" }),`);
    expect(text).toContain("b: z.int().min(-limits.low).max(1_000).meta({ title: `B`, description: 'n' }),");
    expect(text).toContain("c: z.literal([256, 512]).default(512).meta({ title: 'C', description: 'n' }),");
    expect(text).toContain("d: z.string().min(1).max(64).regex(new RegExp('^a')).meta(");
    expect(text).toContain('e: z.boolean().default(false).meta(');
    expect(text).toContain('f: z.number().meta(');
    expect(text).toContain("import { defineStep, z } from '../../../index.ts';");
    expect(text).toContain("from '../../../raster/cog.ts'");
    expect(text).toContain('export default defineStep({');
  });

  test.each([
    '{ ...shared }',
    '{ a: makeParameter() }',
    "{ a: { type: 'string', format: 'date' } }",
    "{ a: { type: 'array' } }",
    '{ a: { ...b } }',
  ])('%s stays as it is, and is told', (parameters) => {
    const { text, problem } = convertStep(step(parameters));
    expect(problem).toMatch(/z\.object/);
    expect(text).toContain(`parameters: ${parameters},`);
  });

  test('a step that has moved already is left alone', () => {
    const moved = convertStep(step('{}')).text;
    expect(convertStep(moved)).toMatchObject({ text: moved });
  });
});
