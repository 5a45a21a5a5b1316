import { read, write } from '../../steps.js';
import { csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const SERVICES = ['gateway', 'orders', 'billing'] as const;
type Service = (typeof SERVICES)[number];

/** Three logs with clocks of their own → one incident. Dominant mistake: the clock that runs fast is not corrected. */
export const incidentReport: SetFamily = {
  name: 'incident-report',
  domain: 'systems',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const day = 10 + random.below(15);
    const base = Date.parse(`2026-06-${day}T00:00:00Z`) / 1000;
    const start = base + 3600 * (9 + random.below(6)) + 60 * random.below(50) + 11;
    const fast = 150 + random.below(90);
    const first: Service = random.pick(['orders', 'billing']);
    const iso = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 19) + 'Z';
    // True times. The service at fault comes first by less than its clock runs fast.
    const others = random.shuffle(SERVICES.filter((name) => name !== first));
    const incident = [
      { service: first, time: start },
      { service: others[0]!, time: start + 45 },
      { service: others[1]!, time: start + 100 },
      ...Array.from({ length: 9 }, (_, i) => ({
        service: random.pick(SERVICES),
        time: start + 260 + 170 * i + random.below(90),
      })),
    ];
    const lone = { service: others[0]!, time: start - 3000 - random.below(600) };
    const events = [
      lone,
      ...incident,
      ...Array.from({ length: 14 }, () => ({
        service: random.pick(SERVICES),
        time: start - 4000 + random.below(7000),
        quiet: true,
      })),
    ].map((event) => ({ ...event, level: 'quiet' in event ? 'INFO' : 'ERROR' }));
    const shown = (service: Service, time: number): string => {
      if (service === 'gateway') return iso(time);
      const drift = service === first ? fast : 0;
      return service === 'billing' ? String(time + drift) : iso(time + drift + 7200).slice(0, 19) + '+02:00';
    };
    const log = (service: Service): string =>
      lines(
        ...events
          .filter((event) => event.service === service)
          .sort((a, b) => a.time - b.time)
          .map(
            (event) =>
              `${shown(service, event.time)} ${event.level} ${event.level === 'ERROR' ? 'request failed' : 'request served'}`,
          ),
      );
    const deploys = [
      { id: 'D-41', service: first, time: start - 5 * 3600 },
      { id: 'D-42', service: first, time: start - 600 - random.below(300) },
      { id: 'D-43', service: others[0]!, time: start - 200 },
      { id: 'D-44', service: first, time: start + 20 },
    ];
    const people = random.shuffle(['Wen', 'Paula', 'Idris']);
    const errors = (clock: (event: (typeof incident)[number]) => number, list = incident) =>
      [...list]
        .map((event) => ({ service: event.service, time: clock(event) }))
        .sort((a, b) => a.time - b.time);
    const conclude = (found: ReturnType<typeof errors>) => {
      const begin = found[0]!.time;
      const culprit = found[0]!.service;
      const cause = deploys
        .filter((d) => d.service === culprit && d.time <= begin && d.time >= begin - 1800)
        .at(-1);
      return {
        timeline: found.map(({ time, service }) => [iso(time), service]),
        report: {
          start: iso(begin),
          end: iso(found.at(-1)!.time),
          seconds: found.at(-1)!.time - begin,
          first_service: culprit,
          cause: cause?.id ?? null,
          on_call: people[SERVICES.indexOf(culprit)]!,
          errors: Object.fromEntries(
            SERVICES.map((name) => [name, found.filter((e) => e.service === name).length]),
          ),
        },
      };
    };
    const right = conclude(errors((e) => e.time));
    const files = {
      ...Object.fromEntries(SERVICES.map((name) => [`logs/${name}.txt`, log(name)])),
      'clocks.md': lines(
        '# Clocks',
        '',
        '- gateway writes UTC.',
        '- orders writes local time with its offset.',
        '- billing writes seconds since 1970-01-01T00:00:00Z.',
        `- The clock of ${first} runs fast: it shows ${fast} seconds more than the true time. The other clocks and the times of deploys are right.`,
      ),
      'deploys.csv': csv(
        ['deploy', 'service', 'time'],
        deploys.map((d) => [d.id, d.service, iso(d.time)]),
      ),
      'on-call.csv': csv(
        ['service', 'person'],
        SERVICES.map((name, i) => [name, people[i]!]),
      ),
      'runbook.md': lines(
        '# Incident reports',
        '',
        '- All times are true times in UTC, written like 2026-01-31T08:05:09Z.',
        '- The incident is made of the ERROR entries of all services, but an error with no other error of any service within 10 minutes before or after it is noise and left out everywhere.',
        '- The incident starts with its first error and ends with its last one. The first service is the one of the first error.',
        '- The cause is the latest deploy of the first service that was made at or before the start and at most 30 minutes before it.',
      ),
    };
    const plan = (result: typeof right): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write('timeline.csv', csv(['time', 'service'], result.timeline)),
        write('incident.json', json(result.report)),
        write(
          'report.md',
          lines(
            '# Incident',
            '',
            `Start: ${result.report.start}`,
            `End: ${result.report.end}`,
            `First service: ${result.report.first_service}`,
            `Cause: ${String(result.report.cause)}`,
            `On call: ${result.report.on_call}`,
          ),
        ),
      ],
    });
    return {
      files,
      query:
        'There was one incident; work it out from logs/, clocks.md, deploys.csv and on-call.csv following runbook.md. Write timeline.csv (header time,service; one row for each error of the incident, sorted by time), ' +
        'incident.json ({"start", "end", "seconds": its length, "first_service", "cause": the deploy, "on_call": the person of the first service, "errors": {service: number of errors in the incident}}) and ' +
        'report.md with the lines "Start: …", "End: …", "First service: …", "Cause: …", "On call: …", each with the same value as in incident.json; other lines are free.',
      expected:
        'The agent brings all logs to true UTC, drops the lone error, orders the errors and names start, cause and person on call in files that agree.',
      truth: { ...right, lone: iso(lone.time) },
      check: `
table = ws.table("timeline.csv")
rows = table[1] if table and table[0] == ["time", "service"] else None
found = ws.json("incident.json")
wanted = TRUTH["report"]
lines = [line.strip() for line in ws.lines("report.md") or []]
labels = {"Start": "start", "End": "end", "First service": "first_service", "Cause": "cause", "On call": "on_call"}
def right(key):
    return float(same(at(found, key), wanted[key]))
return {
    "timeline": members(rows, TRUTH["timeline"]),
    "timeline_order": float(same(rows, TRUTH["timeline"])),
    "noise_left_out": float(bool(rows) and len(rows) > 3 and all(row[0] != TRUTH["lone"] for row in rows) and len(rows) == len(TRUTH["timeline"])),
    "start": right("start"),
    "end": right("end"),
    "seconds": right("seconds"),
    "first_service": right("first_service"),
    "cause": right("cause"),
    "on_call": right("on_call"),
    "errors": right("errors"),
    "report": share("%s: %s" % (label, wanted[key]) in lines for label, key in labels.items()),
    "agree": float(isinstance(found, dict) and all("%s: %s" % (label, at(found, key)) in lines for label, key in labels.items())),
}`,
      reference: plan(right),
      wrong: {
        'clock-not-corrected': {
          why: 'the clock that runs fast is not corrected',
          ...plan(conclude(errors((e) => e.time + (e.service === first ? fast : 0)))),
        },
        'offset-ignored': {
          why: 'local time is read as UTC',
          ...plan(conclude(errors((e) => e.time + (e.service === 'orders' ? 7200 : 0)))),
        },
        'noise-kept': {
          why: 'the lone error before counts as the start',
          ...plan(conclude(errors((e) => e.time, [lone, ...incident]))),
        },
      },
    };
  },
};
