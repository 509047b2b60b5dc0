import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';
import { namedAssumptions } from './scripts/lint/named-assumptions.ts';

/** Integrators use the app or the sandbox alone, so neither imports the other. `.dependency-cruiser.mjs` has the rules of all rooms. */
function separates(room, other) {
  return {
    files: [`src/${room}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: `^(\\.\\./)+${other}(/|$)`, message: `${room} imports nothing from ${other}` }] },
      ],
    },
  };
}

export default tseslint.config(
  { ignores: ['node_modules/', 'data/', 'coverage/', 'dist/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowNullish: true },
      ],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/ban-ts-comment': ['error', { 'ts-ignore': 'allow-with-description' }],
    },
  },
  {
    // They run where they are loaded: what stands below the first await is not there yet.
    files: ['src/commands/*.ts', 'lab/bench/*.ts', 'lab/drill/run.ts'],
    rules: {
      '@typescript-eslint/no-use-before-define': ['error', { functions: false, classes: false, typedefs: false }],
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { kit: { rules: { 'named-assumptions': namedAssumptions } } },
    rules: { 'kit/named-assumptions': 'error' },
  },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: globals.node } },
  { files: ['templates/**/*.js'], languageOptions: { globals: globals.browser } },
  separates('app', 'sandbox'),
  separates('sandbox', 'app'),
);
