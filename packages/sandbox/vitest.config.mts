import { defineConfig } from 'vitest/config';

// An unprivileged re-run (user-tier.test.ts) cannot write below a root-owned checkout.
const scratch = process.env['TREEWARD_VITEST_SCRATCH'];

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: scratch ? `${scratch}/cache` : '../../node_modules/.vite/sandbox',
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
    reporters: [
      'default',
      ['json', { outputFile: scratch ? `${scratch}/report.json` : '../../test-results/sandbox.json' }],
    ],
  },
});
