import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.vite/policy',
  ssr: { resolve: { conditions: ['@treeward/source', 'node', 'development|production'] } },
  test: {
    name: 'policy',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    // The llama tests start real engine processes; the default 5 s is short on a shared machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    reporters: ['default', ['json', { outputFile: '../../test-results/policy.json' }]],
  },
});
