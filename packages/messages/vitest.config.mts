import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/messages',
  ssr: { resolve: { conditions: ['@treeward/source', 'module', 'node', 'development|production'] } },
  test: {
    name: 'messages',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Two shared cores: a test that takes a second alone can take twenty beside others.
    testTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: '../../test-results/messages.json' }]],
  },
});
