import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../node_modules/.vite/datasets',
  ssr: { resolve: { conditions: ['@treeward/source', 'module', 'node', 'development|production'] } },
  test: {
    name: 'datasets',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Hundreds of real checker processes, on cores that other work may share.
    testTimeout: 120_000,
    reporters: ['default', ['json', { outputFile: '../test-results/datasets.json' }]],
  },
});
