import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/gateway',
  ssr: { resolve: { conditions: ['@treeward/source', 'node', 'development|production'] } },
  test: {
    name: 'gateway',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Two shared cores: a test that takes a second alone can take twenty beside others.
    testTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: '../../test-results/gateway.json' }]],
  },
});
