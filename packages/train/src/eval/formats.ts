import type { FormatName } from '@treeward/eval';

/** The subcommand of `treeward eval` for each format. */
export const COMMAND_OF = {
  clawgym: 'clawgym-bench',
  pinchbench: 'pinchbench',
  jobbench: 'jobbench',
  officeqa: 'officeqa',
  harbor: 'harbor',
} as const satisfies Record<FormatName, string>;
