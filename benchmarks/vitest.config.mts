import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../node_modules/.vite/benchmarks',
  ssr: { resolve: { conditions: ['@treeward/source', 'node', 'development|production'] } },
  test: {
    name: 'benchmarks',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Property tests on a loaded two-core machine.
    testTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: '../test-results/benchmarks.json' }]],
  },
});
