/** By which the sweeper knows a container: whose it is, and until when. */
export const LABEL = {
  owner: 'treeward.owner',
  id: 'treeward.id',
  run: 'treeward.run',
  expires: 'treeward.expires',
} as const;
