import { expect, it } from 'vitest';
import { inArrivalOrder } from './call-times.js';

const at = (call: number, startTime: number) => ({ call, startTime, finishTime: startTime + 5 });

it('goes by number, and moves a time that a jumping clock gave between its neighbours', () => {
  const { order, moved } = inArrivalOrder([at(3, 30), at(1, 900), at(0, 0), at(2, 20)]);
  expect(order.map(({ call, startTime, finishTime }) => [call, startTime, finishTime])).toEqual([
    [0, 0, 5],
    [1, 10, 15],
    [2, 20, 25],
    [3, 30, 35],
  ]);
  expect(moved.map(({ call }) => call)).toEqual([1]);
});

it('goes by time where the numbers are no arrivals', () => {
  const { order, moved } = inArrivalOrder([at(0, 50), at(1, 40), at(2, 30), at(3, 20), at(4, 10)]);
  expect(order.map(({ call }) => call)).toEqual([4, 3, 2, 1, 0]);
  expect(moved).toEqual([]);
});
