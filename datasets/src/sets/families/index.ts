import type { SetFamily } from '../set-task.js';
import { accessReview } from './access-review.js';
import { budgetChoice } from './budget-choice.js';
import { calendarMerge } from './calendar-merge.js';
import { contactDedupe } from './contact-dedupe.js';
import { envSync } from './env-sync.js';
import { faqGroup } from './faq-group.js';
import { fixModule } from './fix-module.js';
import { fixPipeline } from './fix-pipeline.js';
import { glossaryTerms } from './glossary-terms.js';
import { incidentReport } from './incident-report.js';
import { inboxTriage } from './inbox-triage.js';
import { itinerary } from './itinerary.js';
import { localeMerge } from './locale-merge.js';
import { logErrors } from './log-errors.js';
import { logRotation } from './log-rotation.js';
import { mailMerge } from './mail-merge.js';
import { meetingActions } from './meeting-actions.js';
import { monthClose } from './month-close.js';
import { outliers } from './outliers.js';
import { packageOrder } from './package-order.js';
import { payrollRun } from './payroll-run.js';
import { proxyConfig } from './proxy-config.js';
import { releaseTrain } from './release-train.js';
import { renameFunction } from './rename-function.js';
import { salesSummary } from './sales-summary.js';
import { shiftRoster } from './shift-roster.js';
import { stockReorder } from './stock-reorder.js';
import { surveyWeighting } from './survey-weighting.js';
import { taskSchedule } from './task-schedule.js';
import { topCustomers } from './top-customers.js';

/** Every family of the sets, by level and domain. */
export const SET_FAMILIES: readonly SetFamily[] = [
  ...[meetingActions, calendarMerge, inboxTriage, contactDedupe],
  ...[logErrors, envSync, logRotation, proxyConfig],
  ...[salesSummary, topCustomers, outliers],
  ...[mailMerge, glossaryTerms, faqGroup],
  ...[taskSchedule, budgetChoice, itinerary],
  ...[fixModule, renameFunction, packageOrder],
  ...[
    payrollRun,
    incidentReport,
    accessReview,
    monthClose,
    surveyWeighting,
    localeMerge,
    shiftRoster,
    stockReorder,
    releaseTrain,
    fixPipeline,
  ],
];
