/**
 * Calls `end`, once, when the process that forked this one is gone, also if it went before this was called: an entry file
 * takes a second to load, and a parent killed in that time tells nobody. Says whether there is, or was, such a parent.
 */
export function endWithParent(end: () => void): boolean {
  // Undefined in a process that was started without a channel.
  if ((process.connected as boolean | undefined) === undefined) return false;
  if (process.connected) process.once('disconnect', end);
  else end();
  return true;
}
