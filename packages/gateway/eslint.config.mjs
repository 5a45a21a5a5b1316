import base from '../../eslint.config.mjs';

const name = '@nx/dependency-checks';
const [level, options] = base.find(({ rules }) => rules?.[name]).rules[name];

export default [
  ...base,
  {
    files: ['package.json'],
    rules: {
      // Declared, not used: plain node:http does what is needed (drops, half-written streams, delivery).
      [name]: [level, { ...options, ignoredDependencies: ['hono', '@hono/node-server'] }],
    },
  },
];
