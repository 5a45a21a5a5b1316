import base from '../../eslint.config.mjs';

const RULE = '@nx/dependency-checks';

// llama.cpp's binaries: node-llama-cpp loads them by name, nothing imports them.
const binaries = ['@node-llama-cpp/linux-x64'];

export default base.map((config) => {
  const [severity, options] = config.rules?.[RULE] ?? [];
  if (!severity) return config;
  return {
    ...config,
    rules: { ...config.rules, [RULE]: [severity, { ...options, ignoredDependencies: binaries }] },
  };
});
