/**
 * `execArgv` of worker threads that run our built modules. Conditions and loaders of this process are not for compiled
 * code. Without the flag a pool loads an ES module by `require`, and Node 20 ends the whole process (`IsGraphAsync must
 * be used on an instantiated module`) when the thread is stopped in the middle of that.
 */
export const WORKER_ARGUMENTS: readonly string[] = ['--no-experimental-require-module'];
