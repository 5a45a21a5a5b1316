import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/eval',
  ssr: { resolve: { conditions: ['@treeward/source', 'node', 'development|production'] } },
  test: {
    name: 'eval',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    // Twenty times what the slowest takes alone: a machine shared with others is slow, not wrong.
    testTimeout: 60_000,
    maxWorkers: 1,
    reporters: ['default', ['json', { outputFile: '../../test-results/eval.json' }]],
  },
});
