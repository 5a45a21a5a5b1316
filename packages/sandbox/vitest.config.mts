import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  // An unprivileged re-run (user-tier.test.ts) cannot write below a root-owned checkout.
  cacheDir: process.env['TREEWARD_VITEST_CACHE'] ?? '../../node_modules/.vite/sandbox',
  ssr: { resolve: { conditions: ['@treeward/source', 'module', 'node', 'development|production'] } },
  test: {
    name: 'sandbox',
    environment: 'node',
    include: ['src/**/*.test.ts'],
    exclude: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
    reporters: ['default', ['json', { outputFile: '../../test-results/sandbox.json' }]],
  },
});
