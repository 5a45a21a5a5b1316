import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../node_modules/.vite/native',
  ssr: { resolve: { conditions: ['@treeward/source', 'module', 'node', 'development|production'] } },
  test: {
    name: 'native',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    globalSetup: ['src/testing/build-fibers.ts'],
    testTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 1,
    maxConcurrency: 2,
    reporters: ['default', ['json', { outputFile: '../test-results/native.json' }]],
  },
});
