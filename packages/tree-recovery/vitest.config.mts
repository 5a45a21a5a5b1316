import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/tree-recovery',
  ssr: { resolve: { conditions: ['@treeward/source', 'module', 'node', 'development|production'] } },
  test: {
    name: 'tree-recovery',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Property tests on a loaded two-core machine.
    testTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: '../../test-results/tree-recovery.json' }]],
  },
});
