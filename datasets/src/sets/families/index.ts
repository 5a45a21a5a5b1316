import type { SetFamily } from '../set-task.js';
import { fixModule } from './fix-module.js';
import { logErrors } from './log-errors.js';
import { mailMerge } from './mail-merge.js';
import { meetingActions } from './meeting-actions.js';
import { salesSummary } from './sales-summary.js';
import { taskSchedule } from './task-schedule.js';
import { topCustomers } from './top-customers.js';

/** Every family of the sets, by domain. */
export const SET_FAMILIES: readonly SetFamily[] = [
  meetingActions,
  logErrors,
  salesSummary,
  topCustomers,
  mailMerge,
  taskSchedule,
  fixModule,
];
