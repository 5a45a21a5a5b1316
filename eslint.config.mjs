import nx from '@nx/eslint-plugin';
import js from '@eslint/js';
import tseslint from 'typescript-eslint';
import * as jsonc from 'jsonc-eslint-parser';

// Which rooms a room may look into. Data goes one way: nothing here points back (README, "The house").
const scopes = {
  base: [],
  native: [],
  messages: ['base'],
  telemetry: ['base'],
  policy: ['base', 'messages'],
  gateway: ['base', 'messages', 'telemetry', 'policy'],
  sandbox: ['base'],
  'harness-adapters': ['base', 'messages', 'telemetry', 'sandbox'],
  'tree-recovery': ['base', 'messages', 'telemetry'],
  learner: ['base', 'native', 'tree-recovery'],
  rollout: ['base', 'messages', 'telemetry', 'sandbox', 'harness-adapters', 'gateway'],
  datasets: ['base'],
  eval: ['base', 'messages', 'telemetry', 'policy', 'sandbox', 'harness-adapters', 'rollout', 'datasets'],
  train: [
    'base',
    'messages',
    'telemetry',
    'policy',
    'gateway',
    'sandbox',
    'harness-adapters',
    'tree-recovery',
    'learner',
    'rollout',
    'datasets',
    'eval',
    'native',
  ],
  benchmarks: [
    'base',
    'messages',
    'telemetry',
    'policy',
    'gateway',
    'harness-adapters',
    'tree-recovery',
    'learner',
    'native',
  ],
};

const depConstraints = [
  { sourceTag: 'type:native', onlyDependOnLibsWithTags: ['type:native'] },
  { sourceTag: 'type:lib', onlyDependOnLibsWithTags: ['type:lib', 'type:native'] },
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:app', 'type:lib', 'type:native'] },
  ...Object.entries(scopes).map(([scope, deps]) => ({
    sourceTag: `scope:${scope}`,
    onlyDependOnLibsWithTags: [scope, ...deps].map((name) => `scope:${name}`),
  })),
];

const boundaries = {
  enforceBuildableLibDependency: true,
  allow: ['^.*/eslint\\.config\\.mjs$'],
  depConstraints,
};

export default [
  {
    // datasets/sets: what tasks hand to an agent, package.json files too.
    ignores: [
      '**/dist',
      '**/out-tsc',
      '**/build',
      '**/.nx',
      '**/test-results',
      '**/runs',
      'datasets/sets',
      'sets',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  ...nx.configs['flat/base'],
  {
    files: ['**/*.ts', '**/*.mts', '**/*.mjs'],
    rules: {
      '@nx/enforce-module-boundaries': ['error', boundaries],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-undef': 'off',
    },
  },
  {
    // Benchmarks measure the built package, imported by its name as a user would.
    files: ['**/*.bench.ts'],
    rules: {
      '@nx/enforce-module-boundaries': ['error', { ...boundaries, allowCircularSelfDependency: true }],
    },
  },
  {
    files: ['**/package.json'],
    languageOptions: { parser: jsonc },
    rules: {
      '@nx/dependency-checks': [
        'error',
        {
          ignoredFiles: [
            '{projectRoot}/eslint.config.mjs',
            '{projectRoot}/vitest*.config.mts',
            '{projectRoot}/**/*.test.ts',
            '{projectRoot}/**/*.bench.ts',
            '{projectRoot}/src/testing/**',
            '{projectRoot}/CMakeLists.txt',
          ],
        },
      ],
    },
  },
];
