import { createRequire } from 'node:module';

interface Backend {
  executeSingleOutput: (name: string, ...rest: unknown[]) => unknown;
  executeMultipleOutputs: (name: string, ...rest: unknown[]) => unknown;
}

/** Time inside each TensorFlow operator from now on (they run to their end before they return on a CPU), most first. */
export function profileOperators(): () => { name: string; ms: number; calls: number }[] {
  const tf = createRequire(import.meta.url)('@tensorflow/tfjs-node') as { backend(): Backend };
  const backend = tf.backend();
  const spent = new Map<string, { ms: number; calls: number }>();
  for (const method of ['executeSingleOutput', 'executeMultipleOutputs'] as const) {
    const plain = backend[method].bind(backend);
    backend[method] = (name, ...rest) => {
      const start = performance.now();
      try {
        return plain(name, ...rest);
      } finally {
        const sum = spent.get(name) ?? { ms: 0, calls: 0 };
        spent.set(name, { ms: sum.ms + performance.now() - start, calls: sum.calls + 1 });
      }
    };
  }
  return () => [...spent].map(([name, sum]) => ({ name, ...sum })).sort((a, b) => b.ms - a.ms);
}
