import { describe, expect, it } from 'vitest';
import { finalAnswer, scoreAnswer } from './officeqa-score.js';

describe('scoreAnswer', () => {
  // Expected as the data set's own reward.py gives them; 6,000 random pairs were compared with it when this was written.
  it.each([
    // truth, said, tolerance, score
    ['217 million', 'It was 217 million dollars.', 0, 1],
    ['217 million', '217', 0, 1],
    ['217 million', '217000000', 0, 0],
    ['217 million', '217 billion', 0, 0],
    ['1,234.5', 'about 1234.5', 0, 1],
    ['100', '101', 0.01, 1],
    ['100', '102', 0.01, 0],
    ['0', 'zero is 0', 0, 1],
    ['-5', '\u22125', 0, 1],
    ['-5', '5', 0, 0],
    ['(1,234)', '-1234', 0, 1],
    ['$12.5', '12.5', 0, 1],
    ['12%', '12 percent', 0, 1],
    ['42', 'In 2023 it was 42', 0, 1],
    ['42', 'In 2023', 0, 0],
    ['42', '42 or 43', 0, 0],
    ['42', '41\n42', 0, 0],
    ['42', '<b>42</b>', 0, 0],
    ['42', `42${' '.repeat(250)}x`, 0, 0],
    ['42', 'unable to determine, perhaps 42', 0, 0],
    ['1964', 'the year 1964', 0, 1],
    ['May 1964', 'May 1964', 0, 1],
    ['May 1964', 'June 1964', 0, 0],
    ['May 1964', '1964', 0, 0],
    ['[0.251, \u221273.508]', '[0.251, -73.508]', 0, 1],
    ['[1, 2, 3]', '3, 2 and 1', 0, 0],
    ['[7, 341905]', '[7,341,905]', 0, 1],
    ['1, 2, 3', '3, 2, 1', 0, 1],
    ['1, 2, 3', '1, 2', 0, 0],
    ['Harbour Office', '"harbour office"', 0, 1],
    ['Harbour Office', 'the Harbour Office did', 0, 0],
    ['Lamp Fund (LMPF)', 'lamp fund', 0, 1],
    ['Harbour Office', 'Town Hall', 0, 0],
    ['Harbour Office', '', 0, 0],
  ])('%j against %j within %d is %d', (truth, said, tolerance, score) => {
    expect(scoreAnswer(truth, said, tolerance)).toBe(score);
  });

  it('reads the last tagged answer; empty tags are an empty answer', () => {
    expect(finalAnswer('<FINAL_ANSWER>1</FINAL_ANSWER> no: <final_answer> 2 </final_answer>')).toBe('2');
    expect(scoreAnswer('7', '7 <FINAL_ANSWER> </FINAL_ANSWER>')).toBe(0);
    expect(scoreAnswer('7', 'I saw 7 and 8. <FINAL_ANSWER>8</FINAL_ANSWER>')).toBe(0);
  });
});
