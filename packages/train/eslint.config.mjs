import base from '../../eslint.config.mjs';

const RULE = '@nx/dependency-checks';

// Used by tests alone: the fidelity test compares trees with their records.
const testOnly = ['@treeward/telemetry'];

export default base.map((config) => {
  const [severity, options] = config.rules?.[RULE] ?? [];
  if (!severity) return config;
  return {
    ...config,
    rules: { ...config.rules, [RULE]: [severity, { ...options, ignoredDependencies: testOnly }] },
  };
});
