/** A task's name in paths and groups. */
export const taskName = (id: string): string => id.replace(/[^\w.-]/g, '_').slice(0, 80);

/** Id of a task's rollout; runs count from 0. */
export const rolloutName = (taskId: string, run: number): string => `${taskName(taskId)}--r${run + 1}`;

/** The task's name in the id of a rollout, or of a sandbox made for one (`…-verify`). Null in any other. */
export const taskOfRollout = (id: string): string | null => /^(.+)--r\d+(?:-[a-z-]+)?$/.exec(id)?.[1] ?? null;
